package registry

import (
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// Direction says which way a lineage goes.
type Direction int

// The directions.
const (
	Up   Direction = 1 << iota // what it reads, and what that reads
	Down                       // what reads it, and what reads that
	Both = Up | Down
)

// Lineage is a part of the graph of who reads whom.
type Lineage struct {
	// Nodes holds the thing asked for and all that was reached, sorted.
	Nodes []viewkeeper.Reference
	// Edges go from what is read to its reader, sorted.
	Edges []LineageEdge
}

// LineageEdge says that To reads From.
type LineageEdge struct{ From, To viewkeeper.Reference }

// Lineage follows the reads from a definition or base relation, through macros
// too, up to depth steps; depth <= 0 has no bound. A macro is a step of its own.
// False when there is no such name.
func (f *Factory) Lineage(name viewkeeper.Name, direction Direction, depth int) (*Lineage, bool) {
	start := f.node(name)
	if start.Name == "" {
		return nil, false
	}
	w := &walk{f: f, nodes: map[viewkeeper.Reference]bool{start: true}, edges: map[LineageEdge]bool{}}
	if direction&Up != 0 {
		w.run(start, depth, w.up)
	}
	if direction&Down != 0 {
		w.run(start, depth, w.down)
	}
	l := &Lineage{}
	for n := range w.nodes {
		l.Nodes = append(l.Nodes, n)
	}
	slices.SortFunc(l.Nodes, compareReferences)
	for e := range w.edges {
		l.Edges = append(l.Edges, e)
	}
	slices.SortFunc(l.Edges, func(a, b LineageEdge) int {
		if c := compareReferences(a.From, b.From); c != 0 {
			return c
		}
		return compareReferences(a.To, b.To)
	})
	return l, true
}

// node gives the reference that stands for a name, zero when there is none.
func (f *Factory) node(name viewkeeper.Name) viewkeeper.Reference {
	if _, ok := f.base.relations[name]; ok {
		return viewkeeper.Reference{Name: name.String(), Kind: viewkeeper.KindRelation}
	}
	if f.graph.get(name) != nil {
		return viewkeeper.Reference{Name: name.String(), Kind: viewkeeper.KindDefinition}
	}
	return viewkeeper.Reference{}
}

// walk is one traversal, breadth first.
type walk struct {
	f     *Factory
	nodes map[viewkeeper.Reference]bool
	edges map[LineageEdge]bool
}

// run follows step from start; step gives the edges of a node and their far ends.
func (w *walk) run(start viewkeeper.Reference, depth int, step func(viewkeeper.Reference) map[LineageEdge]viewkeeper.Reference) {
	done := map[viewkeeper.Reference]bool{start: true}
	level := []viewkeeper.Reference{start}
	for d := 0; len(level) > 0 && (depth <= 0 || d < depth); d++ {
		var next []viewkeeper.Reference
		for _, n := range level {
			for edge, far := range step(n) {
				w.edges[edge] = true
				w.nodes[far] = true
				if !done[far] {
					done[far] = true
					next = append(next, far)
				}
			}
		}
		level = next
	}
}

func (w *walk) up(n viewkeeper.Reference) map[LineageEdge]viewkeeper.Reference {
	out := map[LineageEdge]viewkeeper.Reference{}
	add := func(from viewkeeper.Reference) { out[LineageEdge{From: from, To: n}] = from }
	switch n.Kind {
	case viewkeeper.KindDefinition:
		name, err := viewkeeper.ParseName(n.Name)
		if err != nil {
			break
		}
		if e := w.f.graph.get(name); e != nil {
			for _, r := range e.references() {
				add(r)
			}
		}
	case viewkeeper.KindMacro:
		for _, r := range w.f.macroReads(n) {
			add(r)
		}
	}
	return out
}

func (w *walk) down(n viewkeeper.Reference) map[LineageEdge]viewkeeper.Reference {
	out := map[LineageEdge]viewkeeper.Reference{}
	add := func(to viewkeeper.Reference) { out[LineageEdge{From: n, To: to}] = to }
	if n.Kind == viewkeeper.KindMacro {
		// Only definitions that were reached through the macro's own reads need
		// it, and those are found below; nobody else can ask for a macro.
		w.f.graph.each(viewkeeper.Name{}, func(e *entry) bool {
			if e.callsMacro(n) {
				add(viewkeeper.Reference{Name: e.name().String(), Kind: viewkeeper.KindDefinition})
			}
			return true
		})
		return out
	}
	name, err := viewkeeper.ParseName(n.Name)
	if err != nil || n.Kind != viewkeeper.KindDefinition && n.Kind != viewkeeper.KindRelation {
		return out
	}
	for _, e := range w.f.graph.readers(name) {
		for i, r := range e.refs {
			if r.name == name && e.source.refs[i].inText() {
				add(viewkeeper.Reference{Name: e.name().String(), Kind: viewkeeper.KindDefinition})
			}
		}
	}
	for m := range w.f.base.macros {
		macro := macroReference(m)
		if slices.Contains(w.f.macroReads(macro), n) {
			add(macro)
		}
	}
	return out
}

func macroReference(m viewkeeper.Name) viewkeeper.Reference {
	return viewkeeper.Reference{Name: m.String(), Kind: viewkeeper.KindMacro}
}

// macroReads is what a macro of the base reads, as far as that is there.
func (f *Factory) macroReads(n viewkeeper.Reference) []viewkeeper.Reference {
	name, err := viewkeeper.ParseName(n.Name)
	if err != nil {
		return nil
	}
	m := f.base.macros[name]
	if m == nil {
		return nil
	}
	var out []viewkeeper.Reference
	for _, r := range m.References {
		if ref := f.node(viewkeeper.MakeName(r.Schema, r.View)); ref.Name != "" {
			out = append(out, ref)
		}
	}
	return sortReferences(out)
}

func (e *entry) callsMacro(n viewkeeper.Reference) bool {
	for i := range e.source.parts {
		for _, m := range e.source.parts[i].parsed.Macros {
			if macroReference(m) == n {
				return true
			}
		}
	}
	return false
}
