package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// The ancestor of this system decided a change by two full builds, of the catalog as it
// is and as it would be, and its nodes looked into a table once a minute and built all
// of it anew when it had changed.
const ancestorPoll = time.Minute

// Ancestor is what its algorithm takes with the planner and the definitions of ours.
type Ancestor struct {
	// Small and Large are two numbers of definitions, and SmallBuild and LargeBuild what
	// a full build of as many took.
	Small, Large           int
	SmallBuild, LargeBuild time.Duration
}

// Ancestor measures full builds of a twentieth and of a tenth of the definitions. What
// they take for all is computed from that: at 10,000 they would take most of the run.
func (e *Env) Ancestor(ctx context.Context) (a Ancestor, err error) {
	a.Small, a.Large = max(e.N/20, 10), max(e.N/10, 20)
	baseSQL, _ := registrytest.Large(1)
	cfg := engine.Config{ResidentLimit: engine.DefaultPlannerResident, Log: slog.New(slog.NewTextHandler(io.Discard, nil))}
	cfg.Options.BaseSQL = baseSQL
	planner, err := engine.StartPlanner(ctx, cfg)
	if err != nil {
		return a, err
	}
	defer func() { err = errors.Join(err, planner.Close()) }()
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{Log: cfg.Log})
	if err != nil {
		return a, err
	}
	for _, one := range []struct {
		n    int
		took *time.Duration
	}{{a.Small, &a.SmallBuild}, {a.Large, &a.LargeBuild}} {
		rows, err := largeRows(one.n)
		if err != nil {
			return a, err
		}
		var two durations
		for range 2 {
			began := time.Now()
			f, err := registry.BuildFactory(ctx, base, rows, registry.Probe)
			if err != nil {
				return a, err
			}
			if f.Broken() > 0 {
				return a, fmt.Errorf("%d definitions do not build", f.Broken())
			}
			two = append(two, time.Since(began))
		}
		*one.took = min(two[0], two[1])
	}
	return a, nil
}

// Exponent says how a build grows: with this power of the number of definitions.
func (a Ancestor) Exponent() float64 {
	return math.Log(float64(a.LargeBuild)/float64(a.SmallBuild)) / math.Log(float64(a.Large)/float64(a.Small))
}

// Build is what a full build of n definitions takes, counted as if it grew with their
// number, which is the least that it can.
func (a Ancestor) Build(n int) time.Duration {
	return time.Duration(float64(a.LargeBuild) * float64(n) / float64(a.Large))
}

// Visible is the time until a change is visible on a node, as it is to be expected.
func (a Ancestor) Visible(n int) time.Duration { return 2*a.Build(n) + ancestorPoll/2 + a.Build(n) }

// largeRows are the rows of n accepted definitions.
func largeRows(n int) ([]viewkeeper.Row, error) {
	_, statements := registrytest.Large(n)
	rows := make([]viewkeeper.Row, 0, n)
	for i, text := range statements {
		s, err := ddl.Parse(text)
		if err != nil {
			return nil, err
		}
		create, ok := s.(*viewkeeper.Create)
		if !ok {
			return nil, fmt.Errorf("not one definition: %s", text)
		}
		v := viewkeeper.Version(i + 1)
		rows = append(rows, viewkeeper.Row{Name: create.Name, Version: v, Epoch: 1,
			Definition: &viewkeeper.Definition{Name: create.Name, Kind: create.Kind, SQL: create.SQL, ID: v}})
	}
	return rows, nil
}
