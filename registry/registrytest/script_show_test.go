package registrytest_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cockroachdb/datadriven"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// show gives a decision as the scripts hold it: the verdict first, then a line
// for each thing that it lists. A place is line:column and the text found there.
func (w *world) show(d *datadriven.TestData, o *registry.Outcome) string {
	w.seen.cases++
	dec := o.Decision
	var b strings.Builder
	b.WriteString(string(dec.Verdict))
	if dec.Code != "" {
		w.seen.codes[dec.Code] = true
		fmt.Fprintf(&b, " %s", dec.Code)
	}
	b.WriteString(at(dec.SQL, dec.Position))
	if dec.Message != "" {
		fmt.Fprintf(&b, "\n  %s", w.oneLine(dec.Message))
	}
	for _, c := range dec.Changed {
		fmt.Fprintf(&b, "\n%s %s", c.Action, c.Name)
		if c.RenamedTo != nil {
			fmt.Fprintf(&b, " to %s", c.RenamedTo)
		}
		switch {
		case len(c.ColumnsBefore) > 0 && len(c.ColumnsAfter) > 0 && fmt.Sprint(c.ColumnsBefore) == fmt.Sprint(c.ColumnsAfter):
			fmt.Fprintf(&b, " %s as before", columns(c.ColumnsAfter))
		case len(c.ColumnsBefore) > 0 && len(c.ColumnsAfter) > 0:
			fmt.Fprintf(&b, " %s -> %s", columns(c.ColumnsBefore), columns(c.ColumnsAfter))
		case len(c.ColumnsBefore) > 0:
			fmt.Fprintf(&b, " was %s", columns(c.ColumnsBefore))
		case len(c.ColumnsAfter) > 0:
			fmt.Fprintf(&b, " %s", columns(c.ColumnsAfter))
		}
	}
	for _, x := range dec.Broken {
		fmt.Fprintf(&b, "\nbreaks %s", x.Name)
		if x.RootCause != nil {
			fmt.Fprintf(&b, " because of %s", x.RootCause)
		}
		fmt.Fprintf(&b, "%s: %s", at(w.textOf(o, x.Name), x.Position), w.oneLine(x.Reason))
	}
	for _, n := range dec.Repaired {
		fmt.Fprintf(&b, "\nrepairs %s", n)
	}
	for _, n := range dec.Dropped {
		fmt.Fprintf(&b, "\ndrops %s", n)
	}
	for _, x := range dec.Warnings {
		w.seen.codes[x.Code] = true
		text := w.textOf(o, x.Name)
		if isTarget(dec, x.Name) || dec.Verdict == viewkeeper.Unchanged {
			text = dec.SQL // a warning about the statement's own text is placed in it
		}
		fmt.Fprintf(&b, "\nwarns %s %s%s: %s", x.Code, x.Name, at(text, x.Position), w.oneLine(x.Message))
	}
	return b.String()
}

func isTarget(d viewkeeper.Decision, name viewkeeper.Name) bool {
	for _, c := range d.Changed {
		if c.Name == name && c.Action != viewkeeper.ActionOutputChanged {
			return true
		}
	}
	return false
}

// textOf is the text of a definition as it would be after the statement.
func (w *world) textOf(o *registry.Outcome, name viewkeeper.Name) string {
	for _, r := range o.Rows {
		if r.Name == name && r.Live() {
			return r.Definition.SQL
		}
	}
	stmt, _ := ddl.Parse(o.Decision.SQL)
	statements := []viewkeeper.Statement{stmt}
	if set, ok := stmt.(*viewkeeper.ChangeSet); ok {
		statements = set.Statements
	}
	for _, s := range statements {
		if c, ok := s.(*viewkeeper.Create); ok && c.Name == name {
			return c.SQL
		}
	}
	if d, ok := w.catalog.Snapshot().Definition(name); ok {
		return d.Row.Definition.SQL
	}
	return ""
}

func (w *world) oneLine(s string) string {
	return strings.ReplaceAll(strings.ReplaceAll(s, w.lake, "LAKE"), "\n", "⏎")
}

// at shows a place with the text that stands there, up to a blank.
func at(text string, p *viewkeeper.Position) string {
	if p == nil {
		return ""
	}
	found := ""
	if p.Offset < len(text) {
		found, _, _ = strings.Cut(text[p.Offset:], "\n")
		for n := range found {
			if n >= 16 {
				found = found[:n] + "…"
				break
			}
		}
	}
	if found = strings.ReplaceAll(found, "\x00", "␀"); !utf8.ValidString(found) {
		found = "(not UTF-8)"
	}
	return fmt.Sprintf(" at %d:%d ⟨%s⟩", p.Line, p.Column, found)
}

func columns(cols []viewkeeper.Column) string {
	parts := make([]string, len(cols))
	for i, c := range cols {
		parts[i] = c.Name + " " + c.Type
	}
	if len(parts) > 12 {
		parts = append(parts[:12], fmt.Sprintf("… %d columns", len(cols)))
	}
	return "(" + strings.Join(parts, ", ") + ")"
}

func (w *world) listing() string { return w.oneLines(listing(w.catalog.Snapshot())) }

func (w *world) oneLines(s string) string { return strings.ReplaceAll(s, w.lake, "LAKE") }

// listing gives a line for each definition.
func listing(f *registry.Factory) string {
	var b strings.Builder
	for d := range f.Definitions() {
		fmt.Fprintf(&b, "%s %s v%s", d.Row.Name, d.Row.Definition.Kind, d.Row.Version)
		if d.Row.Definition.ID != d.Row.Version {
			fmt.Fprintf(&b, " id %s", d.Row.Definition.ID)
		}
		if d.OK() {
			fmt.Fprintf(&b, " %s", columns(d.Columns))
		}
		var reads []string
		for _, r := range d.Reads {
			reads = append(reads, string(r.Kind)+" "+r.Name)
		}
		fmt.Fprintf(&b, " reads [%s]", strings.Join(reads, ", "))
		if d.UpdateGroup != 0 {
			fmt.Fprintf(&b, " group %d", d.UpdateGroup)
		}
		if d.Row.Definition.Comment != nil {
			fmt.Fprintf(&b, " comment %q", *d.Row.Definition.Comment)
		}
		if x := d.Failure; x != nil {
			fmt.Fprintf(&b, "\n  broken at %s, %s%s: %s", x.Stage, x.Code, at(d.Row.Definition.SQL, x.Position), strings.ReplaceAll(x.Reason, "\n", "⏎"))
			if x.RootCause != nil {
				fmt.Fprintf(&b, " (because of %s)", x.RootCause)
			}
		}
		b.WriteString("\n")
	}
	if b.Len() == 0 {
		return "(empty)"
	}
	return b.String()
}

func (w *world) showTexts(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	for _, a := range d.CmdArgs {
		n, err := viewkeeper.ParseName(a.Key)
		if err != nil {
			t.Fatal(err)
		}
		def, ok := w.catalog.Snapshot().Definition(n)
		if !ok {
			fmt.Fprintf(&b, "%s: not there\n", n)
			continue
		}
		text := def.Row.Definition.SQL
		if quoted := fmt.Sprintf("%+q", text); quoted != `"`+strings.ReplaceAll(text, `"`, `\"`)+`"` {
			text = quoted // it holds more than what prints
		}
		fmt.Fprintf(&b, "%s: %s\n", n, text)
	}
	return b.String()
}

func (w *world) showLineage(t *testing.T, d *datadriven.TestData) string {
	var b strings.Builder
	for _, a := range d.CmdArgs {
		n, err := viewkeeper.ParseName(a.Key)
		if err != nil {
			t.Fatal(err)
		}
		l, ok := w.catalog.Snapshot().Lineage(n, registry.Up, 0)
		if !ok {
			t.Fatalf("%s: no lineage of %s", d.Pos, n)
		}
		for _, e := range l.Edges {
			fmt.Fprintf(&b, "%s %s -> %s %s\n", e.From.Kind, e.From.Name, e.To.Kind, e.To.Name)
		}
	}
	return b.String()
}

func asJSON(t *testing.T, d viewkeeper.Decision) string {
	b, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
