package registrytest

import (
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// The part of the analysis that needs no catalog: what a text reads, with CTE
// scoping resolved, and its SELECT nodes.

// refWalk collects Parsed from a tree.
type refWalk struct {
	out      registry.Parsed
	volatile *registry.PlanError
	types    map[string]bool
	depth    int
}

// cteScope is one CTE that is visible at a place; inner ones come first. uses
// says whether anything that is itself read has read it.
type cteScope struct {
	name  string
	outer *cteScope
	// reads is run once, when the CTE is found to be read.
	walk func(unused bool)
	done bool
}

func (c *cteScope) find(name string) *cteScope {
	for ; c != nil; c = c.outer {
		if c.name == name {
			return c
		}
	}
	return nil
}

// place is where in the tree the walk is.
type place struct {
	ctes *cteScope
	// parent is the scope that columns may be taken from, -1 at the top.
	parent int
	output bool
	set    bool
	layers int
	unused bool
	depth  int
}

// analyse gives what the text of a query says by itself.
func analyse(q *query) registry.Parsed {
	w := &refWalk{types: map[string]bool{}}
	w.query(q, place{parent: -1, output: true})
	w.sortReferences()
	for t := range w.types {
		w.out.Types = append(w.out.Types, t)
	}
	slices.Sort(w.out.Types)
	w.out.Volatile = w.volatile
	w.out.Nesting = w.depth
	return w.out
}

func (w *refWalk) query(q *query, at place) {
	at.depth++
	w.depth = max(w.depth, at.depth)
	var scopes []*cteScope
	for _, c := range q.ctes {
		inner := at
		inner.output, inner.set = false, false
		sub := c.q
		s := &cteScope{name: c.name, outer: at.ctes}
		s.walk = func(unused bool) {
			inner.unused = unused
			w.query(sub, inner)
		}
		at.ctes = s
		scopes = append(scopes, s)
	}
	w.set(q.body, at)
	for _, e := range q.orderBy {
		w.expr(e, len(w.out.Scopes)-1, "order", at)
	}
	// What has not been read by now is read by nothing. Later CTEs first: an unused
	// one may be the only reader of an earlier one, which is then unused as well.
	for _, s := range slices.Backward(scopes) {
		if !s.done {
			s.done = true
			s.walk(true)
		}
	}
}

func (w *refWalk) set(s setExpr, at place) {
	switch s := s.(type) {
	case *selectNode:
		w.selectNode(s, at)
	case *nested:
		w.query(s.q, at)
	case *setOp:
		at.set = true
		w.set(s.left, at)
		w.set(s.right, at)
	}
}

func (w *refWalk) selectNode(s *selectNode, at place) {
	computed := []expr{s.having}
	for _, it := range s.items {
		computed = append(computed, it.e)
	}
	if len(s.groupBy) > 0 || s.groupAll || aggregateIn(computed...) >= 0 {
		at.layers++
	}
	w.out.Layers = max(w.out.Layers, at.layers)
	index := len(w.out.Scopes)
	w.out.Scopes = append(w.out.Scopes, registry.Scope{Parent: at.parent, Output: at.output, SetOperation: at.set})
	if s.from != nil {
		w.from(s.from, index, at)
	}
	for _, it := range s.items {
		scope := &w.out.Scopes[index]
		if _, ok := it.e.(*starExpr); ok {
			scope.Star = true
			continue
		}
		rec := registry.Item{Name: it.alias, Aliased: it.alias != "", At: it.e.place()}
		if c, ok := it.e.(*colRef); ok && it.alias == "" {
			rec.Name = c.parts[len(c.parts)-1].text
		}
		scope.Items = append(scope.Items, rec)
		w.expr(it.e, index, "select", at)
	}
	w.expr(s.where, index, "where", at)
	for _, e := range s.groupBy {
		w.expr(e, index, "group", at)
	}
	w.expr(s.having, index, "having", at)
}

// from adds the sources of f to the scope and gives their indexes.
func (w *refWalk) from(f fromItem, scope int, at place) []int {
	add := func(src registry.Source) []int {
		s := &w.out.Scopes[scope]
		s.Sources = append(s.Sources, src)
		return []int{len(s.Sources) - 1}
	}
	switch f := f.(type) {
	case *tableSource:
		alias := f.alias
		if alias == "" {
			alias = f.name
		}
		if f.schema == "" {
			if c := at.ctes.find(f.name); c != nil {
				if !c.done {
					c.done = true
					c.walk(at.unused)
				}
				return add(registry.Source{Reference: -1, Alias: alias})
			}
		}
		w.out.Leaves++
		w.out.References = append(w.out.References, registry.TableRef{
			Schema: f.schema, View: f.name, At: f.at, End: f.end, Unused: at.unused, Layers: at.layers,
		})
		return add(registry.Source{Reference: len(w.out.References) - 1, Alias: alias})
	case *subSource:
		at.output, at.set, at.parent = false, false, -1
		w.query(f.q, at)
		return add(registry.Source{Reference: -1, Alias: f.alias})
	case *join:
		w.out.Joins++
		left := w.from(f.left, scope, at)
		right := w.from(f.right, scope, at)
		if f.natural || len(f.using) > 0 {
			j := registry.Join{Natural: f.natural, Left: left, Right: right, At: f.at}
			for _, u := range f.using {
				j.Using = append(j.Using, u.text)
			}
			s := &w.out.Scopes[scope]
			s.Joins = append(s.Joins, j)
		}
		w.expr(f.on, scope, "join", at)
		return append(slices.Clone(left), right...)
	}
	return nil
}

func (w *refWalk) expr(e expr, scope int, clause string, at place) {
	sub := at
	sub.parent, sub.output, sub.set = scope, false, false
	switch e := e.(type) {
	case nil:
		return
	case *colRef:
		if len(e.parts) == 1 {
			s := &w.out.Scopes[scope]
			s.Columns = append(s.Columns, registry.ColumnUse{Name: e.parts[0].text, At: e.parts[0].at, Clause: clause})
		}
	case *call:
		if volatileFunction(e.name) && w.volatile == nil {
			w.volatile = planErr(e.at, viewkeeper.CodeVolatile, "%s() is volatile or depends on time", e.name)
		}
	case *subquery:
		if e.exists {
			sub.layers++
		}
		w.query(e.q, sub)
	case *inQuery:
		w.query(e.q, sub)
	}
	for _, c := range children(e) {
		w.expr(c, scope, clause, at)
	}
}

func volatileFunction(name string) bool {
	return name == "random" || name == "now"
}

// sortReferences puts the references in the order of their places: CTEs are
// walked where they are read, which is after where they stand.
func (w *refWalk) sortReferences() {
	refs := w.out.References
	order := make([]int, len(refs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return refs[a].At - refs[b].At })
	sorted := make([]registry.TableRef, len(refs))
	moved := make([]int, len(refs))
	for to, from := range order {
		sorted[to] = refs[from]
		moved[from] = to
	}
	w.out.References = sorted
	for i := range w.out.Scopes {
		for j := range w.out.Scopes[i].Sources {
			if src := &w.out.Scopes[i].Sources[j]; src.Reference >= 0 {
				src.Reference = moved[src.Reference]
			}
		}
	}
	if len(refs) == 0 {
		w.out.References = nil
	}
}

// upperType is the type's name without its arguments.
func upperType(t string) string {
	name, _, _ := strings.Cut(t, "(")
	return name
}
