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
	// kept is what Recall was given, until the first factory is there.
	kept Kept
}

// RegistryOptions are the optional parts of a Registry.
type RegistryOptions struct {
	// Applier, when set, is given the real views before a factory becomes
	// current. A definition that it refuses is broken, with what reads it, and the
	// rest is applied; when it fails otherwise the last factory stays current.
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

// Recall gives the registry answers that were kept of an earlier factory
// ([Factory].Answers), so that the first one need not be planned again. It forgets
// them with that.
func (r *Registry) Recall(kept Kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = kept
}

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
	doing := "build"
	var d *delta
	next, t, err := cur.nextApplied(ctx, version, rows, retry, false, r.kept, func(t *trial) (bool, error) {
		doing = "apply"
		var err error
		d, err = r.applyTrial(ctx, t, always)
		return d != nil, err
	})
	if err != nil {
		return fmt.Errorf("%s version %s, staying at %s: %w", doing, version, cur.version, err)
	}
	if next == nil {
		return nil
	}
	r.kept = nil
	for _, n := range append(d.broken, d.failed...) {
		next.base.reportFailure(t.after.get(n).publicFailure())
	}
	r.current.Store(next)
	if r.options.Swapped != nil {
		r.options.Swapped(Swap{Before: cur, After: next, Changed: d.changed})
	}
	next.base.flush(ctx, next.graph)
	return nil
}

// applyTrial gives the applier what the trial made, and breaks in the trial what the
// applier refuses, until it takes the rest. Each round breaks one definition more at
// least, so there are no more rounds than definitions. It gives what the trial
// changed in the end, nil when that is nothing and the factory need not be new.
func (r *Registry) applyTrial(ctx context.Context, t *trial, always bool) (*delta, error) {
	for {
		d := t.delta()
		if len(d.changed) == 0 && !always && r.applied {
			return nil, nil
		}
		err := r.apply(ctx, t)
		if err == nil {
			if len(d.changed) == 0 && !always {
				d = nil
			}
			return d, nil
		}
		refused := AsRefused(err)
		if refused == nil {
			return nil, err
		}
		if news, failed := t.refuse(refused.Refused); failed != nil {
			return nil, failed
		} else if !news {
			return nil, err
		}
	}
}

// apply gives the applier what the trial changed, or everything when it does not
// hold the factory before. An applier that was lost gets a second try with
// everything: its next engine begins empty.
func (r *Registry) apply(ctx context.Context, t *trial) error {
	if r.options.Applier == nil {
		r.applied = true
		return nil
	}
	if r.applied {
		err := r.options.Applier.Apply(ctx, t.version, false, t.changes())
		// What was refused changed nothing: the applier still holds the factory before.
		r.applied = err == nil || AsRefused(err) != nil
		if r.applied || AsLost(err) == nil {
			return err
		}
	}
	err := r.options.Applier.Apply(ctx, t.version, true, t.after.everything())
	r.applied = err == nil
	return err
}

// Reapply gives the applier everything again, for one that was restarted empty.
// What it refuses now is broken from now on.
func (r *Registry) Reapply(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.options.Applier == nil {
		return nil
	}
	r.applied = false
	return r.replace(ctx, r.Current().version, nil, nil, false)
}

// FailedDefinitions is what the current factory could not build, sorted by name.
func (r *Registry) FailedDefinitions() []*Failure { return r.Current().Failures() }
