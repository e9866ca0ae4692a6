package registry

import (
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// entry is one definition in a graph, immutable once it is there.
type entry struct {
	row     viewkeeper.Row
	rowHash [32]byte
	// built is what the build digest sums; zero for a broken one.
	built [32]byte
	// source is what the text says by itself; it is shared by all entries of one
	// text, whatever else changes.
	source *source
	// refs are source.refs resolved: refs[i] belongs to source.refs[i].
	refs []resolved
	// planned is what the planner last said to the text over these refs, nil when
	// it was not asked since something that matters to it changed.
	planned *planned
	// failure is why the entry is broken, nil when it builds.
	failure *failure
	// columns is the output, nil when broken.
	columns []viewkeeper.Column
	metrics metrics
}

// resolved is what a reference stands for.
type resolved struct {
	name viewkeeper.Name // zero when nothing of that name exists
	base bool            // it is a base relation
}

// planned is the planner's answer, with the checks on materialized definitions
// that look at nothing else.
type planned struct {
	columns []viewkeeper.Column
	// extract is the columns of a materialized definition's extract_query: the
	// relation that {source} stands for.
	extract []viewkeeper.Column
	failure *failure
}

// metrics is what a definition costs and implies for those who read it. For a
// materialized definition that is its merge query over stored partitions.
type metrics struct {
	// rank orders the graph; depth is the chain of definitions that a reader
	// expands, this one included.
	rank, depth    int
	leaves, layers int
	// group is the update group of a materialized definition, or the highest that
	// a plain one reads.
	group int32
	// volatile says why the output is not a function of stored data, or is "".
	volatile string
}

// rankCyclic is the rank of what is in a cycle; what is above one has a greater
// one, since there, too, an entry is evaluated after what it reads.
const rankCyclic = 1 << 30

// leavesCap is where counting stops: doubling at each of 100 levels must not
// overflow.
const leavesCap = 1 << 30

// failure is a Failure inside the graph. Places are offsets in the definition's
// SQL, so that it can be shown in the submitted text too.
type failure struct {
	stage  Stage
	code   viewkeeper.Code
	reason string
	offset int // -1: no place
	root   viewkeeper.Name
	cycle  bool
	// refused says that it was the applier who did not take what the planner had.
	refused bool
	since   viewkeeper.Version
}

func (f *failure) same(o *failure) bool {
	if f == nil || o == nil {
		return f == o
	}
	a, b := *f, *o
	a.since, b.since = 0, 0
	return a == b
}

func failAt(offset int, stage Stage, code viewkeeper.Code, reason string) *failure {
	return &failure{stage: stage, code: code, reason: reason, offset: offset}
}

func (e *entry) name() viewkeeper.Name { return e.row.Name }
func (e *entry) sql() string           { return e.row.Definition.SQL }
func (e *entry) ok() bool              { return e.failure == nil }

func (e *entry) materialized() bool {
	return e.source.create != nil && e.source.create.Kind == viewkeeper.KindMaterialized
}

// kind is the definition's kind as its row has it.
func (e *entry) kind() viewkeeper.Kind { return e.row.Definition.Kind }

// readsName reports whether a reference of e resolves to name.
func (e *entry) readsName(name viewkeeper.Name) bool {
	return slices.ContainsFunc(e.refs, func(r resolved) bool { return r.name == name })
}

// readsDefinition reports whether a reference of e resolves to the definition
// name, and not to a base relation that hides it.
func (e *entry) readsDefinition(name viewkeeper.Name) bool {
	return slices.Contains(e.refs, resolved{name: name})
}

// reads calls f for every reference that resolves to a definition.
func (e *entry) reads(f func(i int, target viewkeeper.Name)) {
	for i, r := range e.refs {
		if !r.base && !r.name.IsZero() {
			f(i, r.name)
		}
	}
}

// root is the definition to blame for e being broken.
func (e *entry) root() viewkeeper.Name {
	if !e.failure.root.IsZero() {
		return e.failure.root
	}
	return e.name()
}

// publicFailure gives the failure in its exported form.
func (e *entry) publicFailure() *Failure {
	f := e.failure
	if f == nil {
		return nil
	}
	p := &Failure{
		Name: e.name(), Stage: f.stage, Code: f.code, Reason: f.reason, Since: f.since,
		Position: viewkeeper.PositionAt(e.sql(), f.offset),
	}
	if !f.root.IsZero() {
		root := f.root
		p.RootCause = &root
	}
	return p
}

// sameExports reports whether a reader of the one could not tell it from the other.
func sameExports(a, b *entry) bool {
	if a == nil || b == nil {
		return a == b
	}
	if a.ok() != b.ok() || a.metrics != b.metrics || !slices.Equal(a.columns, b.columns) {
		return false
	}
	return a.ok() || a.root() == b.root()
}
