package registry

import (
	"iter"

	"github.com/viewkeeper/viewkeeper"
)

// Factory is the immutable compiled snapshot at one version: the base, and every
// definition with what became of it here. It is safe for concurrent use, and
// successive factories share all that did not change.
type Factory struct {
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
func (f *Factory) Version() viewkeeper.Version { panic("todo") }

// Base is the base under the factory.
func (f *Factory) Base() *Base { panic("todo") }

// Engine is what the planner that built it said of itself and of the base.
func (f *Factory) Engine() *Engine { panic("todo") }

// Len is the number of definitions, broken ones included.
func (f *Factory) Len() int { panic("todo") }

// Definition finds a definition by name.
func (f *Factory) Definition(name viewkeeper.Name) (*Definition, bool) { panic("todo") }

// Definitions gives all definitions in the order of their names.
func (f *Factory) Definitions() iter.Seq[*Definition] { panic("todo") }

// DefinitionsAfter gives those whose names come after a name, for paging.
func (f *Factory) DefinitionsAfter(name viewkeeper.Name) iter.Seq[*Definition] { panic("todo") }

// ReadBy gives the definitions whose text reads a definition or base relation
// itself, sorted.
func (f *Factory) ReadBy(name viewkeeper.Name) []viewkeeper.Name { panic("todo") }

// Failures gives what does not build here, sorted by name.
func (f *Factory) Failures() []*Failure { panic("todo") }

// Rows gives the live rows, sorted by name.
func (f *Factory) Rows() []viewkeeper.Row { panic("todo") }

// Columns gives the columns of a definition that builds or of a base relation.
func (f *Factory) Columns(name viewkeeper.Name) ([]viewkeeper.Column, bool) { panic("todo") }

// Digest is over the live rows: name, kind, SQL, comment, version and ID of
// each. Two nodes at one version must have the same.
func (f *Factory) Digest() string { panic("todo") }

// BuildDigest is over what builds here, with the output columns.
func (f *Factory) BuildDigest() string { panic("todo") }

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
	// Edges go from what is read to its reader.
	Edges []LineageEdge
}

// LineageEdge says that To reads From.
type LineageEdge struct{ From, To viewkeeper.Reference }

// Lineage follows the reads from a definition or base relation, through macros
// too, up to depth steps; depth <= 0 has no bound. False when there is no such name.
func (f *Factory) Lineage(name viewkeeper.Name, direction Direction, depth int) (*Lineage, bool) {
	panic("todo")
}
