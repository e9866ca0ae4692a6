package duckdb

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// TestWhatIsRememberedIsWhatTheGateSays: a text that was let through, with schemas
// put in, is recalled as the gate would walk it, or not at all.
func TestWhatIsRememberedIsWhatTheGateSays(t *testing.T) {
	p := openTestPlanner(t)
	recalled := 0
	for _, text := range append(append(scriptQueries(t, "parse", "parse"), scriptQueries(t, "bind", "bind")...), truthQueries...) {
		for _, schema := range []string{"main", "s1", `it"s`, "vk", "Γ schema"} {
			if checkRecall(t, p, text, schema) {
				recalled++
			}
		}
	}
	if recalled < 400 {
		t.Errorf("only %d texts were recalled", recalled)
	}
}

// checkRecall compares, and reports whether the text was recalled.
func checkRecall(t *testing.T, p *Planner, text, schema string) bool {
	t.Helper()
	got, err := p.Parse(t.Context(), []registry.Query{{Text: text}})
	if err != nil {
		t.Fatal(err)
	}
	if got[0].Err != nil {
		if p.gate.recall(registry.Query{Text: text}) != nil {
			t.Fatalf("%q was refused, and is remembered", text)
		}
		return false
	}
	var edits []ddl.Edit
	for _, r := range got[0].References {
		if r.At >= 0 && r.Schema == "" {
			edits = append(edits, ddl.Edit{At: r.At, End: r.At, Text: viewkeeper.QuoteIdent(schema) + "."})
		}
	}
	qualified, _ := ddl.ApplyEdits(text, edits)
	query := registry.Query{Text: qualified, Origin: text}
	w := p.gate.recall(query)
	want, refusal, err := p.gate.walk(t.Context(), qualified, forDefinition)
	if err != nil {
		t.Fatal(err)
	}
	if w == nil {
		return false
	}
	if refusal != nil {
		t.Fatalf("%q as %q is recalled; the gate refuses it: %v", text, qualified, refusal)
	}
	if a, b := essence(w), essence(want); !reflect.DeepEqual(a, b) {
		t.Fatalf("%q as %q is recalled as\n%s\nthe gate says\n%s", text, qualified, a, b)
	}
	for _, other := range []string{qualified + "; SELECT 1", " " + qualified, strings.Replace(qualified, `".`, `". `, 1) + "x",
		strings.Replace(qualified, `".`, `"; DROP TABLE t; SELECT * FROM "x".`, 1) + " "} {
		if p.gate.recall(registry.Query{Text: other, Origin: text}) != nil {
			t.Fatalf("%q is recalled as %q", other, text)
		}
	}
	return true
}

// essence is what binding takes from a walk.
func essence(w *walker) string {
	refs := make([]registry.TableRef, len(w.refs))
	for i, r := range w.refs {
		refs[i] = r.TableRef
		refs[i].Layers, refs[i].Unused = 0, false
	}
	return fmt.Sprintf("%q\nrefs %+v\nfiles %+v\ncalls %v\nasof %v\ntokens %v", w.text, refs, w.files, w.calls, w.asof, w.tokens)
}

// TestMemoryIsBounded: the oldest texts are forgotten.
func TestMemoryIsBounded(t *testing.T) {
	m := newMemories()
	long := strings.Repeat("x", maxRememberedBytes/100)
	for i := range 2 * maxRemembered {
		m.add(fmt.Sprint("SELECT ", i), &walker{})
	}
	if len(m.texts) != maxRemembered || len(m.order) != maxRemembered {
		t.Errorf("%d texts, %d in order", len(m.texts), len(m.order))
	}
	for i := range 200 {
		m.add(fmt.Sprint(long, i), &walker{})
	}
	if len(m.texts) > 100 || len(m.texts) != len(m.order) || m.bytes > maxRememberedBytes {
		t.Errorf("%d texts, %d in order, %d bytes", len(m.texts), len(m.order), m.bytes)
	}
}
