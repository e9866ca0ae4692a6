package engine

import (
	"context"
	"errors"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// openPlanner opens the planner of a child.
func openPlanner(context.Context, duckdb.Options) (registry.Planner, error) {
	return nil, errors.New("engine: the planner is not wired yet")
}
