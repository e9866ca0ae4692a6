package duckdb_test

import (
	"fmt"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

const benchQuery = `WITH daily AS (
	SELECT a, date_trunc('day', ts) AS day, sum(c) AS total, count(*) AS n
	FROM main.t WHERE b IS NOT NULL AND c > 0 GROUP BY ALL)
SELECT d.a, d.day, d.total / d.n AS mean, u.d, row_number() OVER (PARTITION BY d.a ORDER BY d.day) AS rank
FROM daily d LEFT JOIN main.u u ON u.a = d.a WHERE d.total > 10`

func BenchmarkOpen(b *testing.B) {
	for b.Loop() {
		p, err := duckdb.Open(b.Context(), duckdb.Options{BaseSQL: registrytest.BaseSQL, Threads: 1})
		if err != nil {
			b.Fatal(err)
		}
		p.Close()
	}
}

func benchPlanner(b *testing.B, stubs int) *duckdb.Planner {
	p, err := duckdb.Open(b.Context(), duckdb.Options{BaseSQL: registrytest.BaseSQL, Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { p.Close() })
	if _, err := p.Bind(b.Context(), manyStubs(stubs), nil); err != nil {
		b.Fatal(err)
	}
	if err := p.Settle(b.Context(), true); err != nil {
		b.Fatal(err)
	}
	return p
}

func manyStubs(n int) []registry.Stub {
	stubs := make([]registry.Stub, n)
	for i := range stubs {
		stubs[i] = registry.Stub{Name: viewkeeper.MakeName(fmt.Sprint("s", i%20), fmt.Sprint("v", i)), Columns: []viewkeeper.Column{
			{Name: "a", Type: "INTEGER"}, {Name: "b", Type: "VARCHAR"}, {Name: "c", Type: "DOUBLE"}, {Name: "ts", Type: "TIMESTAMP"}}}
	}
	return stubs
}

func BenchmarkParse(b *testing.B) {
	p := benchPlanner(b, 0)
	for _, c := range []struct{ name, text string }{{"Short", "SELECT a FROM t"}, {"Usual", benchQuery}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				out, err := p.Parse(b.Context(), []registry.Query{{Text: c.text}})
				if err != nil || out[0].Err != nil {
					b.Fatal(err, out)
				}
			}
		})
	}
}

func BenchmarkBind(b *testing.B) {
	p := benchPlanner(b, 10_000)
	for _, c := range []struct{ name, text string }{{"Short", "SELECT a FROM s5.v5"}, {"Usual", benchQuery}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				out, err := p.Bind(b.Context(), nil, []registry.Query{{Text: c.text}})
				if err != nil || out[0].Err != nil {
					b.Fatal(err, out)
				}
			}
		})
	}
	b.Run("Trial", func(b *testing.B) {
		i := 0
		for b.Loop() {
			i++
			stub := manyStubs(6)[5]
			stub.Columns[0].Name = fmt.Sprint("x", i)
			if _, err := p.Bind(b.Context(), []registry.Stub{stub}, []registry.Query{{Text: "SELECT b FROM s5.v5"}}); err != nil {
				b.Fatal(err)
			}
			if err := p.Settle(b.Context(), i%2 == 0); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkStubs(b *testing.B) {
	p := benchPlanner(b, 0)
	for b.Loop() {
		if _, err := p.Bind(b.Context(), manyStubs(10_000), nil); err != nil {
			b.Fatal(err)
		}
		if err := p.Settle(b.Context(), true); err != nil {
			b.Fatal(err)
		}
		if err := p.Reset(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}
