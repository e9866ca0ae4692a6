package engine

import (
	"context"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// openPlanner opens the planner of a child.
func openPlanner(ctx context.Context, opts duckdb.Options) (registry.Planner, error) {
	p, err := duckdb.Open(ctx, opts)
	if err != nil {
		return nil, err // not a nil *Planner in an interface
	}
	return p, nil
}
