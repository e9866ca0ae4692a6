package main

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// p6 measures the memory of a node with all definitions loaded over that of one with an
// empty catalog: keeper, planner and server, each with its share of what they share.
// Beside it what this process grows by when a bare DuckDB in it makes the same views.
func p6(ctx context.Context, env *Env) ([]Figure, error) {
	debug.FreeOSMemory()
	_, bare, err := bareViews(env.N)
	if err != nil {
		return nil, err
	}
	full, err := env.Loaded(ctx, env.N)
	if err != nil {
		return nil, err
	}
	empty, err := env.NewCatalog(ctx, "")
	if err != nil {
		return nil, err
	}
	of := func(c *Catalog, name string) (parts []float64, err error) {
		owner, err := c.Serve(ctx, "owner", "owner")
		if err != nil {
			return nil, err
		}
		defer owner.Stop()
		n, err := c.Serve(ctx, name, "node")
		if err != nil {
			return nil, err
		}
		defer n.Stop()
		// All views are in the engine when they are counted.
		if _, err := n.timed(ctx, asJSON, "SELECT count(*) FROM duckdb_views() WHERE NOT internal"); err != nil {
			return nil, err
		}
		// The garbage of the start goes in the runtime's own time, two minutes at most.
		for range env.pick(1, 13) {
			select {
			case <-time.After(10 * time.Second):
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		for _, pid := range n.family() {
			mb, err := share(pid)
			if err != nil {
				return nil, err
			}
			parts = append(parts, mb)
		}
		return parts, nil
	}
	without, err := of(empty, "node")
	if err != nil {
		return nil, err
	}
	cold, err := of(full, "memory")
	if err != nil {
		return nil, err
	}
	copied, err := of(full, "memory")
	if err != nil {
		return nil, err
	}
	note := fmt.Sprintf("keeper and engines: %s MB with nothing, %s MB with all definitions; after a start with the copy, which plans nothing, %s MB", list(without), list(cold), list(copied))
	return []Figure{{
		ID: "P6", What: "a node's memory over an empty one's", Got: sum(cold) - sum(without), Baseline: bare, Unit: "MB", Against: "bare DuckDB with the views",
		Limit: 2 * bare, Target: "≤ 2 ×", Note: note,
	}, {
		ID: "P6", What: "the same after a start with the copy", Got: sum(copied) - sum(without), Baseline: bare, Unit: "MB", Against: "bare DuckDB with the views",
		Limit: 2 * bare, Target: "≤ 2 ×",
	}}, nil
}

func sum(parts []float64) (total float64) {
	for _, p := range parts {
		total += p
	}
	return total
}

func list(parts []float64) string {
	var out []string
	for _, p := range parts {
		out = append(out, fmt.Sprintf("%.0f", p))
	}
	return strings.Join(out, " + ")
}

// ownMemory is what this process has in memory, in MB.
func ownMemory() (float64, error) { return share(os.Getpid()) }

// share is a process's memory in MB; of pages that it shares its part.
func share(pid int) (float64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(text), "\nPss:")
	words := strings.Fields(rest)
	if len(words) == 0 {
		return 0, fmt.Errorf("no Pss of process %d", pid)
	}
	kb, err := strconv.Atoi(words[0])
	return float64(kb) / 1024, err
}
