package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/viewkeeper/viewkeeper/internal/reasons"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// supervisor keeps one child running.
//
//	      start fails: after a pause, again
//	     ┌───────────┐
//	     ▼           │
//	┌─ starting ─────┴─► ready ──► died, killed, or retired ─┐
//	│     ▲                                                  │
//	│     └──────────────────────────────────────────────────┘
//	└─► closed
//
// A child is ready when it is open and has been given what it must hold (prepare).
// A retired child takes no new call, ends those it has, and is killed.
type supervisor struct {
	cfg     Config
	role    role
	dir     string
	prepare func(ctx context.Context, p *process) error

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup // run, and every drain

	mu      sync.Mutex
	current *process      // nil while there is none that is ready
	failed  error         // why the last start failed, nil after one that did not
	changed chan struct{} // closed and replaced when current or failed changes

	lost   atomic.Int64
	starts atomic.Int64 // children so far
	// These say when losses and failed starts are said: a base that does not run fails each second.
	lossSaid, failureSaid reasons.Seldom // used by run and restart alone
}

// newSupervisor starts the first child and waits until it is ready. The error of
// the first start is the caller's: later ones are only reported to calls.
func newSupervisor(ctx context.Context, cfg Config, r role, prepare func(context.Context, *process) error) (*supervisor, error) {
	if IsChild() {
		return nil, errors.New("engine: this process is an engine itself; main has to begin with engine.IsChild and engine.Main")
	}
	dir, err := socketDir()
	if err != nil {
		return nil, err
	}
	s := &supervisor{
		cfg: cfg.withDefaults(r), role: r, dir: dir, prepare: prepare,
		changed: make(chan struct{}),
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	p, err := s.start(ctx, prepare)
	if err != nil {
		s.cancel()
		_ = os.RemoveAll(dir)
		return nil, err
	}
	s.current = p
	s.wg.Add(1)
	go s.run(p)
	return s, nil
}

// run replaces children until the supervisor is closed. p is the first.
func (s *supervisor) run(p *process) {
	defer s.wg.Done()
	for short := 0; p != nil; {
		var loss string
		select {
		case <-p.exited:
			loss = p.lost.Detail
			if count, say := s.lossSaid.Happened(time.Now(), 1); say {
				s.cfg.Log.Error("the engine was lost; another is being started", "pid", p.pid(), "detail", loss, "times", count,
					"do", "nothing if it was one statement or query; else see ENGINE_DOWN in docs/operations.md")
			}
		case <-p.retired:
			s.cfg.Log.Warn("the engine is being replaced", "pid", p.pid(), "reason", p.retirement)
			loss = p.retirement
			s.wg.Add(1)
			go s.drain(p)
		case <-s.ctx.Done():
			s.end(p)
			return
		}
		s.lost.Add(1)
		s.set(nil, nil)
		s.cfg.Changed(loss)
		if short++; time.Since(p.started) > shortLife {
			short = 0
		}
		if short > 1 && !s.pause(short-2) {
			return
		}
		if p = s.restart(); p != nil {
			s.cfg.Changed("")
		}
	}
}

// shortLife is a life that makes the next child wait when several have had one: an
// engine whose base alone is over the limit must not be started all the time.
const shortLife = 2 * time.Second

// pauses between starts that fail, the last one again and again.
var pauses = [...]time.Duration{50 * time.Millisecond, 200 * time.Millisecond, time.Second}

// pause waits before the n-th try, from 0, and reports whether there is to be one.
func (s *supervisor) pause(n int) bool {
	timer := time.NewTimer(pauses[min(n, len(pauses)-1)])
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// restart starts a child, again and again until one is ready, or gives nil when
// the supervisor is closed.
func (s *supervisor) restart() *process {
	for n := 0; ; n++ {
		p, err := s.start(s.ctx, s.prepare)
		if err == nil {
			s.set(p, nil)
			return p
		}
		if s.ctx.Err() != nil {
			return nil
		}
		if count, say := s.failureSaid.Happened(time.Now(), 1); say {
			s.cfg.Log.Error("the engine does not start; it is tried again", "error", err, "times", count)
		}
		s.set(nil, err)
		if !s.pause(n) {
			return nil
		}
	}
}

// start gives a child that is ready.
func (s *supervisor) start(ctx context.Context, prepare func(context.Context, *process) error) (*process, error) {
	ctx, cancel := context.WithTimeout(ctx, s.cfg.StartTimeout)
	defer cancel()
	began := time.Now()
	p, err := startProcess(s.cfg, s.role, filepath.Join(s.dir, fmt.Sprintf("%d.sock", s.starts.Add(1))))
	if err != nil {
		return nil, err
	}
	err = s.roundTrip(ctx, p, methodOpen, openParams{Role: s.role, Options: s.cfg.Options}, nil)
	if err == nil && prepare != nil {
		err = prepare(ctx, p)
	}
	if err != nil {
		s.end(p)
		return nil, err
	}
	s.cfg.Log.Info("the engine is ready", "pid", p.pid(), "after", time.Since(began))
	return p, nil
}

// end kills a child and waits for its end.
func (s *supervisor) end(p *process) {
	p.kill(&registry.LostError{Detail: "killed: the keeper has no use for it any more"})
	<-p.exited
}

// drainTimeout is how long a retired child may go on with the calls it has.
const drainTimeout = 5 * time.Second

// drain ends a retired child when its calls have ended.
func (s *supervisor) drain(p *process) {
	defer s.wg.Done()
	timer := time.NewTimer(drainTimeout)
	defer timer.Stop()
	select {
	case <-p.whenIdle():
	case <-timer.C:
	case <-p.exited:
	case <-s.ctx.Done():
	}
	p.kill(&registry.LostError{Detail: "killed: " + p.retirement})
	<-p.exited
}

// set says what calls are to use, or why there is nothing.
func (s *supervisor) set(p *process, failed error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.current, s.failed = p, failed
	close(s.changed)
	s.changed = make(chan struct{})
}

// acquire gives the child that a call is for, counted in; the caller calls leave. It
// waits while one is being started, and gives a LostError when that has failed.
func (s *supervisor) acquire(ctx context.Context) (*process, error) {
	for {
		s.mu.Lock()
		p, failed, changed := s.current, s.failed, s.changed
		s.mu.Unlock()
		switch {
		case s.ctx.Err() != nil:
			return nil, duckdb.ErrClosed
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case failed != nil:
			return nil, &registry.LostError{Detail: "it does not start: " + failed.Error()}
		}
		if p != nil && p.enter() {
			return p, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
		case <-s.ctx.Done():
		}
	}
}

// ready gives nil when a child is ready, else why there is none.
func (s *supervisor) ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.ctx.Err() != nil:
		return duckdb.ErrClosed
	case s.failed != nil:
		return fmt.Errorf("the engine does not start: %w", s.failed)
	case s.current == nil || s.current.leaving():
		return errors.New("the engine is being started")
	}
	return nil
}

// losses counts the children that were lost or replaced.
func (s *supervisor) losses() int64 { return s.lost.Load() }

// Close ends the child and waits for its end.
func (s *supervisor) Close() error {
	s.mu.Lock()
	s.cancel()
	s.mu.Unlock()
	s.wg.Wait()
	if err := os.RemoveAll(s.dir); err != nil {
		return fmt.Errorf("engine: its folder could not be removed: %w", err)
	}
	return nil
}
