package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// engineMemory is the memory limit of a node's engine when nobody has set one.
const engineMemory = engine.DefaultServerResident / 4 * 3

// The queries of P7. Both go through definitions; the tables are empty, so that what
// they cost is known from the rest.
const (
	longQuery = `SELECT x %% 1000 AS k, count(*) AS n, sum(x * 7 %% 1013) AS amount, avg(x + coalesce(r.amount, 1)) AS mean, min('k' || x %% 10) AS name
FROM range(%d) t(x) LEFT JOIN large.root r ON r.id = x GROUP BY k ORDER BY k`
	shortQuery = `SELECT x % 10 AS k, count(*) AS n, sum(x) AS amount, max(r.day) AS day
FROM range(20000) t(x) LEFT JOIN large.root r ON r.id = x GROUP BY k ORDER BY k`
)

// p7 measures queries through a node, over HTTP as a client asks them, beside the same
// on bare DuckDB with the same definitions, and then while the catalog changes 50 times
// a second.
func p7(ctx context.Context, env *Env) ([]Figure, error) {
	c, err := env.Loaded(ctx, env.N)
	if err != nil {
		return nil, err
	}
	node, err := c.Serve(ctx, "p7-node", "node")
	if err != nil {
		return nil, err
	}
	defer node.Stop()
	bare, err := env.bareWith(env.N)
	if err != nil {
		return nil, err
	}
	defer bare.Close()
	long, err := calibrated(ctx, bare)
	if err != nil {
		return nil, err
	}
	var figures []Figure
	for _, format := range []string{asArrow, asJSON} {
		name := map[string]string{asArrow: "Arrow", asJSON: "JSON"}[format]
		got, want, err := beside(ctx, node, bare, format, long, env.pick(7, 21))
		if err != nil {
			return nil, err
		}
		figures = append(figures, Figure{
			ID: "P7", What: "a long query through a node, " + name + ", p50", Got: got.at(.5), Baseline: want.at(.5), Unit: "ms", Against: "bare DuckDB",
			Limit: want.at(.5) * 1.05, Target: "≤ 1.05 ×",
		})
		got, want, err = beside(ctx, node, bare, format, shortQuery, env.pick(200, 1000))
		if err != nil {
			return nil, err
		}
		figures = append(figures, Figure{
			ID: "P7", What: "a short query through a node, " + name + ", p50", Got: got.at(.5), Baseline: want.at(.5), Unit: "ms", Against: "bare DuckDB",
			Limit: want.at(.5) + 1, Target: "≤ + 1 ms",
		})
	}
	stormy, err := underStorm(ctx, env, c, node, long)
	return append(figures, stormy...), err
}

// bareWith gives a bare DuckDB that has the definitions of the loaded catalog.
func (e *Env) bareWith(n int) (*Bare, error) {
	b, err := OpenBare(engineMemory)
	if err != nil {
		return nil, err
	}
	base, statements := registrytest.Large(n)
	for _, sql := range append([]string{base, "BEGIN"}, append(statements, "COMMIT")...) {
		if err := b.Exec(sql); err != nil {
			b.Close()
			return nil, err
		}
	}
	return b, nil
}

// calibrated gives the long query with as many rows as take this machine 150 ms.
func calibrated(ctx context.Context, bare *Bare) (string, error) {
	rows := 1_000_000
	for range 4 {
		sql := fmt.Sprintf(longQuery, rows)
		got, err := bare.Query(ctx, sql)
		if err != nil {
			return "", err
		}
		rows = int(float64(rows) * 150 / max(ms(got.all), 1))
	}
	return fmt.Sprintf(longQuery, rows), nil
}

// beside asks a node and bare DuckDB in turns.
func beside(ctx context.Context, node *Proc, bare *Bare, format, sql string, n int) (got, want durations, err error) {
	warm := max(n/10, 2)
	for i := range warm + n {
		a, err := bare.Query(ctx, sql)
		if err != nil {
			return nil, nil, err
		}
		d, err := node.timed(ctx, format, sql)
		if err != nil {
			return nil, nil, err
		}
		if i >= warm {
			got, want = append(got, d), append(want, a.all)
		}
	}
	return got, want, nil
}

// underStorm asks a node in turns of some seconds with a storm and without. The owner
// and the broker of the storm are on the same machine and take their part of it; a
// storm of another catalog, which the node does not follow, tells how much that is.
func underStorm(ctx context.Context, env *Env, c *Catalog, node *Proc, long string) ([]Figure, error) {
	owner, err := c.Serve(ctx, "p7-owner", "owner")
	if err != nil {
		return nil, err
	}
	defer owner.Stop()
	foreign, err := env.NewCatalog(ctx, "")
	if err != nil {
		return nil, err
	}
	other, err := foreign.Serve(ctx, "p7-other", "owner")
	if err != nil {
		return nil, err
	}
	defer other.Stop()
	_, statements := registrytest.Large(env.N)
	if err := foreign.load(ctx, statements[:1]); err != nil {
		return nil, err
	}
	var figures []Figure
	for _, q := range []struct{ name, sql string }{{"short", shortQuery}, {"long", long}} {
		var quiet, stormy, elsewhere durations
		turn := time.Duration(env.pick(1500, 6000)) * time.Millisecond
		for range env.pick(2, 4) {
			for _, kind := range []struct {
				of   *Catalog
				into *durations
			}{{nil, &quiet}, {c, &stormy}, {foreign, &elsewhere}} {
				stop := func() error { return nil }
				if kind.of != nil {
					if stop, err = kind.of.storm(ctx); err != nil {
						return nil, err
					}
				}
				err := askFor(ctx, node, turn, q.sql, kind.into)
				if stopped := stop(); stopped != nil || err != nil {
					return nil, fmt.Errorf("%v %v", err, stopped)
				}
			}
		}
		figures = append(figures, Figure{
			ID: "P7", What: "a " + q.name + " query under 50 DDL a second, p99", Got: stormy.at(.99), Baseline: quiet.at(.99), Unit: "ms", Against: "without",
			Limit: quiet.at(.99) * 1.2, Target: "≤ 1.2 ×",
		}, Figure{
			ID: "P7", What: "a " + q.name + " query under 50 DDL a second in another catalog, p99", Got: elsewhere.at(.99), Baseline: quiet.at(.99), Unit: "ms", Against: "without",
			Note: "a storm in a catalog that the node does not follow is what the owner, the broker and the client take of the machine",
		})
		env.Log("%s query: p50 %.2f, %.2f under the storm, %.2f under a storm elsewhere (%d, %d, %d asked)",
			q.name, quiet.at(.5), stormy.at(.5), elsewhere.at(.5), len(quiet), len(stormy), len(elsewhere))
	}
	return figures, nil
}

// askFor asks a node one query after the other for a time.
func askFor(ctx context.Context, node *Proc, long time.Duration, sql string, into *durations) error {
	for end := time.Now().Add(long); time.Now().Before(end); {
		d, err := node.timed(ctx, asArrow, sql)
		if err != nil {
			return err
		}
		*into = append(*into, d)
	}
	return nil
}

// storm replaces a definition 50 times a second until it is stopped. Its owner has
// judged the last one when stop returns.
func (c *Catalog) storm(ctx context.Context) (stop func() error, err error) {
	emitter, err := c.Emitter()
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	var all sync.WaitGroup
	var failed error
	all.Go(func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for i := 0; ; i++ {
			select {
			case <-tick.C:
			case <-inner.Done():
				return
			}
			name := fmt.Sprintf("large.storm_%d", i%5)
			sql := fmt.Sprintf("CREATE OR REPLACE VIEW %s AS SELECT region, day, sum(amount) AS amount, %d AS value FROM large.root WHERE amount > %d GROUP BY ALL", name, time.Now().UnixNano(), i)
			if _, err := emitter.Emit(ctx, viewkeeper.Submission{Key: name, SQL: sql}); err != nil {
				failed = err
				return
			}
		}
	})
	return func() error {
		cancel()
		all.Wait()
		if err := emitter.Close(); failed == nil {
			failed = err
		}
		return failed
	}, nil
}
