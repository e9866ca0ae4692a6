package registry

import (
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// delta is what a trial made of the graph, told apart for a verdict. All lists
// are sorted by name.
type delta struct {
	before, after *graph
	// broken built before and does not after, or is new and does not.
	broken []viewkeeper.Name
	// repaired was broken before and builds.
	repaired []viewkeeper.Name
	// output builds before and after, with other columns.
	output []viewkeeper.Name
	// failed is broken before and after, for another reason.
	failed []viewkeeper.Name
	// changed is all whose row changed, and all of the above.
	changed []viewkeeper.Name
}

// delta compares what the trial touched.
func (t *trial) delta() *delta {
	d := &delta{before: t.before, after: t.after}
	for _, n := range slices.SortedFunc(maps.Keys(t.touched), viewkeeper.Name.Compare) {
		old, e := t.before.get(n), t.after.get(n)
		changed := true
		switch {
		case e == nil:
		case !e.ok() && (old == nil || old.ok()):
			d.broken = append(d.broken, n)
		case !e.ok():
			if changed = !e.failure.same(old.failure); changed {
				d.failed = append(d.failed, n)
			}
		case old == nil:
		case !old.ok():
			d.repaired = append(d.repaired, n)
		case !sameColumns(old.columns, e.columns):
			d.output = append(d.output, n)
		default:
			changed = false
		}
		if changed || old == nil || e == nil || old.rowHash != e.rowHash {
			d.changed = append(d.changed, n)
		}
	}
	return d
}

// brokenList shows what broke, root causes first, except the names in without.
func (d *delta) brokenList(without map[viewkeeper.Name]bool) []viewkeeper.Broken {
	var roots, collateral []viewkeeper.Broken
	for _, n := range d.broken {
		if without[n] {
			continue
		}
		b := d.after.get(n).publicFailure().Broken()
		if b.RootCause == nil {
			roots = append(roots, b)
		} else {
			collateral = append(collateral, b)
		}
	}
	return append(roots, collateral...)
}
