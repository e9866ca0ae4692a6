package registry

import (
	"context"
	"fmt"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// scratch is one holder's knowledge of the planner's scratch catalog. It is a
// cache of the graph's output columns and no more: whenever it may be wrong it is
// thrown away and stubbed anew, so that what the planner does at Settle can
// never undo a decision.
//
// Stubs are sent with the next query that needs the planner: the last ones of a
// trial wait in pending for the next trial, which saves a call for each
// statement.
type scratch struct {
	base *Base
	// pending is what the planner has yet to hear of the settled graph.
	pending map[viewkeeper.Name]Stub
	// stale says that the scratch catalog is not to be trusted.
	stale bool
}

func newScratch(base *Base) *scratch {
	return &scratch{base: base, pending: map[viewkeeper.Name]Stub{}, stale: true}
}

// session is the use of the planner by one trial. The base is locked from open
// to settle.
type session struct {
	*scratch
	ctx     context.Context
	settled *graph // what the scratch catalog is to hold before the trial
	// trial is every stub that the trial changed, unsent those of pending and of
	// the trial that the planner has not got yet.
	trial  map[viewkeeper.Name]Stub
	unsent map[viewkeeper.Name]Stub
	open   bool
}

// begin locks the base for a trial over the settled graph g. The planner is not
// asked anything before the trial needs it.
func (s *scratch) begin(ctx context.Context, g *graph) *session {
	s.base.mu.Lock()
	if s.base.holder != s {
		s.stale = true
	}
	t := &session{scratch: s, ctx: ctx, settled: g, trial: map[viewkeeper.Name]Stub{}, unsent: map[viewkeeper.Name]Stub{}}
	for n, st := range s.pending {
		t.unsent[n] = st
	}
	return t
}

// end settles the trial and unlocks the base. What the planner says to it
// matters only to the scratch: a failed settling makes it stale.
func (t *session) end(keep bool) {
	defer t.base.mu.Unlock()
	if t.open {
		// The caller's context may be over, which must not leave a trial open.
		if err := t.base.planner.Settle(context.WithoutCancel(t.ctx), keep); err != nil {
			t.stale = true
		}
	}
	if !keep {
		return
	}
	if t.open {
		t.pending = t.unsent
		return
	}
	for n, st := range t.trial {
		t.pending[n] = st
	}
}

// stub queues a change to the scratch catalog; nil columns remove the stub.
func (t *session) stub(name viewkeeper.Name, columns []viewkeeper.Column) {
	st := Stub{Name: name, Columns: columns}
	t.trial[name], t.unsent[name] = st, st
}

// ready makes the scratch catalog that of the settled graph if it is not.
func (t *session) ready() error {
	if !t.stale && t.base.holder == t.scratch {
		return nil
	}
	p := t.base.planner
	t.open = false
	t.base.holder, t.stale = t.scratch, true
	if err := p.Reset(t.ctx); err != nil {
		return fmt.Errorf("reset the planner: %w", err)
	}
	// Describe also shows that the engine answers at all, so that one that cannot
	// start is not taken for one that a definition killed.
	if _, err := p.Describe(t.ctx); err != nil {
		return fmt.Errorf("start the planner: %w", err)
	}
	const batch = 2000 // keeps one call under a few megabytes
	var stubs []Stub
	flush := func() error {
		if len(stubs) == 0 {
			return nil
		}
		_, err := p.Bind(t.ctx, stubs, nil)
		stubs = stubs[:0:0]
		return err
	}
	var err error
	t.settled.each(viewkeeper.Name{}, func(e *entry) bool {
		stubs = append(stubs, e.stubs()...)
		if len(stubs) >= batch {
			err = flush()
		}
		return err == nil
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = p.Settle(t.ctx, true)
	}
	if err != nil {
		return fmt.Errorf("stub the planner's catalog: %w", err)
	}
	t.stale = false
	t.pending = map[viewkeeper.Name]Stub{}
	t.unsent = map[viewkeeper.Name]Stub{}
	for n, st := range t.trial {
		t.unsent[n] = st
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
	return careful(t, queries, 1000,
		func(qs []Query) ([]Parsed, error) {
			return t.base.planner.Parse(t.ctx, qs)
		},
		func(e *PlanError) Parsed { return Parsed{Err: e} })
}

// bind sends what stubs are unsent and has the planner plan queries, with the
// same care as parse.
func (t *session) bind(queries []Query) ([]Bound, error) {
	return careful(t, queries, 5000,
		func(qs []Query) ([]Bound, error) {
			if err := t.ready(); err != nil {
				return nil, noLoss{err}
			}
			stubs := make([]Stub, 0, len(t.unsent))
			for _, st := range t.unsent {
				stubs = append(stubs, st)
			}
			slices.SortFunc(stubs, func(a, b Stub) int { return a.Name.Compare(b.Name) })
			t.open = true
			bound, err := t.base.planner.Bind(t.ctx, stubs, qs)
			if err == nil {
				t.unsent = map[viewkeeper.Name]Stub{}
			}
			return bound, err
		},
		func(e *PlanError) Bound { return Bound{Err: e} })
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
		t.stale = true
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
