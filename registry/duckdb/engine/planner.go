package engine

import (
	"context"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

var errClosed = duckdb.ErrClosed

// Planner is a [registry.Planner] whose engine is a child process.
//
// Each child begins with an empty scratch catalog, so its loss is told to the
// caller exactly once: by the call that it was lost in, or else by the next one,
// which then does nothing.
type Planner struct {
	supervisor *supervisor

	mu   sync.Mutex
	used *process // the child that the last call ran on, nil before the first
	// trial numbers the trial of the next Bind; bound says that one was sent. ended is how
	// the trials before ended, as far as the child may not have heard of it.
	trial int
	bound bool
	ended []trialEnd
	// callTimeout is Config.CallTimeout; the supervisor copies its own without this lock.
	callTimeout time.Duration
}

var _ registry.Planner = (*Planner)(nil)

// StartPlanner starts a planner's child and waits until it is open. An error in the
// base is given as it is; ctx bounds the start alone.
func StartPlanner(ctx context.Context, cfg Config) (*Planner, error) {
	s, err := newSupervisor(ctx, cfg, rolePlanner, nil)
	if err != nil {
		return nil, err
	}
	return &Planner{supervisor: s, callTimeout: s.cfg.CallTimeout}, nil
}

// Describe is that of [registry.Planner].
func (p *Planner) Describe(ctx context.Context) (*registry.Engine, error) {
	var e *registry.Engine
	err := p.call(ctx, methodDescribe, struct{}{}, &e)
	return e, err
}

// Parse is that of [registry.Planner].
func (p *Planner) Parse(ctx context.Context, queries []registry.Query) ([]registry.Parsed, error) {
	var parsed []registry.Parsed
	err := p.call(ctx, methodParse, parseParams{queries}, &parsed)
	return parsed, err
}

// Bind is that of [registry.Planner]. It brings the child how the trials before ended.
// A Bind that was given up may have arrived or not, and so may what it brought: trials
// have numbers, and the child ends the one that it has open when it is told of that one.
func (p *Planner) Bind(ctx context.Context, stubs []registry.Stub, queries []registry.Query) ([]registry.Bound, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bound = true
	var bound []registry.Bound
	err := p.callLocked(ctx, methodBind, bindParams{p.trial, p.ended, stubs, queries}, &bound)
	if err == nil {
		p.ended = nil
	}
	return bound, err
}

// Settle is that of [registry.Planner]. The child hears of it with the next Bind: only
// that looks at the stubs.
func (p *Planner) Settle(ctx context.Context, keep bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.bound {
		p.ended = append(p.ended, trialEnd{p.trial, keep})
		p.trial++
		p.bound = false
	}
	return ctx.Err()
}

// Reset is that of [registry.Planner].
func (p *Planner) Reset(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := p.callLocked(ctx, methodReset, struct{}{}, nil)
	if err == nil {
		p.bound, p.ended = false, nil
	}
	return err
}

// Close ends the child.
func (p *Planner) Close() error { return p.supervisor.Close() }

// Ready gives nil when the engine is there, else why it is not: a call made now
// would wait for the next one, or fail when that does not start.
func (p *Planner) Ready() error { return p.supervisor.ready() }

// Losses counts the engines that were lost, killed or replaced so far.
func (p *Planner) Losses() int64 { return p.supervisor.losses() }

func (p *Planner) call(ctx context.Context, method string, params, result any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.callLocked(ctx, method, params, result)
}

func (p *Planner) callLocked(ctx context.Context, method string, params, result any) error {
	// The wait for an engine that is being started is not the call's time: its own
	// bound ends it, with an error that says why there is no engine.
	child, err := p.supervisor.acquire(ctx)
	if err != nil {
		return err
	}
	defer child.leave()
	if before := p.used; before != nil && before != child {
		p.used = nil
		<-before.exited
		return before.lost
	}
	p.used = child
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, p.callTimeout)
		defer cancel()
	}
	err = p.supervisor.roundTrip(ctx, child, method, params, result)
	if registry.AsLost(err) != nil {
		p.used = nil
	}
	return err
}
