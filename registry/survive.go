package registry

import (
	"context"

	"github.com/viewkeeper/viewkeeper"
)

// Survival is what CheckDependentsSurvive found.
type Survival struct {
	// Broken lists what built before and would not build afterwards, root causes
	// before the collateral that fails only because of them. A definition that
	// was already broken is never here.
	Broken []viewkeeper.Broken
	// Repaired lists what was broken before and would build afterwards.
	Repaired []viewkeeper.Name
	// Changed lists the definitions in both whose output columns would differ.
	Changed []viewkeeper.Change
}

// OK reports whether everything that built before still would.
func (s *Survival) OK() bool { return len(s.Broken) == 0 }

// CheckDependentsSurvive builds the rows pre and then, planning only what differs,
// the rows post with the real planner, and reports who would not survive the
// change. A definition that post no longer holds is not a victim; its readers
// may be. The error is the planner's own trouble or the context's.
func CheckDependentsSurvive(ctx context.Context, base *Base, pre, post []viewkeeper.Row) (*Survival, error) {
	before, err := build(ctx, base, pre, false)
	if err != nil {
		return nil, err
	}
	rows, version := latest(post)
	_, t, err := before.next(ctx, max(version, before.version), before.diff(rows), nil, true)
	if err != nil {
		return nil, err
	}
	d := t.delta()
	out := &Survival{Broken: d.brokenList(nil), Repaired: d.repaired}
	for _, n := range d.output {
		out.Changed = append(out.Changed, viewkeeper.Change{
			Name: n, Action: viewkeeper.ActionOutputChanged,
			ColumnsBefore: t.before.get(n).columns, ColumnsAfter: t.after.get(n).columns,
		})
	}
	return out, nil
}

// diff gives the changes that make the factory's rows those given: the rows that
// differ, and drops for what is not among them.
func (f *Factory) diff(rows []viewkeeper.Row) []viewkeeper.Row {
	var out []viewkeeper.Row
	keep := make(map[viewkeeper.Name]bool, len(rows))
	for _, r := range rows {
		if !r.Live() {
			continue
		}
		keep[r.Name] = true
		if old := f.graph.get(r.Name); old == nil || old.rowHash != hashRow(r) || old.row.Epoch != r.Epoch {
			out = append(out, r)
		}
	}
	f.graph.each(viewkeeper.Name{}, func(e *entry) bool {
		if !keep[e.name()] {
			out = append(out, viewkeeper.Row{Name: e.name()})
		}
		return true
	})
	return out
}
