package registrytest_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// The world of the random comparison: definitions as a structure that renders to
// SQL, so that what a text reads, and what it becomes by a rename, is known here
// without asking any parser.

// ref is a place where a body names a relation.
type ref struct {
	name      viewkeeper.Name
	qualified bool
	// alias is what a rename put behind the new name, "" for nothing.
	alias string
}

func (r ref) written() string {
	text := r.name.View
	if r.qualified {
		text = r.name.String()
	}
	return text + r.alias
}

// part is a piece of a body's text: a ref, or plain text.
type part struct {
	text string
	ref  *ref
}

func lit(text string) part { return part{text: text} }

// outItem is one output column of a body.
type outItem struct{ expr, alias string }

// body is SELECT items FROM from tail; without items it is SELECT *.
type body struct {
	cte     []part
	items   []outItem
	from    []part
	tail    []part
	grouped bool
}

func (b body) parts() []part {
	var items []string
	for _, it := range b.items {
		text := it.expr
		if it.alias != "" {
			text += " AS " + ident(it.alias)
		}
		items = append(items, text)
	}
	if len(items) == 0 {
		items = []string{"*"}
	}
	out := slices.Clone(b.cte)
	out = append(out, lit("SELECT "+strings.Join(items, ", ")))
	out = append(out, b.from...)
	return append(out, b.tail...)
}

func (b body) refs() []*ref {
	var out []*ref
	for _, p := range b.parts() {
		if p.ref != nil {
			out = append(out, p.ref)
		}
	}
	return out
}

// clone gives a body whose refs can be changed.
func (b body) clone() body {
	deep := func(ps []part) []part {
		out := slices.Clone(ps)
		for i := range out {
			if out[i].ref != nil {
				r := *out[i].ref
				out[i].ref = &r
			}
		}
		return out
	}
	b.cte, b.from, b.tail, b.items = deep(b.cte), deep(b.from), deep(b.tail), slices.Clone(b.items)
	return b
}

// definition is one definition of the world.
type definition struct {
	name    viewkeeper.Name
	list    []string
	body    body
	comment *string
	// head is how the statement began that made it.
	head string
}

// sql is the CREATE statement, each ref shown by show.
func (d *definition) sql(head string, show func(ref) string) string {
	var b strings.Builder
	b.WriteString(head + " " + d.name.String())
	if d.list != nil {
		quoted := make([]string, len(d.list))
		for i, c := range d.list {
			quoted[i] = ident(c)
		}
		b.WriteString("(" + strings.Join(quoted, ", ") + ")")
	}
	b.WriteString(" AS ")
	for _, p := range d.body.parts() {
		if p.ref != nil {
			b.WriteString(show(*p.ref))
		} else {
			b.WriteString(p.text)
		}
	}
	return b.String()
}

func (d *definition) text() string { return d.sql(d.head, ref.written) }

// same reports whether both make the same definition, however they are made.
func (d *definition) same(o *definition) bool {
	return d.sql("", ref.written) == o.sql("", ref.written)
}

func (d *definition) clone() *definition {
	c := *d
	c.body = d.body.clone()
	return &c
}

func ident(s string) string {
	for i := range len(s) {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return viewkeeper.QuoteIdent(s)
		}
	}
	return s
}

// definitions is the catalog as the world has it.
type definitions map[viewkeeper.Name]*definition

func (d definitions) clone() definitions { return maps.Clone(d) }

func (d definitions) names() []viewkeeper.Name {
	return slices.SortedFunc(maps.Keys(d), viewkeeper.Name.Compare)
}

// tables is the base.
type tables map[viewkeeper.Name][]viewkeeper.Column

func (t tables) names() []viewkeeper.Name {
	return slices.SortedFunc(maps.Keys(t), viewkeeper.Name.Compare)
}

func (t tables) relations() []registry.Relation {
	var out []registry.Relation
	for _, n := range t.names() {
		out = append(out, registry.Relation{Name: n, Columns: t[n]})
	}
	return out
}

func (t tables) sql() string {
	var b strings.Builder
	schemas := map[string]bool{"main": true}
	for _, n := range t.names() {
		if !schemas[n.Schema] {
			schemas[n.Schema] = true
			fmt.Fprintf(&b, "CREATE SCHEMA %s;\n", n.Schema)
		}
		var cols []string
		for _, c := range t[n] {
			cols = append(cols, c.Name+" "+c.Type)
		}
		fmt.Fprintf(&b, "CREATE TABLE %s(%s);\n", n, strings.Join(cols, ", "))
	}
	return b.String()
}

// resolve says what a ref of a definition means: an unqualified name is the
// definition's own schema's first, then main's. False when there is no such thing.
func resolve(r ref, owner viewkeeper.Name, defs definitions, base tables) (viewkeeper.Name, bool) {
	there := func(n viewkeeper.Name) bool { return defs[n] != nil || base[n] != nil }
	if r.qualified {
		return r.name, there(r.name)
	}
	if own := viewkeeper.MakeName(owner.Schema, r.name.View); there(own) {
		return own, true
	}
	main := viewkeeper.MakeName("", r.name.View)
	return main, there(main)
}

// meanings says what each ref of a definition means, in order.
func meanings(d *definition, defs definitions, base tables) []viewkeeper.Name {
	var out []viewkeeper.Name
	for _, r := range d.body.refs() {
		n, _ := resolve(*r, d.name, defs, base)
		out = append(out, n)
	}
	return out
}

// reads gives what a definition reads, each thing once, sorted; missing says that
// something is not there.
func reads(d *definition, defs definitions, base tables) (names []viewkeeper.Name, missing bool) {
	for _, r := range d.body.refs() {
		n, ok := resolve(*r, d.name, defs, base)
		missing = missing || !ok
		if !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	slices.SortFunc(names, viewkeeper.Name.Compare)
	return names, missing
}
