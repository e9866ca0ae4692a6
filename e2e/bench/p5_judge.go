package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// judged is a catalog to judge statements over, with an engine as an owner has it.
type judged struct {
	catalog *registry.Catalog
	planner *engine.Planner
	offset  int64
}

// loadJudged loads the n definitions of registrytest.Large.
func loadJudged(ctx context.Context, n int) (j *judged, err error) {
	base, _ := registrytest.Large(n)
	cfg := engine.Config{ResidentLimit: engine.DefaultPlannerResident, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	cfg.Options.BaseSQL = base
	planner, err := engine.StartPlanner(ctx, cfg)
	if err != nil {
		return nil, err
	}
	j = &judged{planner: planner, offset: int64(n)}
	defer func() {
		if err != nil {
			j.close(&err)
		}
	}()
	on, err := registry.NewBase(ctx, planner, registry.BaseOptions{Log: cfg.Log})
	if err != nil {
		return nil, err
	}
	rows, err := largeRows(n)
	if err != nil {
		return nil, err
	}
	j.catalog, err = registry.LoadCatalog(ctx, on, rows, registry.CatalogOptions{Epoch: 1, Owner: "bench"})
	return j, err
}

func (j *judged) close(err *error) { *err = errors.Join(*err, j.planner.Close()) }

// judgeRate is how many of P5's statements the judge decides in a second over n
// definitions, without Kafka: one after the other, as they would come from all
// producers in turn.
func judgeRate(ctx context.Context, n int, during time.Duration) (rate float64, err error) {
	j, err := loadJudged(ctx, n)
	if err != nil {
		return 0, err
	}
	defer j.close(&err)
	var began time.Time
	decided := 0
	// The first rounds make the definitions, as the producers' first statements do.
	for i := 0; ; i++ {
		for p := range p5Producers {
			name, sql := p5Statement(p+1, i)
			if err := j.accept(ctx, name, sql); err != nil {
				return 0, err
			}
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
