package registry

import (
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// changes is what a trial makes of the real views: those whose query or output
// changed, in dependency order, and drops for what is gone or broken. A view
// whose output changed with the same text is made anew too, since engines keep a
// view's columns beside its text.
func (t *trial) changes() []Apply {
	var drops []Apply
	var creates []*entry
	for _, n := range slices.SortedFunc(maps.Keys(t.touched), viewkeeper.Name.Compare) {
		old, e := t.before.get(n), t.after.get(n)
		had := old != nil && old.ok()
		switch {
		case e == nil || !e.ok():
			if had {
				drops = append(drops, Apply{Name: n})
			}
		case had && old.source == e.source && slices.Equal(old.refs, e.refs) && sameColumns(old.columns, e.columns):
		default:
			creates = append(creates, e)
		}
	}
	return append(drops, inOrder(creates)...)
}

// everything is all that builds, in dependency order.
func (g *graph) everything() []Apply {
	var all []*entry
	g.each(viewkeeper.Name{}, func(e *entry) bool {
		if e.ok() {
			all = append(all, e)
		}
		return true
	})
	return inOrder(all)
}

func inOrder(entries []*entry) []Apply {
	slices.SortStableFunc(entries, func(a, b *entry) int { return a.metrics.rank - b.metrics.rank })
	out := make([]Apply, len(entries))
	for i, e := range entries {
		out[i] = e.apply()
	}
	return out
}

// apply gives the entry as a real view. Until partitions are kept a materialized
// definition is an empty relation of its schema.
func (e *entry) apply() Apply {
	if e.materialized() {
		return Apply{Name: e.name(), Empty: e.columns}
	}
	text, _ := e.source.qualify(0, e.refs)
	a := Apply{Name: e.name(), Query: text, Columns: e.source.create.Columns, Files: len(e.source.parts[0].parsed.Files) > 0}
	e.reads(func(_ int, target viewkeeper.Name) {
		if !slices.Contains(a.Reads, target) {
			a.Reads = append(a.Reads, target)
		}
	})
	return a
}

// retryable gives the broken definitions that may build at another time although
// nothing in the catalog changes: the planner or the applier refused them, which
// may have been for a file that was missing, or the engine was lost on them.
func (g *graph) retryable() []viewkeeper.Name {
	var out []viewkeeper.Name
	for _, n := range names(g.broken) {
		e := g.get(n)
		if e.planned != nil && e.planned.failure != nil || e.failure.refused || e.source.err != nil && engineLost(e.source.err.code) {
			out = append(out, n)
		}
	}
	return out
}
