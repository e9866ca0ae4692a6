package registry

import (
	"cmp"

	"github.com/benbjohnson/immutable"

	"github.com/viewkeeper/viewkeeper"
)

// graph is all definitions of one catalog at one moment. It is persistent: a
// changed copy costs a few nodes of its trees, so every factory and every trial
// has one of its own and a rollback is to forget it.
//
// Invariants, between trials:
//
//   - edges holds (candidate, reader) for every name that a reference of a
//     reader's text may resolve to, whether the name exists or not;
//   - an entry's refs are resolved against the names in entries and the base;
//   - along every read that resolves to an entry the rank grows, except within
//     cycles, where it is rankCyclic;
//   - broken holds exactly the names of entries with a failure, cyclic those
//     whose failure is that they read themselves;
//   - digest and built are sums over the entries (see setHash).
type graph struct {
	entries *immutable.SortedMap[viewkeeper.Name, *entry]
	edges   *immutable.SortedMap[edge, struct{}]
	broken  *immutable.SortedMap[viewkeeper.Name, struct{}]
	cyclic  *immutable.SortedMap[viewkeeper.Name, struct{}]
	digest  setHash
	built   setHash
}

// edge says that reader may read target.
type edge struct{ target, reader viewkeeper.Name }

type byName struct{}

func (byName) Compare(a, b viewkeeper.Name) int { return a.Compare(b) }

type byEdge struct{}

func (byEdge) Compare(a, b edge) int {
	return cmp.Or(a.target.Compare(b.target), a.reader.Compare(b.reader))
}

func newGraph() *graph {
	return &graph{
		entries: immutable.NewSortedMap[viewkeeper.Name, *entry](byName{}),
		edges:   immutable.NewSortedMap[edge, struct{}](byEdge{}),
		broken:  immutable.NewSortedMap[viewkeeper.Name, struct{}](byName{}),
		cyclic:  immutable.NewSortedMap[viewkeeper.Name, struct{}](byName{}),
	}
}

// clone gives a graph that can be changed without g seeing it.
func (g *graph) clone() *graph {
	c := *g
	return &c
}

// get gives an entry or nil.
func (g *graph) get(name viewkeeper.Name) *entry {
	e, _ := g.entries.Get(name)
	return e
}

// put adds or replaces an entry, with everything that is derived from it.
func (g *graph) put(e *entry) {
	name := e.name()
	old := g.get(name)
	if old != nil {
		g.digest.sub(old.rowHash)
		g.built.sub(old.built)
	}
	if old == nil || old.source != e.source {
		if old != nil {
			g.unlink(old, e)
		}
		for _, c := range e.source.candidates {
			g.edges = g.edges.Set(edge{c, name}, struct{}{})
		}
	}
	g.digest.add(e.rowHash)
	g.built.add(e.built)
	g.entries = g.entries.Set(name, e)
	g.broken = mark(g.broken, name, e.failure != nil)
	g.cyclic = mark(g.cyclic, name, e.failure != nil && e.failure.cycle)
}

// remove takes an entry away.
func (g *graph) remove(name viewkeeper.Name) {
	e := g.get(name)
	if e == nil {
		return
	}
	g.digest.sub(e.rowHash)
	g.built.sub(e.built)
	g.unlink(e, nil)
	g.entries = g.entries.Delete(name)
	g.broken = mark(g.broken, name, false)
	g.cyclic = mark(g.cyclic, name, false)
}

// unlink removes the edges of old; next, which may be nil, adds its own after.
func (g *graph) unlink(old, next *entry) {
	for _, c := range old.source.candidates {
		if next == nil || !next.source.mayRead(c) {
			g.edges = g.edges.Delete(edge{c, old.name()})
		}
	}
}

func mark(set *immutable.SortedMap[viewkeeper.Name, struct{}], name viewkeeper.Name, in bool) *immutable.SortedMap[viewkeeper.Name, struct{}] {
	_, was := set.Get(name)
	switch {
	case in && !was:
		return set.Set(name, struct{}{})
	case !in && was:
		return set.Delete(name)
	}
	return set
}

// mentioners calls f with every entry whose text mentions a name that may be
// name, in order, until f returns false.
func (g *graph) mentioners(name viewkeeper.Name, f func(*entry) bool) {
	it := g.edges.Iterator()
	for it.Seek(edge{target: name}); !it.Done(); {
		e, _, ok := it.Next()
		if !ok || e.target != name {
			return
		}
		if r := g.get(e.reader); r != nil && !f(r) {
			return
		}
	}
}

// readers gives the entries with a reference that resolves to name, in order.
func (g *graph) readers(name viewkeeper.Name) []*entry {
	var out []*entry
	g.mentioners(name, func(e *entry) bool {
		if e.readsName(name) {
			out = append(out, e)
		}
		return true
	})
	return out
}

// each calls f with every entry in the order of names until f returns false,
// from the first name at or after from.
func (g *graph) each(from viewkeeper.Name, f func(*entry) bool) {
	it := g.entries.Iterator()
	for it.Seek(from); !it.Done(); {
		_, e, ok := it.Next()
		if !ok || !f(e) {
			return
		}
	}
}

func names(set *immutable.SortedMap[viewkeeper.Name, struct{}]) []viewkeeper.Name {
	out := make([]viewkeeper.Name, 0, set.Len())
	for it := set.Iterator(); !it.Done(); {
		n, _, _ := it.Next()
		out = append(out, n)
	}
	return out
}
