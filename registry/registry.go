package registry

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/viewkeeper/viewkeeper"
)

// Registry holds a node's current factory and replaces it. Current never blocks;
// the changing methods are serialised among themselves.
type Registry struct {
	base    *Base
	options RegistryOptions
	current atomic.Pointer[Factory]
	mu      sync.Mutex
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
func New(base *Base, options RegistryOptions) *Registry { panic("todo") }

// Current is the factory to serve: the base alone before the first load.
func (r *Registry) Current() *Factory { panic("todo") }

// Reload makes rows, in any order, the whole catalog at a version. It plans only
// what differs from the current factory and what that affects, and tries again
// what was broken. The factory is swapped at once when all is done; after an
// error (the planner's, the applier's or the context's) the last one stays.
// Nothing is fatal about a row that does not build: see Factory.Failures.
func (r *Registry) Reload(ctx context.Context, version viewkeeper.Version, rows []viewkeeper.Row) error {
	panic("todo")
}

// Advance is Reload for a caller that knows which rows changed; a drop row
// removes its definition. Broken definitions that nothing of it touches are left
// for Retry.
func (r *Registry) Advance(ctx context.Context, version viewkeeper.Version, changed []viewkeeper.Row) error {
	panic("todo")
}

// Retry builds the broken definitions again, since what they need from outside
// the catalog (a file) may have come. It swaps only when something was repaired
// or broke otherwise.
func (r *Registry) Retry(ctx context.Context) error { panic("todo") }

// Reapply gives the applier everything again, for one that was restarted empty.
func (r *Registry) Reapply(ctx context.Context) error { panic("todo") }

// FailedDefinitions is what the current factory could not build, sorted by name.
func (r *Registry) FailedDefinitions() []*Failure { panic("todo") }
