package registry

import (
	"context"

	"github.com/viewkeeper/viewkeeper"
)

// Purpose is what a factory is built for.
type Purpose int

// The purposes.
const (
	// LiveSnapshot: the factory is to be served. Each row that is skipped is
	// logged and counted (BaseOptions.Log and LoadFailure).
	LiveSnapshot Purpose = iota
	// Probe: somebody wants to know what would build if it were submitted now: the rows
	// are held to the limits, as a statement is and a committed row is not. Failures are
	// only returned.
	Probe
)

// BuildFactory compiles rows over the base. Rows come in any order; they are
// built in dependency order; a later row of one name (by version) wins; rows that
// are drops count as absent. A row that fails to parse, to build or to validate
// is skipped with its stage and reason (Factory.Failures) and is never fatal. The
// factory's version is the highest of the rows'.
//
// The error is the planner's own trouble or the context's: then there is no factory.
func BuildFactory(ctx context.Context, base *Base, rows []viewkeeper.Row, purpose Purpose) (*Factory, error) {
	f, err := build(ctx, base, rows, purpose == Probe)
	if err != nil {
		return nil, err
	}
	if purpose == LiveSnapshot {
		base.report(f)
	}
	return f, nil
}

// build makes a factory of rows; judging holds them to the limits, see trial.
func build(ctx context.Context, base *Base, rows []viewkeeper.Row, judging bool) (*Factory, error) {
	live, version := latest(rows)
	empty := &Factory{base: base, graph: newGraph()}
	f, _, err := empty.next(ctx, version, live, nil, judging)
	return f, err
}

// latest leaves one row for each name, the one of the highest version, and gives
// the highest version of all. Of two rows of one version the later one counts.
func latest(rows []viewkeeper.Row) ([]viewkeeper.Row, viewkeeper.Version) {
	var version viewkeeper.Version
	at := make(map[viewkeeper.Name]int, len(rows))
	out := make([]viewkeeper.Row, 0, len(rows))
	for _, r := range rows {
		version = max(version, r.Version)
		i, ok := at[r.Name]
		switch {
		case !ok:
			at[r.Name] = len(out)
			out = append(out, r)
		case r.Version >= out[i].Version:
			out[i] = r
		}
	}
	return out, version
}

// next makes the factory that follows f when rows change, with what changed. The
// error is the engine's own trouble or the context's.
func (f *Factory) next(ctx context.Context, version viewkeeper.Version, rows []viewkeeper.Row, retry []viewkeeper.Name, judging bool) (*Factory, *trial, error) {
	return f.nextApplied(ctx, version, rows, retry, judging, nil, func(*trial) (bool, error) { return true, nil })
}

// nextApplied is next with a last step, which may refuse definitions in the trial,
// and which says whether the factory is wanted: when not, it is nil. The planner is
// the trial's for all that time.
func (f *Factory) nextApplied(ctx context.Context, version viewkeeper.Version, rows []viewkeeper.Row, retry []viewkeeper.Name, judging bool, kept Kept, last func(*trial) (bool, error)) (*Factory, *trial, error) {
	t := begin(ctx, f.base, f.graph, version)
	t.judging = judging
	if kept != nil {
		t.kept = kept
	}
	keep := false
	defer func() { t.end(keep) }()
	err := t.apply(rows, retry)
	if err != nil {
		return nil, nil, err
	}
	if keep, err = last(t); err != nil || !keep {
		return nil, nil, err
	}
	return &Factory{base: f.base, version: version, graph: t.after}, t, nil
}

// report logs and counts what a live factory skips.
func (b *Base) report(f *Factory) {
	for _, x := range f.Failures() {
		b.reportFailure(x)
	}
}

func (b *Base) reportFailure(x *Failure) {
	args := []any{"definition", x.Name.String(), "stage", string(x.Stage), "code", string(x.Code), "reason", x.Reason}
	if x.RootCause != nil {
		args = append(args, "root_cause", x.RootCause.String())
	}
	b.options.Log.Warn("a definition does not build here and is skipped", args...)
	if b.options.LoadFailure != nil {
		b.options.LoadFailure(x.Name)
	}
}
