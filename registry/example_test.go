package registry_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// exampleBase is a base with one relation. A program takes a planner of
// registry/duckdb here, and the examples a small one in plain Go.
func exampleBase() *registry.Base {
	planner := registrytest.NewModel(registrytest.Relation("main.flights", "carrier", "VARCHAR", "dep_delay", "BIGINT"))
	base, err := registry.NewBase(context.Background(), planner, registry.BaseOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		log.Fatal(err)
	}
	return base
}

// row is a row as it stands in the group table.
func row(version viewkeeper.Version, name, sql string) viewkeeper.Row {
	n := viewkeeper.MakeName("", name)
	return viewkeeper.Row{Name: n, Version: version, Definition: &viewkeeper.Definition{Name: n, Kind: viewkeeper.KindView, SQL: sql, ID: version}}
}

// Rows come in any order, and one that does not build is no reason to do without
// the others.
func ExampleBuildFactory() {
	rows := []viewkeeper.Row{
		row(2, "late", "CREATE VIEW late AS SELECT carrier FROM clean WHERE delay > 15"),
		row(1, "clean", "CREATE VIEW clean AS SELECT carrier, dep_delay AS delay FROM flights"),
		row(3, "typo", "CREATE VIEW typo AS SELECT carier FROM clean"),
	}
	factory, err := registry.BuildFactory(context.Background(), exampleBase(), rows, registry.Probe)
	if err != nil {
		log.Fatal(err)
	}
	for d := range factory.Definitions() {
		fmt.Println(d.Row.Name, d.State(), d.Columns)
	}
	for _, f := range factory.Failures() {
		fmt.Printf("%s, stage %s, at %d:%d: %s\n", f.Name, f.Stage, f.Position.Line, f.Position.Column, f.Reason)
	}
	// Output:
	// main.clean ok [{carrier VARCHAR} {delay BIGINT}]
	// main.late ok [{carrier VARCHAR}]
	// main.typo broken []
	// main.typo, stage build, at 1:28: Referenced column "carier" not found in FROM clause!
}

// Before rows are committed: who would not survive them?
func ExampleCheckDependentsSurvive() {
	pre := []viewkeeper.Row{
		row(1, "clean", "CREATE VIEW clean AS SELECT carrier, dep_delay FROM flights"),
		row(2, "daily", "CREATE VIEW daily AS SELECT carrier, sum(dep_delay) AS total FROM clean GROUP BY carrier"),
		row(3, "report", "CREATE VIEW report AS SELECT * FROM daily"),
	}
	post := []viewkeeper.Row{pre[1], pre[2], row(4, "clean", "CREATE OR REPLACE VIEW clean AS SELECT carrier, dep_delay AS delay FROM flights")}
	survival, err := registry.CheckDependentsSurvive(context.Background(), exampleBase(), pre, post)
	if err != nil {
		log.Fatal(err)
	}
	for _, b := range survival.Broken {
		if b.RootCause == nil {
			fmt.Printf("%s: %s\n", b.Name, b.Reason)
		} else {
			fmt.Printf("%s: only because of %s\n", b.Name, b.RootCause)
		}
	}
	// Output:
	// main.daily: Referenced column "dep_delay" not found in FROM clause!
	// main.report: only because of main.daily
}

// A node takes the current factory for each query; a reload swaps it whole.
func ExampleRegistry() {
	ctx := context.Background()
	r := registry.New(exampleBase(), registry.RegistryOptions{
		Swapped: func(s registry.Swap) { fmt.Println("now at version", s.After.Version(), "changed", s.Changed) },
	})
	fmt.Println("before the first load:", r.Current().Len(), "definitions")

	rows := []viewkeeper.Row{
		row(1, "clean", "CREATE VIEW clean AS SELECT carrier, dep_delay FROM flights"),
		row(2, "late", "CREATE VIEW late AS SELECT carrier FROM clean WHERE dep_delay > 15"),
	}
	if err := r.Reload(ctx, 2, rows); err != nil {
		log.Fatal(err)
	}
	// From then on only what changed is planned, and who can tell the difference.
	if err := r.Advance(ctx, 3, []viewkeeper.Row{row(3, "clean", "CREATE VIEW clean AS SELECT carrier FROM flights")}); err != nil {
		log.Fatal(err)
	}
	for _, f := range r.FailedDefinitions() {
		fmt.Println(f.Name, "is broken:", f.Reason)
	}
	// Output:
	// before the first load: 0 definitions
	// now at version 2 changed [main.clean main.late]
	// now at version 3 changed [main.clean main.late]
	// main.late is broken: Referenced column "dep_delay" not found in FROM clause!
}

// The owner judges one submission after the other.
func ExampleCatalog_Judge() {
	ctx := context.Background()
	catalog, err := registry.LoadCatalog(ctx, exampleBase(), nil, registry.CatalogOptions{Owner: "node-1", Epoch: 1})
	if err != nil {
		log.Fatal(err)
	}
	for offset, sql := range []string{
		"CREATE VIEW clean AS SELECT carrier, dep_delay FROM flights",
		"CREATE VIEW late AS SELECT carrier FROM clean WHERE dep_delay > 15",
		"CREATE OR REPLACE VIEW clean AS SELECT carrier FROM flights",
		"DROP VIEW clean CASCADE",
	} {
		out, err := catalog.Judge(ctx, viewkeeper.Submission{Key: "any", SQL: sql, Offset: int64(offset)})
		if err != nil {
			log.Fatal(err)
		}
		d := out.Decision
		fmt.Println(d.Version, d.Verdict, d.Code, d.Message)
	}
	// Output:
	// 1 accepted  created main.clean
	// 2 accepted  created main.late
	// 3 refused BREAKS_DEPENDENTS main.late would break: Referenced column "dep_delay" not found in FROM clause!
	// 4 accepted  dropped main.clean and main.late
}
