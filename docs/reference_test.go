package docs_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/processor"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
	"github.com/viewkeeper/viewkeeper/server"
	"github.com/viewkeeper/viewkeeper/view"
)

const operations = "operations.md"

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// table holds a part of a page, between the marks <!-- name --> and <!-- end -->, to
// what the sources say, or with -rewrite makes it so.
func table(t *testing.T, page, name, want string) {
	t.Helper()
	all := read(t, page)
	begin, end := "<!-- "+name+": go test ./docs -rewrite -->\n", "<!-- end -->"
	head, rest, ok := strings.Cut(all, begin)
	have, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no %q ... %q", page, begin, end)
	}
	if have == want {
		return
	}
	if !*rewrite {
		t.Errorf("the table %s of %s is not what the code says; go test ./docs -rewrite. It should be\n%s", name, page, want)
		return
	}
	if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
		t.Fatal(err)
	}
}

func row(cells ...string) string {
	for i, c := range cells {
		cells[i] = strings.ReplaceAll(c, "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func TestSettingsAndCommands(t *testing.T) {
	list, commands := settings(t)
	var b strings.Builder
	b.WriteString(row("setting", "default", "of", "meaning") + "|---|---|---|---|\n")
	for _, s := range list {
		of := strings.Join(s.commands, " ")
		if s.name == "config" || len(s.commands) > 12 {
			of = "all"
		}
		b.WriteString(row(code(s.name), code(s.value), of, s.usage))
	}
	table(t, operations, "settings", b.String())

	b.Reset()
	b.WriteString(row("command", "does") + "|---|---|\n")
	for _, c := range commands {
		b.WriteString(row(code(c.use), c.short))
	}
	table(t, operations, "commands", b.String())
}

// TestReasons: each code of status.go has a row of its own, and no other code has.
func TestReasons(t *testing.T) {
	want := constants(t, "..", "Reason")
	if len(want) < 15 {
		t.Fatalf("only %d reasons were found", len(want))
	}
	page := section(t, read(t, operations), "## Readiness")
	var have []string
	for _, m := range regexp.MustCompile("(?m)^\\| `([A-Z_]+)` \\|").FindAllStringSubmatch(page, -1) {
		have = append(have, m[1])
	}
	compare(t, "reason", have, want)
}

// TestMetrics: what the parts register, each with its help.
func TestMetrics(t *testing.T) {
	kafka := viewkeeper.KafkaSettings{Brokers: []string{"127.0.0.1:1"}}
	base, err := registry.NewBase(t.Context(), registrytest.NewModel(), registry.BaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(row("metric", "means") + "|---|---|\n")
	part := func(register func(*prometheus.Registry) error) {
		reg := prometheus.NewRegistry()
		if err := register(reg); err != nil {
			t.Fatal(err)
		}
		var rows []string
		for name, help := range described(reg) {
			rows = append(rows, row(code(name), help))
		}
		slices.Sort(rows)
		b.WriteString(strings.Join(rows, ""))
	}
	part(func(reg *prometheus.Registry) error {
		_, err := view.New(view.Config{Kafka: kafka, Catalog: "c", NodeID: "n", Base: base, Registerer: reg})
		return err
	})
	part(func(reg *prometheus.Registry) error {
		_, err := server.New(server.Config{
			Node: struct{ server.Node }{}, Engine: struct{ server.Engine }{}, Checker: struct{ server.Checker }{}, Metrics: reg,
		})
		return err
	})
	part(func(reg *prometheus.Registry) error {
		_, err := processor.New(processor.Config{Kafka: kafka, Catalog: "c", NodeID: "n", Base: base, Registerer: reg})
		return err
	})
	table(t, operations, "metrics", b.String())

	// What is registered elsewhere, such as by the binary itself.
	page := read(t, operations)
	name := regexp.MustCompile(`\bName: +"((?:view_definition|viewkeeper)_[a-z_]+)"`)
	for _, path := range goFiles(t) {
		for _, m := range name.FindAllStringSubmatch(read(t, path), -1) {
			if !strings.Contains(page, "`"+m[1]) {
				t.Errorf("%s: the metric %s has no place in %s", path, m[1], operations)
			}
		}
	}
}

// described gives the names in a registry with their help, also of those that have
// no value yet.
func described(reg *prometheus.Registry) map[string]string {
	descs := make(chan *prometheus.Desc)
	go func() {
		defer close(descs)
		reg.Describe(descs)
	}()
	out := map[string]string{}
	parts := regexp.MustCompile(`fqName: "([^"]*)", help: "([^"]*)"`)
	for d := range descs {
		m := parts.FindStringSubmatch(d.String())
		out[m[1]] = strings.ReplaceAll(m[2], `\`, "")
	}
	return out
}

// TestHTTP: each endpoint and each code of the door has its place in http.md.
func TestHTTP(t *testing.T) {
	page := read(t, "http.md")
	route := regexp.MustCompile(`\{"(GET|POST)", "(/[^"]*)"`)
	var routes []string
	for _, m := range route.FindAllStringSubmatch(read(t, "../server/routes.go"), -1) {
		routes = append(routes, m[1]+" "+m[2])
	}
	if len(routes) < 14 {
		t.Fatalf("only %d routes were found", len(routes))
	}
	for _, r := range append(routes, "GET /metrics") {
		if !strings.Contains(page, "\n### `"+r+"`") {
			t.Errorf("http.md has no section %q", r)
		}
	}
	for _, c := range constants(t, "../server", "Code") {
		if !strings.Contains(page, fmt.Sprintf("| `%s` |", c)) {
			t.Errorf("http.md does not say what %s means", c)
		}
	}
}

func section(t *testing.T, page, heading string) string {
	t.Helper()
	_, rest, ok := strings.Cut(page, "\n"+heading+"\n")
	if !ok {
		t.Fatalf("there is no section %q", heading)
	}
	if end := strings.Index(rest, "\n## "); end >= 0 {
		rest = rest[:end]
	}
	return rest
}

func compare(t *testing.T, what string, have, want []string) {
	t.Helper()
	for _, w := range want {
		if !slices.Contains(have, w) {
			t.Errorf("the %s %s is not on the page", what, w)
		}
	}
	for i, h := range have {
		if !slices.Contains(want, h) {
			t.Errorf("the page speaks of the %s %s, which is not in the code", what, h)
		}
		if slices.Contains(have[:i], h) {
			t.Errorf("the %s %s is on the page twice", what, h)
		}
	}
}
