package registrytest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// catalog finds a relation's columns; false when there is none.
type catalog func(viewkeeper.Name) ([]viewkeeper.Column, bool)

// binder plans one query over a catalog. Like the parser it throws its first
// error, a *registry.PlanError.
type binder struct {
	lookup catalog
}

// bindQuery plans q and gives its output columns as a view over it would have
// them: literals settled, names made unique.
func bindQuery(q *query, list []string, lookup catalog) (cols []viewkeeper.Column, err *registry.PlanError) {
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(*registry.PlanError)
			if !ok {
				panic(r)
			}
			cols, err = nil, pe
		}
	}()
	b := &binder{lookup: lookup}
	cols = settleAll(b.query(q, nil, nil))
	if len(list) > len(cols) {
		bindFail(-1, "the column list has %d names, the query %d columns", len(list), len(cols))
	}
	for i, name := range list {
		cols[i].Name = name
	}
	return uniqueNames(cols), nil
}

func bindFail(at int, format string, args ...any) {
	panic(planErr(at, viewkeeper.CodeBind, format, args...))
}

func settleAll(cols []viewkeeper.Column) []viewkeeper.Column {
	for i := range cols {
		cols[i].Type = settle(cols[i].Type)
	}
	return cols
}

// uniqueNames numbers repeated names as the engine does: a, a_1, and a_1_1 when
// a_1 was there as well.
func uniqueNames(cols []viewkeeper.Column) []viewkeeper.Column {
	seen := map[string]int{}
	for i := range cols {
		low := viewkeeper.Fold(cols[i].Name)
		if _, ok := seen[low]; !ok {
			seen[low]++
			continue
		}
		name := cols[i].Name + "_" + strconv.Itoa(seen[low])
		for seen[viewkeeper.Fold(name)] > 0 {
			seen[low]++
			name = cols[i].Name + "_" + strconv.Itoa(seen[low])
		}
		cols[i].Name = name
		seen[viewkeeper.Fold(name)]++
	}
	return cols
}

// boundCTE is a CTE that is visible while binding; it is bound when it is read,
// so that an unused one never is.
type boundCTE struct {
	name    string
	outer   *boundCTE
	q       *query
	columns []viewkeeper.Column
}

// relation is one item of a FROM clause with its columns.
type relation struct {
	alias   string
	schema  string
	columns []viewkeeper.Column
	// hidden are columns that a USING or NATURAL join merged into an earlier
	// relation's: a bare name and a bare * do not see them.
	hidden map[int]bool
}

func (r *relation) find(name string) int {
	for i, c := range r.columns {
		if viewkeeper.Fold(c.Name) == name {
			return i
		}
	}
	return -1
}

// scope is a SELECT while it is bound.
type scope struct {
	relations []*relation
	outer     *scope
	ctes      *boundCTE
	// aliases are the select list's so far, for expressions that may use them.
	aliases map[string]typed
	// grouped says that the SELECT aggregates; keys are its GROUP BY expressions.
	grouped bool
	keys    map[string]bool
}

func (b *binder) query(q *query, outer *scope, ctes *boundCTE) []viewkeeper.Column {
	for _, c := range q.ctes {
		ctes = &boundCTE{name: c.name, outer: ctes, q: c.q}
	}
	cols, last := b.set(q.body, outer, ctes)
	for _, e := range q.orderBy {
		b.orderBy(e, cols, last)
	}
	return cols
}

// orderBy checks one ORDER BY expression: an output column's name, or else
// anything that the SELECT's own scope has. last is nil after a set operation.
func (b *binder) orderBy(e expr, cols []viewkeeper.Column, last *scope) {
	if c, ok := e.(*colRef); ok && len(c.parts) == 1 {
		for _, col := range cols {
			if viewkeeper.Fold(col.Name) == c.parts[0].text {
				return
			}
		}
	}
	if _, ok := e.(*literal); ok {
		return
	}
	if last == nil {
		bindFail(e.place(), "ORDER BY after a set operation takes output columns only")
	}
	b.checked(last, e)
}

func (b *binder) set(s setExpr, outer *scope, ctes *boundCTE) ([]viewkeeper.Column, *scope) {
	switch s := s.(type) {
	case *selectNode:
		return b.selectNode(s, outer, ctes)
	case *nested:
		return b.query(s.q, outer, ctes), nil
	}
	op := s.(*setOp)
	left, _ := b.set(op.left, outer, ctes)
	right, _ := b.set(op.right, outer, ctes)
	if len(left) != len(right) {
		bindFail(op.at, "Set operations can only apply to expressions with the same number of result columns")
	}
	for i := range left {
		typ, ok := unionType(left[i].Type, right[i].Type)
		if !ok {
			panic(planErr(op.at, viewkeeper.CodeNotAllowed, "the model planner does not know the common type of %s and %s", left[i].Type, right[i].Type))
		}
		left[i].Type = typ
	}
	return left, nil
}

func (b *binder) selectNode(s *selectNode, outer *scope, ctes *boundCTE) ([]viewkeeper.Column, *scope) {
	sc := &scope{outer: outer, ctes: ctes, aliases: map[string]typed{}, keys: map[string]bool{}}
	if s.from != nil {
		b.from(sc, s.from)
	}
	items := b.expand(sc, s.items)

	// The engine binds WHERE before the select list, and lets it use the list's
	// aliases all the same; the aliases are known once the list is bound.
	bound := make([]typed, len(items))
	for i, it := range items {
		bound[i] = b.expr(sc, it.e)
		if it.alias != "" {
			sc.aliases[viewkeeper.Fold(it.alias)] = bound[i]
			bound[i].name = it.alias
		}
	}
	if s.where != nil {
		if w := b.expr(sc, s.where); w.aggregate {
			bindFail(aggregateIn(s.where), "WHERE clause cannot contain aggregates!")
		}
	}
	sc.grouped = len(s.groupBy) > 0 || s.groupAll || s.having != nil
	for _, t := range bound {
		sc.grouped = sc.grouped || t.aggregate
		if s.groupAll && !t.aggregate {
			sc.keys[t.key] = true
		}
	}
	for _, e := range s.groupBy {
		b.groupKey(sc, e, bound)
	}
	if s.having != nil {
		b.checked(sc, s.having)
	}
	cols := make([]viewkeeper.Column, len(items))
	for i, it := range items {
		b.checkGrouped(sc, it.e)
		cols[i] = viewkeeper.Column{Name: bound[i].name, Type: bound[i].typ}
	}
	return cols, sc
}

// groupKey binds one GROUP BY expression; a number is a place in the select list.
func (b *binder) groupKey(sc *scope, e expr, items []typed) {
	if l, ok := e.(*literal); ok && l.typ == typeIntegerLiteral {
		n, _ := strconv.Atoi(l.tok.text)
		if n < 1 || n > len(items) {
			bindFail(l.place(), "GROUP BY term out of range - should be between 1 and %d", len(items))
		}
		sc.keys[items[n-1].key] = true
		return
	}
	t := b.expr(sc, e)
	if t.aggregate {
		bindFail(e.place(), "GROUP BY clause cannot contain aggregates!")
	}
	sc.keys[t.key] = true
}

// from adds f's relations to the scope.
func (b *binder) from(sc *scope, f fromItem) {
	switch f := f.(type) {
	case *tableSource:
		sc.relations = append(sc.relations, b.table(sc, f))
	case *subSource:
		cols := uniqueNames(settleAll(b.query(f.q, nil, sc.ctes)))
		sc.relations = append(sc.relations, &relation{alias: f.alias, columns: cols})
	case *join:
		first := len(sc.relations)
		b.from(sc, f.left)
		mid := len(sc.relations)
		b.from(sc, f.right)
		switch {
		case f.natural:
			b.using(sc, first, mid, b.common(sc, first, mid, f))
		case len(f.using) > 0:
			b.using(sc, first, mid, f.using)
		case f.on != nil:
			b.expr(sc, f.on)
		}
	}
}

// unique refuses two relations of one name where something needs to tell them
// apart: the engine minds only then.
func (sc *scope) unique(at int, relations []*relation) {
	for i, r := range relations {
		for _, o := range relations[:i] {
			if o.alias == r.alias && o.schema == r.schema && r.alias != "" {
				bindFail(at, "Ambiguous reference to table %q (duplicate alias %q)", r.alias, r.alias)
			}
		}
	}
}

func (b *binder) table(sc *scope, f *tableSource) *relation {
	alias, schema := f.alias, ""
	if alias == "" {
		alias = f.name
	}
	if f.schema == "" {
		for c := sc.ctes; c != nil; c = c.outer {
			if c.name != f.name {
				continue
			}
			if c.columns == nil {
				c.columns = uniqueNames(settleAll(b.query(c.q, nil, c.outer)))
			}
			return &relation{alias: alias, columns: c.columns}
		}
	}
	name := viewkeeper.MakeName(f.schema, f.name)
	cols, ok := b.lookup(name)
	if !ok {
		bindFail(f.at, "Table with name %s does not exist!", name)
	}
	if f.alias == "" {
		schema = name.Schema
	}
	return &relation{alias: alias, schema: schema, columns: cols}
}

// common gives the columns that the two sides of a NATURAL join share.
func (b *binder) common(sc *scope, first, mid int, f *join) []ident {
	var names []ident
	for _, l := range sc.relations[first:mid] {
		for i, c := range l.columns {
			if l.hidden[i] {
				continue
			}
			name := viewkeeper.Fold(c.Name)
			for _, r := range sc.relations[mid:] {
				if r.find(name) >= 0 {
					names = append(names, ident{name, f.at})
					break
				}
			}
		}
	}
	if names == nil {
		bindFail(f.at, "No columns found to join on in NATURAL JOIN.")
	}
	return names
}

// using merges the named columns of the relations from mid on into those before.
func (b *binder) using(sc *scope, first, mid int, names []ident) {
	side := func(rels []*relation, n ident, what string) (*relation, int) {
		var found *relation
		col := -1
		for _, r := range rels {
			if i := r.find(n.text); i >= 0 && !r.hidden[i] {
				if found != nil {
					bindFail(n.at, "Column name %q is ambiguous: it exists more than once on %s side of join.", n.text, what)
				}
				found, col = r, i
			}
		}
		if found == nil {
			bindFail(n.at, "Column %q does not exist on %s side of join!", n.text, what)
		}
		return found, col
	}
	sc.unique(-1, sc.relations)
	for _, n := range names {
		side(sc.relations[first:mid], n, "left")
		r, j := side(sc.relations[mid:], n, "right")
		if r.hidden == nil {
			r.hidden = map[int]bool{}
		}
		r.hidden[j] = true
	}
}

// expand replaces * and alias.* by the columns that they stand for.
func (b *binder) expand(sc *scope, items []item) []item {
	var out []item
	for _, it := range items {
		star, ok := it.e.(*starExpr)
		if !ok {
			out = append(out, it)
			continue
		}
		if len(sc.relations) == 0 {
			bindFail(star.at, "* expression without FROM clause!")
		}
		sc.unique(-1, slices.DeleteFunc(slices.Clone(sc.relations), func(r *relation) bool {
			return star.qualifier != "" && r.alias != star.qualifier
		}))
		found := false
		for n, r := range sc.relations {
			if star.qualifier != "" && r.alias != star.qualifier {
				continue
			}
			found = true
			for i := range r.columns {
				if star.qualifier == "" && r.hidden[i] {
					continue
				}
				out = append(out, item{e: &starColumn{relation: n, column: i, at: star.at}})
			}
		}
		if !found {
			bindFail(star.at, "Referenced table %q not found!", star.qualifier)
		}
	}
	return out
}

// starColumn is a column that a star stands for.
type starColumn struct{ relation, column, at int }

func (e *starColumn) place() int { return e.at }

func columnKey(relation *relation, column int) string {
	return relation.alias + "." + strings.ToLower(relation.columns[column].Name)
}
