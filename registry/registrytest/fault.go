package registrytest

import (
	"context"
	"fmt"
	"slices"

	"github.com/viewkeeper/viewkeeper/registry"
)

// FaultPlanner passes calls on to another planner and fails one of them. A run
// that is repeated with At 0, 1, 2, ... until it meets no fault has been broken at
// every call that it makes.
type FaultPlanner struct {
	registry.Planner
	// At is the call to fail, counted from 0 over all methods but Close; a negative
	// one never fails.
	At int
	// Err is the error of that call. With a *registry.LostError the scratch catalog
	// is emptied as well, as the contract of such an error says.
	Err error
	// Late passes the call on first and loses its answer, as when the engine dies
	// after the work is done.
	Late bool
	// Times is how many calls in a row fail from At on, 1 when 0.
	Times int

	calls int
	hit   string
}

// Hit names the last call that failed, "Bind, call 3", or is "" when none has.
func (p *FaultPlanner) Hit() string { return p.hit }

// Arm fails the n-th call from now on, and forgets what was hit before.
func (p *FaultPlanner) Arm(n int) { p.At, p.calls, p.hit = n, 0, "" }

// Calls is the number of calls since the start or Arm.
func (p *FaultPlanner) Calls() int { return p.calls }

// Describe passes on or fails.
func (p *FaultPlanner) Describe(ctx context.Context) (*registry.Engine, error) {
	return fault(ctx, p, "Describe", func() (*registry.Engine, error) { return p.Planner.Describe(ctx) })
}

// Parse passes on or fails.
func (p *FaultPlanner) Parse(ctx context.Context, queries []registry.Query) ([]registry.Parsed, error) {
	return fault(ctx, p, "Parse", func() ([]registry.Parsed, error) { return p.Planner.Parse(ctx, queries) })
}

// Bind passes on or fails.
func (p *FaultPlanner) Bind(ctx context.Context, stubs []registry.Stub, queries []registry.Query) ([]registry.Bound, error) {
	return fault(ctx, p, "Bind", func() ([]registry.Bound, error) { return p.Planner.Bind(ctx, stubs, queries) })
}

// Settle passes on or fails.
func (p *FaultPlanner) Settle(ctx context.Context, keep bool) error {
	_, err := fault(ctx, p, "Settle", func() (struct{}, error) { return struct{}{}, p.Planner.Settle(ctx, keep) })
	return err
}

// Reset passes on or fails.
func (p *FaultPlanner) Reset(ctx context.Context) error {
	_, err := fault(ctx, p, "Reset", func() (struct{}, error) { return struct{}{}, p.Planner.Reset(ctx) })
	return err
}

// MergeTwice passes on or fails. A planner that is no [registry.Merger] is not
// asked, and nothing is known.
func (p *FaultPlanner) MergeTwice(ctx context.Context, merges []registry.Merge) ([]registry.Algebra, error) {
	merger, ok := p.Planner.(registry.Merger)
	if !ok {
		return slices.Repeat([]registry.Algebra{{Unknown: "the planner runs no merge query"}}, len(merges)), nil
	}
	return fault(ctx, p, "MergeTwice", func() ([]registry.Algebra, error) { return merger.MergeTwice(ctx, merges) })
}

func fault[T any](ctx context.Context, p *FaultPlanner, name string, call func() (T, error)) (T, error) {
	n := p.calls
	p.calls++
	if p.At < 0 || n < p.At || n >= p.At+max(p.Times, 1) {
		return call()
	}
	p.hit = fmt.Sprintf("%s, call %d", name, n)
	var none T
	if p.Late {
		if _, err := call(); err != nil {
			return none, err
		}
	}
	if registry.AsLost(p.Err) != nil {
		if err := p.Planner.Reset(context.WithoutCancel(ctx)); err != nil {
			return none, err
		}
	}
	return none, p.Err
}
