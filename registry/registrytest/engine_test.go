package registrytest_test

import (
	"testing"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// openEngine starts the real planner in this process.
func openEngine(t *testing.T, baseSQL string, lake ...string) (registry.Planner, error) {
	return duckdb.Open(t.Context(), duckdb.Options{BaseSQL: baseSQL, LakeDirs: lake, Threads: 1})
}

func TestDuckDBConforms(t *testing.T) {
	registrytest.TestPlanner(t, func(t *testing.T) registry.Planner {
		p, err := openEngine(t, registrytest.BaseSQL)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}, registrytest.Subset{})
}
