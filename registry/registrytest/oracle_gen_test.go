package registrytest_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// generator makes random statements over a world. Most of them are sensible, so
// that the catalog lives; some are not, so that there is something to refuse.
type generator struct {
	rand *rand.Rand
	base tables
	defs definitions
	// built is the last real build: generated bodies name columns that exist.
	built state
}

func pick[T any](g *generator, from []T) T { return from[g.rand.IntN(len(from))] }

func (g *generator) one(in int) bool { return g.rand.IntN(in) == 0 }

// source is a relation that a body reads, with the columns that it has now.
type source struct {
	ref     *ref
	columns []viewkeeper.Column
}

// source picks a relation; definitions more often than the base, so that chains,
// diamonds and stars grow.
func (g *generator) source(owner viewkeeper.Name) source {
	var names []viewkeeper.Name
	for _, n := range g.defs.names() {
		if n != owner && g.built[n].ok() || g.one(40) {
			names = append(names, n)
		}
	}
	if len(names) == 0 || g.one(4) {
		names = g.base.names()
	}
	n := pick(g, names)
	s := source{ref: &ref{name: n, qualified: true}, columns: g.base[n]}
	if s.columns == nil && g.built[n].ok() {
		s.columns = g.built[n].columns
	}
	if bare := (ref{name: n}); g.one(2) || g.one(30) {
		if got, ok := resolve(bare, owner, g.defs, g.base); ok && got == n || g.one(30) {
			s.ref = &bare
		}
	}
	if s.columns == nil {
		s.columns = []viewkeeper.Column{{Name: "a", Type: "INTEGER"}}
	}
	return s
}

func isNumber(c viewkeeper.Column) bool {
	switch c.Type {
	case "INTEGER", "BIGINT", "DOUBLE", "HUGEINT", "SMALLINT":
		return true
	}
	return false
}

var aliases = strings.Fields("a b c d e f g h n m s k v w")

// column is a column of s as an expression, with its type.
func (g *generator) column(s source) viewkeeper.Column {
	if g.one(60) {
		return viewkeeper.Column{Name: "nope", Type: "INTEGER"}
	}
	return pick(g, s.columns)
}

func (g *generator) item(s source, prefix string) outItem {
	c := g.column(s)
	e := prefix + ident(c.Name)
	switch {
	case g.one(2):
		return outItem{expr: e}
	case g.one(3):
		return outItem{e, pick(g, aliases)}
	case isNumber(c) && g.one(2):
		return outItem{e + pick(g, []string{" + 1", " * 2", " - 1", " / 2"}), pick(g, append(aliases, ""))}
	case c.Type == "VARCHAR" && g.one(2):
		return outItem{pick(g, []string{"upper", "lower", "length"}) + "(" + e + ")", pick(g, append(aliases, ""))}
	case g.one(40): // may not take the type
		return outItem{e + " + 1", pick(g, aliases)}
	}
	return outItem{e + "::" + pick(g, []string{"BIGINT", "VARCHAR", "DOUBLE", "INTEGER"}), pick(g, aliases)}
}

func (g *generator) items(s source, prefix string) []outItem {
	var out []outItem
	for range 1 + g.rand.IntN(3) {
		out = append(out, g.item(s, prefix))
	}
	return out
}

func from(s source, alias string) []part {
	return []part{lit(" FROM "), {ref: s.ref}, lit(alias)}
}

// body makes a body for a definition.
func (g *generator) body(owner viewkeeper.Name) body {
	s := g.source(owner)
	switch g.rand.IntN(11) {
	case 0, 1:
		return body{from: from(s, "")}
	case 2, 3:
		return body{items: g.items(s, ""), from: from(s, "")}
	case 4: // a join by a condition
		o := g.source(owner)
		l, r := g.column(s), g.column(o)
		return body{
			items: append(g.items(s, "x."), g.items(o, "y.")...),
			from:  append(from(s, " x JOIN "), part{ref: o.ref}, lit(" y")),
			tail:  []part{lit(" ON x." + ident(l.Name) + " = y." + ident(r.Name))},
		}
	case 5: // a join by common columns
		o := g.source(owner)
		var common []string
		for _, c := range s.columns {
			if slices.ContainsFunc(o.columns, func(d viewkeeper.Column) bool { return d.Name == c.Name }) {
				common = append(common, c.Name)
			}
		}
		if len(common) == 0 || s.ref.name == o.ref.name {
			return body{from: from(s, "")}
		}
		if g.one(2) {
			return body{from: append(from(s, " x NATURAL JOIN "), part{ref: o.ref}, lit(" y"))}
		}
		return body{from: append(from(s, " x JOIN "), part{ref: o.ref}, lit(" y USING ("+ident(pick(g, common))+")"))}
	case 6: // groups
		key := g.column(s)
		items := []outItem{{expr: ident(key.Name)}, {"count(*)", pick(g, aliases)}}
		if c := g.column(s); isNumber(c) {
			items = append(items, outItem{"sum(" + ident(c.Name) + ")", pick(g, aliases)})
		} else {
			items = append(items, outItem{"max(" + ident(c.Name) + ")", pick(g, aliases)})
		}
		return body{items: items, from: from(s, ""), tail: []part{lit(" GROUP BY " + ident(key.Name))}, grouped: true}
	case 7: // a set operation
		o := g.source(owner)
		a, b := g.column(s), g.column(o)
		star := g.one(3)
		left, right := "*", "*"
		if !star {
			left, right = ident(a.Name), ident(b.Name)
		}
		return body{
			items: []outItem{{expr: left}},
			from:  from(s, ""),
			tail:  append([]part{lit(" UNION ALL SELECT " + right)}, from(o, "")...),
			// the sides must stay alike
			grouped: true,
		}
	case 8: // a CTE that hides a name
		hidden := pick(g, []string{"q", "t", "v1", s.ref.name.View})
		c := g.column(s)
		return body{
			cte:   []part{lit("WITH " + hidden + " AS (SELECT *"), lit(" FROM "), {ref: s.ref}, lit(") ")},
			items: []outItem{{expr: ident(c.Name)}},
			from:  []part{lit(" FROM " + hidden)},
		}
	case 9: // a subquery
		o := g.source(owner)
		a, b := g.column(s), g.column(o)
		return body{
			items: g.items(s, ""),
			from:  from(s, ""),
			tail:  append(append([]part{lit(" WHERE " + ident(a.Name) + " IN (SELECT " + ident(b.Name))}, from(o, "")...), lit(")")),
		}
	}
	c := g.column(s)
	cond := ident(c.Name) + " IS NOT NULL"
	if isNumber(c) {
		cond = ident(c.Name) + " > 1"
	}
	return body{items: g.items(s, ""), from: from(s, ""), tail: []part{lit(" WHERE " + cond)}}
}

// reshaped changes the output of a definition in one way.
func (g *generator) reshaped(d *definition) body {
	b := d.body.clone()
	if len(b.items) == 0 || b.grouped || b.items[0].expr == "*" {
		return g.body(d.name)
	}
	i := g.rand.IntN(len(b.items))
	switch g.rand.IntN(5) {
	case 0:
		b.items = append(b.items, outItem{fmt.Sprint(g.rand.IntN(9)), pick(g, aliases)})
	case 1:
		b.items = slices.Insert(b.items, 0, outItem{"'x'", pick(g, aliases)})
	case 2:
		if len(b.items) > 1 {
			b.items = slices.Delete(b.items, i, i+1)
		} else {
			b.items[i].alias = pick(g, aliases)
		}
	case 3:
		b.items[i].alias = pick(g, aliases)
	case 4:
		if b.items[i].alias == "" {
			b.items[i].alias = pick(g, aliases)
		}
		b.items[i].expr = "(" + b.items[i].expr + ")::" + pick(g, []string{"BIGINT", "VARCHAR", "DOUBLE", "INTEGER"})
	}
	return b
}

func (g *generator) definition(name viewkeeper.Name, head string) *definition {
	d := &definition{name: name, head: head, body: g.body(name)}
	if g.one(8) {
		d.list = []string{"p", "q"}[:1+g.rand.IntN(2)]
	}
	return d
}

// name gives any name that a definition may have; few, so that names meet.
func (g *generator) name() viewkeeper.Name {
	n := viewkeeper.MakeName(pick(g, []string{"main", "main", "s1", "s1", "s2"}), fmt.Sprintf("v%d", g.rand.IntN(14)))
	if g.one(12) {
		n.View = pick(g, []string{"t", "u"}) // hides a base relation, or is one
	}
	return n
}

// existing gives a name that is there, of any name when there is none.
func (g *generator) existing() viewkeeper.Name {
	if names := g.defs.names(); len(names) > 0 && !g.one(30) {
		return pick(g, names)
	}
	return g.name()
}

// single makes one statement.
func (g *generator) single() change {
	n := g.rand.IntN(100)
	if few := len(g.defs) < 10; few && n >= 60 || len(g.defs) > 30 && n < 30 {
		n = (n + 50) % 100 // towards 10 to 30 definitions
	}
	switch {
	case n < 32:
		name := g.name()
		return change{kind: "create", def: g.definition(name, "CREATE VIEW")}
	case n < 44:
		name := g.existing()
		if d := g.defs[name]; d != nil && !g.one(4) {
			c := d.clone()
			c.head, c.comment = "CREATE OR REPLACE VIEW", nil
			c.body = g.reshaped(d)
			return change{kind: "create", def: c}
		}
		return change{kind: "create", def: g.definition(name, "CREATE OR REPLACE VIEW")}
	case n < 54:
		return change{kind: "create", def: g.definition(g.existing(), "CREATE OR REPLACE VIEW")}
	case n < 56: // the same again
		if d := g.defs[g.existing()]; d != nil {
			c := d.clone()
			c.head, c.comment = "CREATE OR REPLACE VIEW", nil
			return change{kind: "create", def: c}
		}
		return g.single()
	case n < 60:
		return change{kind: "create", def: g.definition(g.existing(), "CREATE VIEW IF NOT EXISTS")}
	case n < 80:
		c := change{kind: "drop", names: []viewkeeper.Name{g.existing()}, ifExists: g.one(3), cascade: g.one(4)}
		if g.one(4) {
			c.names = append(c.names, g.existing(), g.existing())
		}
		slices.SortFunc(c.names, viewkeeper.Name.Compare)
		c.names = slices.Compact(c.names)
		return c
	case n < 92:
		from := g.existing()
		to := g.name()
		to.Schema = from.Schema
		return change{kind: "rename", names: []viewkeeper.Name{from, to}}
	}
	c := change{kind: "comment", names: []viewkeeper.Name{g.existing()}}
	if !g.one(4) {
		text := pick(g, []string{"one", "it's two", ""})
		c.comment = &text
	}
	return c
}

// next makes one statement or change set.
func (g *generator) next() []change {
	if !g.one(6) {
		return []change{g.single()}
	}
	var set []change
	for range 2 + g.rand.IntN(3) {
		c := g.single()
		c.cascade = false // what else a cascade takes is only clear alone
		set = append(set, c)
	}
	return set
}
