package engine

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// secondTries is how many queries may have their second try at one time. Each is
// alone in an engine of its own, which may take as much memory as the node's.
const secondTries = 2

// alone runs the second try of queries that were lost with their engine before they
// gave a row. When an engine dies nobody knows which of its queries it died of, so
// none of them goes back to where the others are: the innocent are answered, later,
// and the guilty one takes down nothing but an engine that it has for itself.
//
// An engine is kept from one second try to the next only while somebody waits for it.
type alone struct {
	supervisor *supervisor
	given      func() (generation uint64)

	// places holds one entry for each second try that may begin: an engine left by
	// the one before, or one without a process.
	places  chan isolated
	waiting atomic.Int64
}

// isolated is an engine for one query at a time.
type isolated struct {
	process    *process // nil: to be started
	generation uint64   // of what it was given
}

func newAlone(s *supervisor, given func() uint64) *alone {
	a := &alone{supervisor: s, given: given, places: make(chan isolated, secondTries)}
	for range secondTries {
		a.places <- isolated{}
	}
	return a
}

// take waits for a place and gives an engine that is ready, with what gives it back.
func (a *alone) take(ctx context.Context) (*process, func(), error) {
	a.waiting.Add(1)
	defer a.waiting.Add(-1)
	var i isolated
	select {
	case i = <-a.places:
	case <-ctx.Done():
		return nil, nil, ctx.Err()
	case <-a.supervisor.ctx.Done():
		return nil, nil, duckdb.ErrClosed
	}
	if i.process != nil && (i.generation != a.given() || !i.process.enter()) {
		a.supervisor.end(i.process)
		i.process = nil
	}
	if i.process == nil {
		i.generation = a.given() // before the start: what comes meanwhile makes it old
		p, err := a.supervisor.startAlone(ctx, a.supervisor.prepare)
		if err != nil {
			a.places <- isolated{}
			return nil, nil, err
		}
		if !p.enter() { // it has ended already
			a.supervisor.end(p)
			a.places <- isolated{}
			return nil, nil, p.lost
		}
		i.process = p
	}
	return i.process, func() { a.put(i) }, nil
}

// put gives a place back.
func (a *alone) put(i isolated) {
	if a.waiting.Load() > 0 && !i.process.leaving() {
		a.places <- i
		return
	}
	// Nobody waits for its end.
	i.process.kill(&registry.LostError{Detail: "killed: the query that it was for has ended"})
	a.places <- isolated{}
}

// startAlone starts a child that is not the supervisor's current one, and prepares it
// unless prepare is nil. It ends with the supervisor, or when it is killed.
func (s *supervisor) startAlone(ctx context.Context, prepare func(context.Context, *process) error) (*process, error) {
	s.mu.Lock()
	if s.ctx.Err() != nil {
		s.mu.Unlock()
		return nil, duckdb.ErrClosed
	}
	s.wg.Add(1) // before Close waits, which cancels under mu
	s.mu.Unlock()
	p, err := s.start(ctx, prepare)
	if err != nil {
		s.wg.Done()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("starting another engine: %w", err)
	}
	stop := context.AfterFunc(s.ctx, func() {
		p.kill(&registry.LostError{Detail: "killed: the keeper has no use for it any more"})
	})
	go func() {
		defer s.wg.Done()
		<-p.exited
		stop()
	}()
	return p, nil
}
