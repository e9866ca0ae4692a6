package registry

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// scratch is what is known of the planner's scratch catalog. It is a cache of a
// graph's output columns and no more: a trial over whatever graph first makes it
// that graph's, by the difference or from nothing, so that what the planner does
// at Settle can never undo a decision, and any number of registries, catalogs and
// builds can take turns.
//
// Stubs are sent with the next query that needs the planner: the last ones of a
// trial wait in pending for the next trial, which saves a call for each
// statement.
type scratch struct {
	// settled is the graph whose stubs the planner holds once it got pending.
	settled *graph
	pending map[viewkeeper.Name]Stub
	// stale says that the scratch catalog is not to be trusted.
	stale bool
}

// session is the use of the planner by one trial. The base is locked from begin
// to end.
type session struct {
	base *Base
	ctx  context.Context
	// from is the graph before the trial.
	from *graph
	// trial is every stub that the trial changed; unsent is what the planner has
	// to get before it can plan for the trial: what it lacks of from, and of trial.
	trial  map[viewkeeper.Name]Stub
	unsent map[viewkeeper.Name]Stub
	open   bool
}

// begin locks the base for a trial over g. The planner is not asked anything
// before the trial needs it.
func (b *Base) begin(ctx context.Context, g *graph) *session {
	b.mu.Lock()
	s := &b.scratch
	t := &session{base: b, ctx: ctx, from: g, trial: map[viewkeeper.Name]Stub{}, unsent: map[viewkeeper.Name]Stub{}}
	if s.stale {
		return t
	}
	maps.Copy(t.unsent, s.pending)
	if s.settled != g {
		s.settled.differences(g, func(st Stub) { t.unsent[st.Name] = st })
		// To throw all away is faster than to drop most of it.
		if n := len(t.unsent); n > 1000 && n > 2*g.entries.Len() {
			s.stale = true
		}
	}
	return t
}

// end settles the trial, which has made after, and unlocks the base. What the
// planner says to it matters only to the scratch: a failed settling makes it stale.
func (t *session) end(keep bool, after *graph) {
	defer t.base.mu.Unlock()
	s := &t.base.scratch
	if t.open {
		// The caller's context may be over, which must not leave a trial open.
		if err := t.base.planner.Settle(context.WithoutCancel(t.ctx), keep); err != nil {
			s.stale = true
		}
	}
	if keep {
		s.settled, s.pending = after, t.unsent
	}
}

// differences calls f with each stub that must change to make the stubs of g
// those of o.
func (g *graph) differences(o *graph, f func(Stub)) {
	gi, oi := g.entries.Iterator(), o.entries.Iterator()
	_, a, aok := gi.Next()
	_, b, bok := oi.Next()
	for aok || bok {
		c := 0
		switch {
		case !bok:
			c = -1
		case !aok:
			c = 1
		default:
			c = a.name().Compare(b.name())
		}
		if c <= 0 && a != b {
			for _, st := range a.stubs() {
				f(Stub{Name: st.Name})
			}
		}
		if c >= 0 && a != b {
			for _, st := range b.stubs() {
				f(st)
			}
		}
		if c <= 0 {
			_, a, aok = gi.Next()
		}
		if c >= 0 {
			_, b, bok = oi.Next()
		}
	}
}

// stub queues a change to the scratch catalog; nil columns remove the stub.
func (t *session) stub(name viewkeeper.Name, columns []viewkeeper.Column) {
	st := Stub{Name: name, Columns: columns}
	t.trial[name], t.unsent[name] = st, st
}

// The sizes of one call: enough that the way to the engine does not count, and so
// little that the whole is done in a fraction of the time that an engine is given
// for a call, which is meant for one hard query.
const (
	parseBatch = 200
	bindBatch  = 100
	stubBatch  = 500
)

// ready makes sure that the scratch catalog is what it is taken for, if need be
// by stubbing the graph before the trial from nothing. An engine that is lost
// meanwhile gets a second try; no query is to blame.
func (t *session) ready() error {
	s := &t.base.scratch
	if !s.stale {
		return nil
	}
	t.open = false
	err := t.restart()
	if AsLost(err) != nil && t.ctx.Err() == nil {
		err = t.restart()
	}
	if err != nil {
		return err
	}
	*s = scratch{settled: t.from}
	t.unsent = maps.Clone(t.trial)
	return nil
}

// restart makes the scratch catalog that of the graph before the trial.
func (t *session) restart() error {
	p := t.base.planner
	if err := p.Reset(t.ctx); err != nil {
		return fmt.Errorf("reset the planner: %w", err)
	}
	// Describe also shows that the engine answers at all, so that one that cannot
	// start is not taken for one that a definition killed.
	if _, err := p.Describe(t.ctx); err != nil {
		return fmt.Errorf("start the planner: %w", err)
	}
	var stubs []Stub
	t.from.each(viewkeeper.Name{}, func(e *entry) bool {
		stubs = append(stubs, e.stubs()...)
		return true
	})
	if len(stubs) == 0 {
		return nil
	}
	for chunk := range slices.Chunk(stubs, stubBatch) {
		if _, err := p.Bind(t.ctx, chunk, nil); err != nil {
			return fmt.Errorf("stub the planner's catalog: %w", err)
		}
	}
	if err := p.Settle(t.ctx, true); err != nil {
		return fmt.Errorf("stub the planner's catalog: %w", err)
	}
	return nil
}

// stubs are what an entry puts in the scratch catalog.
func (e *entry) stubs() []Stub {
	if !e.ok() {
		return nil
	}
	out := []Stub{{Name: e.name(), Columns: e.columns}}
	if e.materialized() {
		out = append(out, Stub{Name: sourceStub(e.name()), Columns: e.planned.extract})
	}
	return out
}

// parse has the planner parse queries. Queries on which the engine is lost, the
// second time alone, are answered with ENGINE_KILLED or ENGINE_TIMEOUT.
func (t *session) parse(queries []Query) ([]Parsed, error) {
	return careful(t, queries, parseBatch,
		func(qs []Query) ([]Parsed, error) {
			return t.base.planner.Parse(t.ctx, qs)
		},
		func(e *PlanError) Parsed { return Parsed{Err: e} })
}

// bind sends what stubs are unsent and has the planner plan queries, with the
// same care as parse.
func (t *session) bind(queries []Query) ([]Bound, error) {
	return careful(t, queries, bindBatch,
		func(qs []Query) ([]Bound, error) {
			if err := t.ready(); err != nil {
				return nil, noLoss{err}
			}
			return t.send(qs)
		},
		func(e *PlanError) Bound { return Bound{Err: e} })
}

// send sends the unsent stubs, with queries to be planned over them.
func (t *session) send(qs []Query) ([]Bound, error) {
	stubs := slices.SortedFunc(maps.Values(t.unsent), func(a, b Stub) int { return a.Name.Compare(b.Name) })
	t.open = true
	for len(stubs) > stubBatch {
		if _, err := t.base.planner.Bind(t.ctx, stubs[:stubBatch], nil); err != nil {
			return nil, err
		}
		stubs = stubs[stubBatch:]
	}
	bound, err := t.base.planner.Bind(t.ctx, stubs, qs)
	if err == nil {
		t.unsent = map[viewkeeper.Name]Stub{}
	}
	return bound, err
}

// flush sends the stubs of g that wait for the next trial when they are so many
// that it would feel them, as after a load. It is an optimisation: when it fails,
// the next trial sends them, or finds the same trouble.
func (b *Base) flush(ctx context.Context, g *graph) {
	t := b.begin(ctx, g)
	sent := false
	defer func() { t.end(sent, g) }()
	if len(t.unsent) < stubBatch || t.ready() != nil {
		return
	}
	if _, err := t.send(nil); err != nil {
		t.base.scratch.stale = true
		return
	}
	sent = true
}

// noLoss marks an error during which no query was at work: whatever it is, no
// query is to blame.
type noLoss struct{ error }

func (e noLoss) Unwrap() error { return e.error }

// careful runs call over items in batches and finds out which item an engine
// dies on. A batch that is lost is halved, each half in a fresh engine, until the
// culprit stands alone; an item that was alone from the start gets a second try.
// The culprit is answered by blame, all others as usual.
func careful[Q, A any](t *session, items []Q, batch int, call func([]Q) ([]A, error), blame func(*PlanError) A) ([]A, error) {
	out := make([]A, 0, len(items))
	var run func(items []Q, again bool) error
	run = func(items []Q, again bool) error {
		answers, err := call(items)
		if err == nil {
			if len(answers) != len(items) {
				return fmt.Errorf("the planner gave %d answers to %d queries", len(answers), len(items))
			}
			out = append(out, answers...)
			return nil
		}
		lost := AsLost(err)
		if _, innocent := err.(noLoss); innocent || lost == nil || t.ctx.Err() != nil {
			return err
		}
		t.base.scratch.stale = true
		switch {
		case len(items) > 1:
			half := len(items) / 2
			if err := run(items[:half], true); err != nil {
				return err
			}
			return run(items[half:], true)
		case !again:
			return run(items, true)
		}
		out = append(out, blame(lostFailure(lost)))
		return nil
	}
	for chunk := range slices.Chunk(items, batch) {
		if err := run(chunk, false); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lostFailure is the answer for the query that an engine was lost on twice.
func lostFailure(l *LostError) *PlanError {
	e := &PlanError{Code: viewkeeper.CodeEngineKilled, At: -1,
		Message: "planning it took down a fresh engine twice, the second time alone (" + l.Detail + "); simplify the query"}
	if l.Timeout {
		e.Code = viewkeeper.CodeEngineTimeout
		e.Message = "planning it outlasted the time limit of a fresh engine twice, the second time alone (" + l.Detail + "); simplify the query"
	}
	return e
}
