package duckdb_test

import (
	"testing"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

func TestPlannerConformance(t *testing.T) {
	registrytest.TestPlanner(t, func(t *testing.T) registry.Planner {
		p, err := duckdb.Open(t.Context(), duckdb.Options{BaseSQL: registrytest.BaseSQL, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}, registrytest.Subset{})
}
