package engine

import (
	"testing"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// A planner in a child is held to what every planner is.
func TestPlannerConformance(t *testing.T) {
	registrytest.TestPlanner(t, func(t *testing.T) registry.Planner {
		return startTestPlanner(t, func(c *Config) { c.Options = duckdb.Options{BaseSQL: registrytest.BaseSQL} })
	}, registrytest.Subset{})
}
