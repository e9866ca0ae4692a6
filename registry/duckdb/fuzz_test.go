package duckdb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// FuzzGate looks for texts that the gate does not survive, and for answers that
// can't be right: places outside the text, a text that is let through and that the
// engine's parser takes for anything but one SELECT, or that calls what nobody may.
func FuzzGate(f *testing.F) {
	for _, q := range truthQueries {
		f.Add(q, false)
	}
	for _, q := range attacks() {
		if len(q) < 1000 {
			f.Add(q, true)
		}
	}
	for _, q := range attackScript(f, "07_side_effects") {
		f.Add(q, false)
	}
	p := openTestPlanner(f)
	f.Fuzz(func(t *testing.T, text string, strict bool) {
		if len(text) > 4096 {
			return
		}
		got, err := p.Parse(context.Background(), []registry.Query{{Text: text, Strict: strict}})
		if err != nil {
			t.Fatal(err)
		}
		checkPlaces(t, text, got[0])
		again, err := p.Parse(context.Background(), []registry.Query{{Text: text, Strict: strict}})
		if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", got) {
			t.Fatalf("another answer to the same text: %+v, %+v", got, again)
		}
		bound, err := p.Bind(context.Background(), nil, []registry.Query{{Text: text}})
		if err != nil {
			t.Fatal(err)
		}
		checkRecall(t, p, text, "s1")
		if got[0].Err == nil {
			checkLetThrough(t, text, bound[0])
		}
	})
}

func checkPlaces(t *testing.T, text string, got registry.Parsed) {
	t.Helper()
	for _, e := range []*registry.PlanError{got.Err, got.Volatile} {
		if e != nil && (e.At < -1 || e.At > len(text)) {
			t.Fatalf("%q: place %d of %v", text, e.At, e)
		}
	}
	for _, r := range got.References {
		if r.At < -1 || r.End > len(text) || r.At >= 0 && r.End <= r.At {
			t.Fatalf("%q: reference %+v", text, r)
		}
		if r.At < 0 && r.Macro.IsZero() {
			t.Fatalf("%q: no place for %+v", text, r)
		}
	}
	for _, s := range got.Scopes {
		for _, c := range s.Columns {
			if c.At > len(text) {
				t.Fatalf("%q: column %+v", text, c)
			}
		}
		for _, src := range s.Sources {
			if src.Reference >= len(got.References) {
				t.Fatalf("%q: source %+v", text, src)
			}
		}
	}
}

// attackScript gives the short texts of one of the engine's scripts of attacks.
func attackScript(f *testing.F, name string) (texts []string) {
	f.Helper()
	script, err := os.ReadFile(filepath.Join("engine/testdata/attacks", name))
	if err != nil {
		f.Fatal(err)
	}
	for _, block := range strings.Split(string(script), "\n\n") {
		if command, rest, _ := strings.Cut(block, "\n"); strings.HasPrefix(command, "attack") {
			if text, _, _ := strings.Cut(rest, "\n----"); len(text) < 100 && !strings.Contains(text, "«") {
				texts = append(texts, text)
			}
		}
	}
	if len(texts) < 50 {
		f.Fatalf("%s has %d short attacks", name, len(texts))
	}
	return texts
}

// denied are functions that no text may call, said once more by hand.
const denied = " getenv nextval currval setseed read_text read_blob query query_table glob write_log current_setting getvariable " +
	"json_execute_serialized_sql sleep_ms read_json_objects read_duckdb enable_logging checkpoint force_checkpoint which_secret "

// checkLetThrough looks at a text that is through the gate by other means than the
// gate's: the tokens of package ddl, and the engine's own word.
func checkLetThrough(t *testing.T, text string, bound registry.Bound) {
	t.Helper()
	if bound.Err != nil && bound.Err.Code == viewkeeper.CodeNotOneQuery {
		t.Fatalf("%q is not one query to the engine: %v", text, bound.Err)
	}
	tokens, err := ddl.Tokens(text)
	if err != nil {
		t.Fatalf("%q has no tokens: %v", text, err)
	}
	seen, ended := false, false
	for i, tok := range tokens {
		switch {
		case tok.Is(";"):
			ended = seen
		case ended:
			t.Fatalf("%q goes on behind its end", text)
		default:
			seen = true
		}
		name := viewkeeper.Fold(strings.Trim(tok.Text, `"`))
		if i+1 < len(tokens) && tokens[i+1].Is("(") && name != "" && strings.Contains(denied, " "+name+" ") && !namesColumns(tokens, i) {
			t.Fatalf("%q calls %s", text, name)
		}
	}
}

// namesColumns reports whether a name with brackets behind it names a relation and
// its columns: a CTE, or an alias.
func namesColumns(tokens []ddl.Token, i int) bool {
	if i > 0 {
		before := tokens[i-1]
		for _, operator := range []string{"(", ",", "+", "-", "*", "/", "=", "<", ">", "||", ".", "select", "from", "where", "by", "on", "when", "then", "else", "and", "or", "not", "limit", "having"} {
			if before.Is(operator) {
				if operator != "," {
					return false
				}
				depth := 0
				for j := i + 1; j < len(tokens); j++ {
					switch {
					case tokens[j].Is("("):
						depth++
					case tokens[j].Is(")"):
						if depth--; depth == 0 {
							return j+1 < len(tokens) && tokens[j+1].Is("as")
						}
					}
				}
				return false
			}
		}
	}
	return true
}
