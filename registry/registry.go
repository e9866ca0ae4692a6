package registry

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/viewkeeper/viewkeeper"
)

// Registry holds a node's current factory and replaces it. Current never blocks;
// the changing methods are serialised among themselves.
type Registry struct {
	options RegistryOptions
	current atomic.Pointer[Factory]

	// mu serialises what replaces current, and guards the fields below.
	mu sync.Mutex
	// applied says that the applier holds exactly the current factory. Until the
	// first Apply, and after one that failed, the next one gives it everything.
	applied bool
}

// RegistryOptions are the optional parts of a Registry.
type RegistryOptions struct {
	// Applier, when set, is given the real views before a factory becomes
	// current. When it fails the last factory stays current.
	Applier Applier
	// Swapped, when set, is called under the registry's lock after each swap.
	Swapped func(Swap)
}

// Swap tells what a new factory changed.
type Swap struct {
	Before, After *Factory
	// Changed holds the definitions whose row changed, came or went, and those
	// whose output, state or failure changed. Sorted.
	Changed []viewkeeper.Name
}

// New makes a registry whose current factory is the base alone, at version 0.
func New(base *Base, options RegistryOptions) *Registry {
	r := &Registry{options: options}
	r.current.Store(&Factory{base: base, graph: newGraph()})
	return r
}

// Current is the factory to serve: the base alone before the first load.
func (r *Registry) Current() *Factory { return r.current.Load() }

// Reload makes rows, in any order, the whole catalog at a version. It plans only
// what differs from the current factory and what that affects, and tries again
// what was broken. The factory is swapped at once when all is done; after an
// error (the planner's, the applier's or the context's) the last one stays.
// Nothing is fatal about a row that does not build: see Factory.Failures.
func (r *Registry) Reload(ctx context.Context, version viewkeeper.Version, rows []viewkeeper.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	cur := r.Current()
	live, _ := latest(rows)
	return r.replace(ctx, version, cur.diff(live), cur.graph.retryable(), true)
}

// Advance is Reload for a caller that knows which rows changed; a drop row
// removes its definition. Broken definitions that nothing of it touches are left
// for Retry.
func (r *Registry) Advance(ctx context.Context, version viewkeeper.Version, changed []viewkeeper.Row) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	rows, _ := latest(changed)
	return r.replace(ctx, version, rows, nil, true)
}

// Retry builds the broken definitions again, since what they need from outside
// the catalog (a file) may have come. It swaps only when something was repaired
// or broke otherwise.
func (r *Registry) Retry(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	cur := r.Current()
	retry := cur.graph.retryable()
	if len(retry) == 0 {
		return nil
	}
	return r.replace(ctx, cur.version, nil, retry, false)
}

// replace builds the next factory, applies it and swaps it in.
func (r *Registry) replace(ctx context.Context, version viewkeeper.Version, rows []viewkeeper.Row, retry []viewkeeper.Name, always bool) error {
	cur := r.Current()
	next, t, err := cur.next(ctx, version, rows, retry)
	if err != nil {
		return fmt.Errorf("build version %s, staying at %s: %w", version, cur.version, err)
	}
	d := t.delta()
	if len(d.changed) == 0 && !always && r.applied {
		return nil
	}
	if err := r.apply(ctx, next, t); err != nil {
		return fmt.Errorf("apply version %s, staying at %s: %w", version, cur.version, err)
	}
	for _, n := range append(d.broken, d.failed...) {
		next.base.reportFailure(next.graph.get(n).publicFailure())
	}
	r.current.Store(next)
	if r.options.Swapped != nil {
		r.options.Swapped(Swap{Before: cur, After: next, Changed: d.changed})
	}
	next.base.flush(ctx, next.graph)
	return nil
}

// apply gives the applier what the trial changed, or everything when it does not
// hold the factory before. An applier that was lost gets a second try with
// everything: its next engine begins empty.
func (r *Registry) apply(ctx context.Context, next *Factory, t *trial) error {
	if r.options.Applier == nil {
		r.applied = true
		return nil
	}
	if r.applied {
		r.applied = false
		err := r.options.Applier.Apply(ctx, next.version, false, t.changes())
		if r.applied = err == nil; r.applied || AsLost(err) == nil {
			return err
		}
	}
	return r.applyAll(ctx, next)
}

func (r *Registry) applyAll(ctx context.Context, f *Factory) error {
	err := r.options.Applier.Apply(ctx, f.version, true, f.graph.everything())
	r.applied = err == nil
	return err
}

// Reapply gives the applier everything again, for one that was restarted empty.
func (r *Registry) Reapply(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options.Applier == nil {
		return nil
	}
	if err := r.applyAll(ctx, r.Current()); err != nil {
		return fmt.Errorf("apply version %s again: %w", r.Current().version, err)
	}
	return nil
}

// FailedDefinitions is what the current factory could not build, sorted by name.
func (r *Registry) FailedDefinitions() []*Failure { return r.Current().Failures() }
