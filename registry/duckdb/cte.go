package duckdb

import (
	"iter"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// walkedRef is a reference with the CTE that it stands in, which decides at the
// end whether it is read at all, and below how many layers.
type walkedRef struct {
	registry.TableRef
	owner *cte
}

// cte is one WITH element, and who reads it.
type cte struct {
	name  string // folded
	owner *cte   // the CTE that it is defined in, or the text's root
	uses  []cteUse
	deep  int // the most layers within its own body

	// What settle finds: whether anything that is itself read reads it, and the most
	// layers above it on the way.
	settled, reached bool
	above            int
}

type cteUse struct {
	from   *cte
	layers int
}

// settle follows the uses up to the root. A use within the CTE's own body, which
// a recursive one has, says nothing of whether it is read.
func (c *cte) settle() *cte {
	if c.settled {
		return c
	}
	c.settled = true
	for _, u := range c.uses {
		if u.from.within(c) {
			continue
		}
		if from := u.from.settle(); from.reached {
			c.reached = true
			c.above = max(c.above, from.above+u.layers)
		}
	}
	return c
}

// within reports whether c is o, or is defined in o's body.
func (c *cte) within(o *cte) bool {
	for ; c != nil; c = c.owner {
		if c == o {
			return true
		}
	}
	return false
}

// cteFrame is one CTE in scope. Frames are shared by all scopes below and never
// change.
type cteFrame struct {
	cte   *cte
	outer *cteFrame
}

func (f *cteFrame) find(name string) *cte {
	for ; f != nil; f = f.outer {
		if f.cte.name == name {
			return f.cte
		}
	}
	return nil
}

// finish puts what was walked in the order and the form of the answer: references
// of the text by place, then those of macros, each once.
func (w *walker) finish() {
	order := make([]int, len(w.refs))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return compareRefs(w.refs[a].TableRef, w.refs[b].TableRef) })
	index := make([]int, len(w.refs))
	refs := &w.out.References
	for _, i := range order {
		r, owner := w.refs[i].TableRef, w.refs[i].owner.settle()
		r.Layers += owner.above
		r.Unused = !owner.reached
		if last := len(*refs) - 1; r.At < 0 && last >= 0 && compareRefs((*refs)[last], r) == 0 {
			(*refs)[last].Layers = max((*refs)[last].Layers, r.Layers)
			(*refs)[last].Unused = (*refs)[last].Unused && r.Unused
		} else {
			*refs = append(*refs, r)
		}
		index[i] = len(*refs) - 1
	}
	for s := range w.out.Scopes {
		for k := range w.out.Scopes[s].Sources {
			if src := &w.out.Scopes[s].Sources[k]; src.Reference >= 0 {
				src.Reference = index[src.Reference]
			}
		}
	}
	for _, c := range w.ctes {
		if c.settle(); c.reached {
			w.out.Layers = max(w.out.Layers, c.above+c.deep)
		}
	}
	for name := range w.macros {
		w.out.Macros = append(w.out.Macros, name)
	}
	slices.SortFunc(w.out.Macros, viewkeeper.Name.Compare)
	for name := range w.types {
		w.out.Types = append(w.out.Types, name)
	}
	slices.Sort(w.out.Types)
	for _, f := range w.files {
		w.out.Files = append(w.out.Files, f.written)
	}
	slices.Sort(w.out.Files)
	w.out.Files = slices.Compact(w.out.Files)
}

// mayRead is every name that the engine may look up in its catalog of relations when it
// binds the text, some of them more than once. Each reference without a schema is one
// of main's; so is a file, which the engine takes for a relation first.
func (w *walker) mayRead() iter.Seq[viewkeeper.Name] {
	return func(yield func(viewkeeper.Name) bool) {
		for _, r := range w.refs {
			if !yield(viewkeeper.MakeName(r.Schema, r.View)) {
				return
			}
		}
		for _, f := range w.files {
			if !yield(viewkeeper.MakeName("", f.full)) || !yield(viewkeeper.MakeName("", f.written)) {
				return
			}
		}
	}
}

// noteLayers notes how many layers a SELECT has above and in itself.
func (w *walker) noteLayers() { w.owner.deep = max(w.owner.deep, w.layers) }

func compareRefs(a, b registry.TableRef) int {
	switch {
	case a.At >= 0 && b.At >= 0:
		return a.At - b.At
	case a.At >= 0:
		return -1
	case b.At >= 0:
		return 1
	}
	if c := a.Macro.Compare(b.Macro); c != 0 {
		return c
	}
	if c := strings.Compare(a.Schema, b.Schema); c != 0 {
		return c
	}
	return strings.Compare(a.View, b.View)
}
