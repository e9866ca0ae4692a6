package engine_test

import (
	"context"
	"fmt"
	"log"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
)

// A planner in a child process: whatever a query does to it, this process lives.
// main has to begin with
//
//	if engine.IsChild() {
//		os.Exit(engine.Main())
//	}
func ExampleStartPlanner() {
	ctx := context.Background()
	planner, err := engine.StartPlanner(ctx, engine.Config{
		Options: duckdb.Options{BaseSQL: "CREATE TABLE flights (carrier VARCHAR, delay INTEGER)"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer planner.Close()
	bound, err := planner.Bind(ctx, nil, []registry.Query{{Text: "SELECT carrier, sum(delay) AS total FROM main.flights GROUP BY ALL"}})
	if lost := registry.AsLost(err); lost != nil {
		fmt.Println("the query took down an engine, and the next one is being started:", lost.Detail)
		return
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(bound[0].Columns)
	// Output: [{carrier VARCHAR} {total HUGEINT}]
}
