package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// p4 measures Current, which is asked by everything that answers from the catalog. A
// call's cost is processor time, so that 64 goroutines on two cores are comparable with
// one: what they take from each other shows, and waiting for a turn does not.
func p4(ctx context.Context, env *Env) ([]Figure, error) {
	planner, err := duckdb.Open(ctx, duckdb.Options{Threads: 1})
	if err != nil {
		return nil, err
	}
	defer planner.Close()
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{})
	if err != nil {
		return nil, err
	}
	r := registry.New(base, registry.RegistryOptions{})
	goroutines := []int{1, 2, 8, 64}
	costs := map[int][]float64{}
	var allocated int64
	for range env.pick(1, 3) {
		for _, g := range goroutines {
			var cost float64
			result := testing.Benchmark(func(b *testing.B) { cost = currents(b, r, g) })
			costs[g] = append(costs[g], cost)
			allocated = max(allocated, result.AllocsPerOp())
		}
	}
	figures := []Figure{{
		ID: "P4", What: "Current()", Got: slices.Min(costs[1]), Unit: "ns", Limit: 2, Target: "≤ 2 ns",
		Note: "processor time of a call, the best of all runs",
	}, {
		ID: "P4", What: "Current(), allocations", Got: float64(allocated), Unit: "", Limit: 0, Target: "none",
	}}
	for _, g := range goroutines[1:] {
		figures = append(figures, Figure{
			ID: "P4", What: fmt.Sprintf("Current(), %d goroutines", g), Got: slices.Min(costs[g]), Unit: "ns", Limit: 2, Target: "≤ 2 ns",
			Baseline: slices.Min(costs[1]), Against: "one goroutine",
		})
	}
	return figures, nil
}

// currents makes b.N calls in each of g goroutines, and gives the nanoseconds of one.
func currents(b *testing.B, r *registry.Registry, g int) float64 {
	b.ReportAllocs()
	var all sync.WaitGroup
	before := processorTime()
	for range g {
		all.Go(func() {
			var last *registry.Factory
			for range b.N {
				last = r.Current()
			}
			if last == nil {
				b.Error("no factory")
			}
		})
	}
	all.Wait()
	return float64(processorTime()-before) / float64(b.N) / float64(g)
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
