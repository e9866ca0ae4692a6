package duckdb

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// maxCandidates is how many lines of candidates a message keeps.
const maxCandidates = 3

// longestMessage bounds what is left of a message, in bytes.
const longestMessage = 600

// own finds a guess of the engine's that names its own catalog, or a stub that is
// none of the user's: "Did you mean "pg_views"?" helps nobody.
var own = regexp.MustCompile(` ?Did you mean "(information_schema\.|pg_|duckdb_|sqlite_|pragma_|__)[^"]*"\?`)

// unknownTable finds what the engine says of a relation that is not there, and its guess.
//
// The guess is not passed on. The engine looks for it among all that its catalog still
// holds, dropped stubs among them, so that it depends on what the engine went through
// (a refusal must follow from catalog and statement alone), and names what is not
// there: Table with name c3 does not exist! Did you mean "memory.c3"?
var unknownTable = regexp.MustCompile(`^(Table with name (.+?) does not exist!)( Did you mean .*)?$`)

// guess adds to a message about an unknown relation which of the relations that are
// there may have been meant: one of that name in another schema, else the one that is
// most likely misspelt.
func guess(message string, there iter.Seq[viewkeeper.Name]) string {
	m := unknownTable.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	name, err := viewkeeper.ParseName(m[2])
	if err != nil {
		return message
	}
	var meant viewkeeper.Name
	byView := map[string]viewkeeper.Name{}
	for _, n := range slices.SortedFunc(there, viewkeeper.Name.Compare) {
		if n.View == name.View && meant.IsZero() {
			meant = n
		}
		if _, taken := byView[n.View]; !taken {
			byView[n.View] = n
		}
	}
	if meant.IsZero() && len(name.View) > 2 { // of fewer letters every other name is a slip away
		meant = byView[ddl.Nearest(name.View, slices.Sorted(maps.Keys(byView)))]
	}
	switch {
	case meant.IsZero():
		return message
	case meant.Schema == viewkeeper.DefaultSchema:
		return fmt.Sprintf("%s Did you mean %q?", message, meant.View)
	}
	return fmt.Sprintf("%s Did you mean %q?", message, meant)
}

// extension finds the engine's advice to install an extension, which nobody can here.
var extension = regexp.MustCompile(` is not in the catalog, but it exists in the (\w+) extension\..*$`)

const noExtension = ` is of the $1 extension, and engines here load none; files of the lake are read as Parquet, CSV or JSON`

// values finds the engine's word for what a stub is made of, and a base's VALUES: the
// person who wrote d.delay knows "d" only.
var values = regexp.MustCompile(`\bValues list ("(?:[^"]|"")+" does not have a column named)`)

// tidy makes the engine's message one that fits in a sentence: its echo of the
// text is cut, as are lists of candidates (of + there are 45), and lines are
// joined. What it guesses was meant stays.
func tidy(message string) string {
	if i := strings.Index(message, "\n\nLINE "); i >= 0 {
		message = message[:i]
	}
	var out []string
	candidates := -1
	for _, line := range strings.Split(message, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "" || strings.HasPrefix(line, "LINE ") || line == "^":
		case strings.HasPrefix(line, "Candidate functions:"):
			candidates = 0
			out = append(out, line)
		case candidates >= 0:
			if candidates++; candidates <= maxCandidates {
				out = append(out, line+",")
			}
		default:
			out = append(out, line)
		}
	}
	message = strings.TrimSuffix(strings.Join(out, " "), ",")
	if candidates > maxCandidates {
		message += fmt.Sprintf(" and %d more", candidates-maxCandidates)
	}
	message = own.ReplaceAllString(message, "")
	message = unknownTable.ReplaceAllString(message, "$1")
	message = values.ReplaceAllString(message, "$1")
	message = extension.ReplaceAllString(message, noExtension)
	message = strings.ReplaceAll(message, ": : ", ": ")
	if len(message) > longestMessage {
		message = strings.ToValidUTF8(message[:longestMessage], "") + "…"
	}
	return message
}

// refusal sorts an engine's error over a text that went through the gate. A
// mistake of the text is a PlanError, with its place in the text that was walked;
// anything else is returned as the Go error that it is. An engine that ran out of
// memory or found itself broken is lost: see [registry.LostError].
func (w *walker) refusal(err error, source func(int) int) (*registry.PlanError, error) {
	var e *engineError
	var text textError
	if errors.As(err, &text) {
		return &registry.PlanError{Code: viewkeeper.CodeNotOneQuery, Message: string(text), At: -1}, nil
	}
	if !errors.As(err, &e) {
		return nil, err
	}
	if lost := lostEngine(e); lost != nil {
		return nil, lost
	}
	if viewkeeper.Fold(e.Type) == "transactioncontext" {
		return nil, err
	}
	at := source(e.Position)
	if at > len(w.text) {
		at = -1
	}
	if tooDeep(e.Message) {
		return &registry.PlanError{Code: viewkeeper.CodeComplexity, Message: tooDeepMessage, At: at}, nil
	}
	message := w.gate.lake.hide(tidy(e.Message))
	if viewkeeper.Fold(e.Type) == "permission" {
		return w.unreadable(message), nil
	}
	return &registry.PlanError{Code: viewkeeper.CodeBind, Message: message, At: w.locate(at, message)}, nil
}

// tooDeepMessage is said in place of what the engine says when its parser's stack or
// its own limit on expressions ends: "memory exhausted", and a setting that nobody
// here can change.
const tooDeepMessage = "expressions are nested deeper than the engine reads; write the query flatter"

// tooDeep reports whether the engine's message is about the depth of a text.
func tooDeep(message string) bool {
	return strings.HasPrefix(message, "memory exhausted") || strings.Contains(message, "expression depth limit") ||
		strings.HasPrefix(message, "Maximum tree depth")
}

// lostEngine gives the LostError that an error of the engine comes to, or nil. After
// these it does not give memory back, or refuses everything.
func lostEngine(e *engineError) error {
	switch viewkeeper.Fold(strings.ReplaceAll(e.Type, " ", "")) {
	case "outofmemory", "fatal", "internal", "interrupt":
		return &registry.LostError{Detail: e.Type + ": " + tidy(e.Message)}
	}
	return nil
}

var quotedName = regexp.MustCompile(`"((?:[^"]|"")+)"`)

// unreadable is for a name that is no relation and that the engine took for a file.
func (w *walker) unreadable(message string) *registry.PlanError {
	if m := quotedName.FindStringSubmatch(message); m != nil {
		for _, r := range w.refs {
			if name := r.Schema + "." + r.View; r.At >= 0 && viewkeeper.Fold(m[1]) == name {
				return planErrorf(viewkeeper.CodeBind, r.At, "%s does not exist; a file is named in quotes, '%s'", name, name)
			}
		}
	}
	return planErrorf(viewkeeper.CodeBind, -1, "%s", message)
}

// locate mends the engine's place of an error. Within a view or a macro of the
// base the place is one in that text; then, and where the engine gives none, the
// place is that of the only thing in the text that the message can be about.
func (w *walker) locate(at int, message string) int {
	if len(w.calls) > 0 && at >= 0 && !w.speaksOf(at, message) {
		at = -1
	}
	if at >= 0 {
		return at
	}
	for _, f := range w.files {
		if f.at >= 0 && strings.Contains(message, `"`+f.written+`"`) {
			return f.at
		}
	}
	if m := quotedName.FindStringSubmatch(message); m != nil {
		found := -1
		for _, t := range w.tokens {
			if name, ok := t.name(w.text); ok && viewkeeper.Fold(name) == viewkeeper.Fold(m[1]) {
				if found >= 0 {
					return -1
				}
				found = t.at
			}
		}
		if found >= 0 {
			return found
		}
	}
	if calls := slices.Compact(slices.Clone(w.calls)); len(calls) == 1 {
		return calls[0]
	}
	return -1
}

// speaksOf reports whether the message is about what stands at a place.
func (w *walker) speaksOf(at int, message string) bool {
	i := w.tokenAt(at)
	if i < 0 {
		return false
	}
	word := w.tokens[i].text(w.text)
	if name, ok := w.tokens[i].name(w.text); ok {
		word = name
	} else if w.tokens[i].kind == tokenSymbol {
		return strings.Contains(message, "'"+word) || strings.Contains(message, `"`+word) // '+(INTEGER, VARCHAR)'
	}
	return strings.Contains(viewkeeper.Fold(message), viewkeeper.Fold(word))
}
