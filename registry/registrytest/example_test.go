package registrytest_test

import (
	"context"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// The law runs over the model planner without an engine: the base is a list of
// relations.
func ExampleNewModel() {
	ctx := context.Background()
	planner := registrytest.NewModel(registrytest.Relation("main.t", "a", "INTEGER", "b", "VARCHAR"))
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{})
	if err != nil {
		panic(err)
	}
	catalog, err := registry.LoadCatalog(ctx, base, nil, registry.CatalogOptions{})
	if err != nil {
		panic(err)
	}
	for i, sql := range []string{
		"CREATE VIEW v AS SELECT a, upper(b) AS b FROM t",
		"CREATE VIEW w AS SELECT a + 1 AS n FROM v",
		"CREATE OR REPLACE VIEW v AS SELECT b FROM t",
	} {
		out, err := catalog.Judge(ctx, viewkeeper.Submission{Key: "k", SQL: sql, Offset: int64(i)})
		if err != nil {
			panic(err)
		}
		fmt.Println(out.Decision.Verdict, out.Decision.Code, out.Decision.Message)
	}
	// Output:
	// accepted  created main.v
	// accepted  created main.w
	// refused BREAKS_DEPENDENTS main.w would break: Referenced column "a" not found in FROM clause!
}

// A planner that dies at its next call: nothing was decided, and the catalog is
// as it was.
func ExampleFaultPlanner() {
	ctx := context.Background()
	planner := &registrytest.FaultPlanner{
		Planner: registrytest.NewModel(registrytest.BaseRelations()...),
		At:      -1, // none yet
		Err:     context.DeadlineExceeded,
	}
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{})
	if err != nil {
		panic(err)
	}
	catalog, err := registry.LoadCatalog(ctx, base, nil, registry.CatalogOptions{})
	if err != nil {
		panic(err)
	}
	planner.Arm(0)
	_, err = catalog.Judge(ctx, viewkeeper.Submission{Key: "k", SQL: "CREATE VIEW v AS SELECT a FROM t"})
	fmt.Println(planner.Hit(), "->", err != nil, catalog.Snapshot().Len())
	// Output:
	// Parse, call 0 -> true 0
}
