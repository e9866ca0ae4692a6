package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// envName gives the environment variable of a setting.
func envName(setting string) string {
	return "VIEWKEEPER_" + strings.ToUpper(strings.ReplaceAll(setting, "-", "_"))
}

// resolve fills in what no flag has set: from the environment, then from the
// configuration file. The file is read whole and every key is checked, also of
// settings that this command does not have, so that one file serves all commands
// and a misspelt key never goes unseen. Every problem is reported at once.
func (s *Settings) resolve(flags *pflag.FlagSet, getenv func(string) (string, bool)) error {
	var problems []error
	s.all.VisitAll(func(f *pflag.Flag) {
		if own := flags.Lookup(f.Name); own != nil && own.Changed {
			s.sources[f.Name] = "flag"
			return
		}
		// An empty variable is one that is not set: that is what a compose file makes
		// of one that it passes on.
		value, _ := getenv(envName(f.Name))
		if value == "" {
			return
		}
		if err := set(f, splitList(f, value)); err != nil {
			problems = append(problems, fmt.Errorf("environment variable %s: %w", envName(f.Name), err))
			return
		}
		s.sources[f.Name] = "environment"
	})
	if s.Config != "" {
		problems = append(problems, s.readFile(s.Config)...)
	}
	if len(problems) == 0 {
		problems = s.validate()
	}
	if len(problems) > 0 {
		return usagef("%w", errors.Join(problems...))
	}
	return nil
}

// isServiceLink reports whether a variable is one of those that Kubernetes makes of a
// service: _SERVICE_HOST, _SERVICE_PORT, _PORT_7410_TCP_ADDR, and _PORT=tcp://...
func isServiceLink(key, value string) bool {
	return strings.Contains("_"+key, "_SERVICE_HOST") || strings.Contains("_"+key, "_SERVICE_PORT") ||
		strings.Contains("_"+key, "_PORT_") && (strings.Contains(key, "_TCP") || strings.Contains(key, "_UDP")) ||
		strings.HasPrefix(value, "tcp://") || strings.HasPrefix(value, "udp://")
}

// strangers gives the variables of the environment that look like settings and are
// none, each with what may have been meant. They are not errors: Kubernetes gives every
// container some of that form for a service of this name, which are left out here.
func (s *Settings) strangers(environ []string) (warnings []string) {
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		key, ours := strings.CutPrefix(name, "VIEWKEEPER_")
		if !ours || value == "" || isServiceLink(key, value) {
			continue
		}
		setting := strings.ToLower(strings.ReplaceAll(key, "_", "-"))
		if s.all.Lookup(setting) != nil && envName(setting) == name {
			continue
		}
		warnings = append(warnings, fmt.Sprintf("the environment variable %s is no setting and is not used%s", name, s.suggest(setting)))
	}
	slices.Sort(warnings)
	return warnings
}

// readFile reads the settings of a YAML file that nothing has set yet.
func (s *Settings) readFile(path string) (problems []error) {
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = errors.New("there is no such file")
		}
		return []error{fmt.Errorf("configuration file %s: %w", path, err)}
	}
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return []error{fmt.Errorf("configuration file %s: %w", path, err)}
	}
	if len(document.Content) == 0 {
		return nil // an empty file
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		return []error{fmt.Errorf("configuration file %s: it must hold keys and values, as in 'http: 127.0.0.1:7410'", path)}
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		where := fmt.Sprintf("%s:%d", path, key.Line)
		f := s.all.Lookup(key.Value)
		switch {
		case key.Value == "config":
			problems = append(problems, fmt.Errorf("%s: a configuration file can't name another one", where))
			continue
		case f == nil:
			problems = append(problems, fmt.Errorf("%s: unknown key %q%s", where, key.Value, s.suggest(key.Value)))
			continue
		case seen[f.Name]:
			problems = append(problems, fmt.Errorf("%s: the key %s stands twice", where, f.Name))
			continue
		}
		seen[f.Name] = true
		values, err := yamlValues(value)
		if err == nil && s.sources[f.Name] == "" {
			if err = set(f, values); err == nil {
				s.sources[f.Name] = where
			}
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %s: %w", where, f.Name, err))
		}
	}
	return problems
}

func yamlValues(n *yaml.Node) ([]string, error) {
	switch n.Kind {
	case yaml.ScalarNode:
		return []string{n.Value}, nil
	case yaml.SequenceNode:
		values := []string{}
		for _, item := range n.Content {
			if item.Kind != yaml.ScalarNode {
				return nil, errors.New("a list may hold plain values only")
			}
			values = append(values, item.Value)
		}
		return values, nil
	}
	return nil, errors.New("it takes a value or a list of values")
}

// splitList splits an environment variable of a setting that takes several
// values at its commas.
func splitList(f *pflag.Flag, value string) []string {
	if _, list := f.Value.(pflag.SliceValue); list {
		return strings.Split(value, ",")
	}
	return []string{value}
}

func set(f *pflag.Flag, values []string) error {
	if list, ok := f.Value.(pflag.SliceValue); ok {
		return list.Replace(values)
	}
	if len(values) != 1 {
		return errors.New("it takes one value and not a list")
	}
	if f.Value.Set(values[0]) != nil {
		return fmt.Errorf("%q is not %s", values[0], typeWords(f.Value.Type()))
	}
	return nil
}

func typeWords(kind string) string {
	switch kind {
	case "int", "uint64":
		return "a whole number"
	case "duration":
		return "a length of time, as 10s or 5m"
	case "bool":
		return "true or false"
	}
	return "a " + kind
}

// suggest finds the setting that a misspelt key may have meant: one that differs
// in its dashes, or by one part.
func (s *Settings) suggest(key string) string {
	plain := func(k string) string {
		return strings.ToLower(strings.NewReplacer("-", "", "_", "", " ", "").Replace(k))
	}
	hint := ""
	s.all.VisitAll(func(f *pflag.Flag) {
		if hint == "" && (plain(f.Name) == plain(key) || strings.HasPrefix(plain(f.Name), plain(key))) {
			hint = "; did you mean " + f.Name + "?"
		}
	})
	if hint == "" {
		hint = "; 'viewkeeper config' lists the keys"
	}
	return hint
}

// validate checks what a type alone does not.
func (s *Settings) validate() (problems []error) {
	oneOf := func(name, value string, allowed ...string) {
		for _, a := range allowed {
			if value == a {
				return
			}
		}
		problems = append(problems, fmt.Errorf("--%s is %q; it takes %s", name, value, strings.Join(allowed, ", ")))
	}
	if s.Output != "" {
		oneOf("output", s.Output, "table", "json", "csv")
	}
	if s.source("server") == "flag" && s.source("brokers") == "flag" {
		problems = append(problems, errors.New("--server and --brokers are two ways to the catalog; give one of them"))
	}
	if s.From != "" {
		oneOf("from", s.From, "export", "copy", "decisions", "table")
	}
	oneOf("wait", s.Wait, "decided", "node", "fleet")
	oneOf("log-level", s.LogLevel, "debug", "info", "warn", "error")
	oneOf("log-format", s.LogFormat, "text", "json")
	for _, role := range s.Roles {
		oneOf("roles", role, "owner", "node")
	}
	for name, value := range map[string]int{
		"nodes": s.Nodes, "max-body": s.MaxBody, "max-statement": s.MaxStatement, "max-depth": s.MaxDepth,
		"max-leaves": s.MaxLeaves, "max-layers": s.MaxLayers, "max-nesting": s.MaxNesting, "max-joins": s.MaxJoins, "max-queries": s.MaxQueries,
	} {
		if value < 1 {
			problems = append(problems, fmt.Errorf("--%s is %d; it takes a whole number from 1", name, value))
		}
	}
	return problems
}

// source says where the value of a setting came from.
func (s *Settings) source(name string) string {
	if from := s.sources[name]; from != "" {
		return from
	}
	return "default"
}

// direct reports whether a client command goes straight to the topics: brokers are
// given, and nothing as near at hand names a node.
func (s *Settings) direct() bool {
	rank := func(name string) int {
		switch s.source(name) {
		case "flag":
			return 3
		case "environment":
			return 2
		case "default":
			return 0
		}
		return 1
	}
	return len(s.Brokers) > 0 && rank("brokers") > rank("server")
}

// defaultAuthor is who is logged in here; nobody when the system does not say.
func defaultAuthor() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return ""
}
