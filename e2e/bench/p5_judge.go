package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// judgeRate is how many of P5's statements the judge decides in a second over n
// definitions, with an engine as an owner has it and without Kafka: one after the other,
// as they would come from all producers in turn.
func judgeRate(ctx context.Context, n int, during time.Duration) (rate float64, err error) {
	base, statements := registrytest.Large(n)
	cfg := engine.Config{ResidentLimit: engine.DefaultPlannerResident, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	cfg.Options.BaseSQL = base
	planner, err := engine.StartPlanner(ctx, cfg)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, planner.Close()) }()
	on, err := registry.NewBase(ctx, planner, registry.BaseOptions{Log: cfg.Log})
	if err != nil {
		return 0, err
	}
	var rows []viewkeeper.Row
	for i, text := range statements {
		s, err := ddl.Parse(text)
		if err != nil {
			return 0, err
		}
		create, ok := s.(*viewkeeper.Create)
		if !ok {
			return 0, fmt.Errorf("not one definition: %s", text)
		}
		v := viewkeeper.Version(i + 1)
		rows = append(rows, viewkeeper.Row{Name: create.Name, Version: v, Epoch: 1,
			Definition: &viewkeeper.Definition{Name: create.Name, Kind: create.Kind, SQL: text, ID: v}})
	}
	catalog, err := registry.LoadCatalog(ctx, on, rows, registry.CatalogOptions{Epoch: 1, Owner: "bench"})
	if err != nil {
		return 0, err
	}
	offset := int64(n)
	var began time.Time
	decided := 0
	// The first rounds make the definitions, as the producers' first statements do.
	for i := 0; ; i++ {
		for p := range p5Producers {
			name, sql := p5Statement(p+1, i)
			out, err := catalog.Judge(ctx, viewkeeper.Submission{Key: name, SQL: sql, ID: fmt.Sprintf("%d-%d", p, i), Offset: offset})
			if err != nil {
				return 0, err
			}
			if out.Decision.Verdict != viewkeeper.Accepted {
				return 0, fmt.Errorf("%s: %s", out.Decision.Code, out.Decision.Message)
			}
			offset++
			decided++
		}
		switch {
		case i == 4:
			began, decided = time.Now(), 0
		case i > 4 && time.Since(began) > during:
			return float64(decided) / time.Since(began).Seconds(), nil
		}
	}
}
