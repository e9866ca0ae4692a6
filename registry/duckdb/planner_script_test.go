package duckdb_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// TestPlannerScripts runs testdata/parse and testdata/bind over the base of
// testdata/base.sql with the lake of testdata/lake. Rewrite what is expected with
//
//	go test ./registry/duckdb -run TestPlannerScripts -rewrite
//
// An input with the argument "escaped" is read as the inside of a Go string. The
// commands:
//
//	parse     what the gate says of the query: what it reads, with the text at each
//	          place, or why it is refused; "strict" asks as for a materialized one
//	scopes    the SELECT nodes of a query
//	bind      the columns of the query, or the refusal; columns=(p, q), "parquet"
//	stub      each line is a name and its columns; a name alone removes the stub
//	keep      ends the trial and keeps it
//	forget    ends the trial
//	describe  what the planner says of the base
func TestPlannerScripts(t *testing.T) {
	base, err := os.ReadFile("testdata/base.sql")
	if err != nil {
		t.Fatal(err)
	}
	p, err := duckdb.Open(t.Context(), duckdb.Options{BaseSQL: string(base), LakeDirs: []string{"testdata/lake"}, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	s := &scripts{planner: p}
	for _, dir := range []string{"testdata/parse", "testdata/bind"} {
		datadriven.Walk(t, dir, func(t *testing.T, path string) {
			if err := p.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			datadriven.RunTest(t, path, s.run)
		})
	}
}

type scripts struct{ planner *duckdb.Planner }

func (s *scripts) run(t *testing.T, d *datadriven.TestData) string {
	text := strings.TrimSuffix(d.Input, "\n")
	if d.HasArg("escaped") {
		unquoted, err := strconv.Unquote(`"` + strings.ReplaceAll(text, `"`, `\"`) + `"`)
		if err != nil {
			d.Fatalf(t, "escaped input: %v", err)
		}
		text = unquoted
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			d.Fatalf(t, "%v", err)
		}
	}
	q := registry.Query{Text: text, Strict: d.HasArg("strict"), Parquet: d.HasArg("parquet")}
	var b strings.Builder
	switch d.Cmd {
	case "parse", "scopes":
		out, err := s.planner.Parse(t.Context(), []registry.Query{q})
		must(err)
		switch {
		case out[0].Err != nil:
			showRefusal(&b, text, out[0].Err)
		case d.Cmd == "parse":
			showParsed(&b, text, out[0])
		default:
			showScopes(&b, text, out[0])
		}
	case "bind":
		for _, a := range d.CmdArgs {
			if a.Key == "columns" {
				q.Columns = a.Vals
			}
		}
		out, err := s.planner.Bind(t.Context(), nil, []registry.Query{q})
		must(err)
		if out[0].Err != nil {
			showRefusal(&b, text, out[0].Err)
			break
		}
		showColumns(&b, out[0].Columns)
		if q.Parquet {
			b.WriteString("after Parquet\n")
			showColumns(&b, out[0].Parquet)
		}
	case "stub":
		var stubs []registry.Stub
		for _, line := range strings.Split(text, "\n") {
			name, rest, _ := strings.Cut(line, " ")
			n, err := viewkeeper.ParseName(name)
			must(err)
			stub := registry.Stub{Name: n}
			for _, c := range strings.Split(rest, ";") {
				if name, typ, ok := strings.Cut(strings.TrimSpace(c), " "); ok {
					stub.Columns = append(stub.Columns, viewkeeper.Column{Name: name, Type: typ})
				}
			}
			stubs = append(stubs, stub)
		}
		_, err := s.planner.Bind(t.Context(), stubs, nil)
		must(err)
	case "keep", "forget":
		must(s.planner.Settle(t.Context(), d.Cmd == "keep"))
	case "describe":
		e, err := s.planner.Describe(t.Context())
		must(err)
		showEngine(&b, e)
	default:
		d.Fatalf(t, "no command %q", d.Cmd)
	}
	if b.Len() == 0 {
		return "ok\n"
	}
	return b.String()
}

func showRefusal(b *strings.Builder, text string, e *registry.PlanError) {
	fmt.Fprintf(b, "%s", e.Code)
	if e.At >= 0 {
		rest := text[e.At:]
		if i := strings.IndexByte(rest, '\n'); i >= 0 {
			rest = rest[:i]
		}
		if len(rest) > 24 {
			rest = strings.ToValidUTF8(rest[:24], "") + "…"
		}
		fmt.Fprintf(b, " at %d ⟨%s⟩", e.At, rest)
	}
	fmt.Fprintf(b, "\n  %s\n", strings.ReplaceAll(e.Message, "\n", `\n`))
}

func showParsed(b *strings.Builder, text string, p registry.Parsed) {
	for _, r := range p.References {
		fmt.Fprintf(b, "reads %s", viewkeeper.Name{Schema: r.Schema, View: r.View}.View)
		if r.Schema != "" {
			fmt.Fprintf(b, " of %s", r.Schema)
		}
		if r.At >= 0 {
			fmt.Fprintf(b, " ⟨%s⟩ at %d", text[r.At:r.End], r.At)
		}
		if !r.Macro.IsZero() {
			fmt.Fprintf(b, " through %s", r.Macro)
		}
		if r.Unused {
			b.WriteString(" unused")
		}
		if r.Layers > 0 {
			fmt.Fprintf(b, " below %d layers", r.Layers)
		}
		b.WriteByte('\n')
	}
	for _, m := range p.Macros {
		fmt.Fprintf(b, "macro %s\n", m)
	}
	for _, t := range p.Types {
		fmt.Fprintf(b, "type %s\n", t)
	}
	for _, f := range p.Files {
		fmt.Fprintf(b, "file %s\n", f)
	}
	if p.Volatile != nil {
		b.WriteString("volatile: ")
		showRefusal(b, text, p.Volatile)
	}
	fmt.Fprintf(b, "nesting %d, joins %d, leaves %d, layers %d\n", p.Nesting, p.Joins, p.Leaves, p.Layers)
}

func showScopes(b *strings.Builder, text string, p registry.Parsed) {
	at := func(i int) string {
		if i < 0 {
			return "?"
		}
		rest := text[i:]
		return "⟨" + rest[:min(len(rest), 6)] + "⟩"
	}
	for i, s := range p.Scopes {
		fmt.Fprintf(b, "%d: parent %d", i, s.Parent)
		for name, set := range map[string]bool{" output": s.Output} {
			if set {
				b.WriteString(name)
			}
		}
		if s.SetOperation {
			b.WriteString(" side")
		}
		if s.Star {
			b.WriteString(" star")
		}
		b.WriteByte('\n')
		for _, src := range s.Sources {
			name := "-"
			if src.Reference >= 0 {
				name = p.References[src.Reference].View
			}
			fmt.Fprintf(b, "  from %s %s\n", name, src.Alias)
		}
		for _, it := range s.Items {
			fmt.Fprintf(b, "  item %q aliased=%v %s\n", it.Name, it.Aliased, at(it.At))
		}
		for _, c := range s.Columns {
			fmt.Fprintf(b, "  column %s in %s %s\n", c.Name, c.Clause, at(c.At))
		}
		for _, j := range s.Joins {
			fmt.Fprintf(b, "  join natural=%v using=%v left=%v right=%v %s\n", j.Natural, j.Using, j.Left, j.Right, at(j.At))
		}
	}
}

func showColumns(b *strings.Builder, columns []viewkeeper.Column) {
	for _, c := range columns {
		fmt.Fprintf(b, "%s: %s\n", c.Name, c.Type)
	}
}

func showEngine(b *strings.Builder, e *registry.Engine) {
	fmt.Fprintf(b, "%s, digest of %d characters\n", e.Name, len(e.BaseDigest))
	for _, r := range e.Relations {
		fmt.Fprintf(b, "relation %s", r.Name)
		for _, c := range r.Columns {
			fmt.Fprintf(b, "; %s %s", c.Name, c.Type)
		}
		if r.Volatile != "" {
			fmt.Fprintf(b, "; volatile: %s", r.Volatile)
		}
		b.WriteByte('\n')
	}
	for _, m := range e.Macros {
		fmt.Fprintf(b, "macro %s table=%v", m.Name, m.Table)
		for _, r := range m.References {
			fmt.Fprintf(b, "; reads %s", r.View)
		}
		if m.Volatile != "" {
			fmt.Fprintf(b, "; volatile: %s", m.Volatile)
		}
		b.WriteByte('\n')
	}
	fmt.Fprintf(b, "types %s\n", strings.Join(e.Types, ", "))
}
