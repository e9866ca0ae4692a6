package registry

import (
	"iter"

	"github.com/viewkeeper/viewkeeper"
)

// Factory is the immutable compiled snapshot at one version: the base, and every
// definition with what became of it here. It is safe for concurrent use, and
// successive factories share all that did not change.
type Factory struct {
	base    *Base
	version viewkeeper.Version
	graph   *graph
}

// Definition is one definition as a factory has it. Do not change what it
// points to.
type Definition struct {
	// Row is the accepted row; Row.Definition is never nil.
	Row viewkeeper.Row
	// Columns is its output, nil when it is broken.
	Columns []viewkeeper.Column
	// Reads is what its own text reads, each thing once, sorted by kind and name.
	// Empty when the text does not parse.
	Reads []viewkeeper.Reference
	// Failure is nil for a definition that builds.
	Failure *Failure
	// UpdateGroup is a materialized definition's, given or derived; else 0.
	UpdateGroup int32
}

// OK reports whether the definition builds.
func (d *Definition) OK() bool { return d.Failure == nil }

// State is "ok" or "broken".
func (d *Definition) State() string {
	if d.OK() {
		return "ok"
	}
	return "broken"
}

// Version is the catalog version that the factory was built for.
func (f *Factory) Version() viewkeeper.Version { return f.version }

// Base is the base under the factory.
func (f *Factory) Base() *Base { return f.base }

// Engine is what the planner that built it said of itself and of the base.
func (f *Factory) Engine() *Engine { return f.base.engine }

// Len is the number of definitions, broken ones included.
func (f *Factory) Len() int { return f.graph.entries.Len() }

// Broken is the number of definitions that do not build here.
func (f *Factory) Broken() int { return f.graph.broken.Len() }

// Definition finds a definition by name.
func (f *Factory) Definition(name viewkeeper.Name) (*Definition, bool) {
	e := f.graph.get(name)
	if e == nil {
		return nil, false
	}
	return e.definition(), true
}

// Definitions gives all definitions in the order of their names.
func (f *Factory) Definitions() iter.Seq[*Definition] {
	return f.DefinitionsAfter(viewkeeper.Name{})
}

// DefinitionsAfter gives those whose names come after a name, for paging.
func (f *Factory) DefinitionsAfter(name viewkeeper.Name) iter.Seq[*Definition] {
	return func(yield func(*Definition) bool) {
		f.graph.each(name, func(e *entry) bool {
			return e.name() == name || yield(e.definition())
		})
	}
}

func (e *entry) definition() *Definition {
	d := &Definition{Row: e.row, Columns: e.columns, Reads: e.references(), Failure: e.publicFailure()}
	if e.materialized() && e.ok() {
		d.UpdateGroup = e.metrics.group
	}
	return d
}

// ReadBy gives the definitions whose text reads a definition or base relation
// itself, sorted.
func (f *Factory) ReadBy(name viewkeeper.Name) []viewkeeper.Name {
	var out []viewkeeper.Name
	for _, e := range f.graph.readers(name) {
		for i, r := range e.refs {
			if r.name == name && e.source.refs[i].inText() {
				out = append(out, e.name())
				break
			}
		}
	}
	return out
}

// Failures gives what does not build here, sorted by name.
func (f *Factory) Failures() []*Failure {
	var out []*Failure
	for _, n := range names(f.graph.broken) {
		out = append(out, f.graph.get(n).publicFailure())
	}
	return out
}

// Rows gives the live rows, sorted by name.
func (f *Factory) Rows() []viewkeeper.Row {
	rows := make([]viewkeeper.Row, 0, f.Len())
	f.graph.each(viewkeeper.Name{}, func(e *entry) bool {
		rows = append(rows, e.row)
		return true
	})
	return rows
}

// Columns gives the columns of a definition that builds or of a base relation.
func (f *Factory) Columns(name viewkeeper.Name) ([]viewkeeper.Column, bool) {
	return f.graph.columns(f.base, name)
}

func (g *graph) columns(base *Base, name viewkeeper.Name) ([]viewkeeper.Column, bool) {
	if r, ok := base.relations[name]; ok {
		return r.Columns, true
	}
	if e := g.get(name); e != nil && e.ok() {
		return e.columns, true
	}
	return nil, false
}

// Digest is over the live rows: name, kind, SQL, comment, version and ID of
// each. Two nodes at one version must have the same.
func (f *Factory) Digest() string { return f.graph.digest.String() }

// BuildDigest is over what builds here, with the output columns.
func (f *Factory) BuildDigest() string { return f.graph.built.String() }
