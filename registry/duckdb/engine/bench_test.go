package engine

import (
	"context"
	"io"
	"testing"

	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// querier is both ways to have an engine.
type querier interface {
	Query(context.Context, duckdb.QueryRequest) (*duckdb.Result, error)
}

func benchmarkQuery(b *testing.B, sql string) {
	inProcess, err := duckdb.OpenServer(context.Background(), duckdb.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer inProcess.Close()
	for name, q := range map[string]querier{"in process": inProcess, "in a child": startTestServer(b, nil)} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				r, err := q.Query(context.Background(), duckdb.QueryRequest{SQL: sql})
				if err != nil {
					b.Fatal(err)
				}
				n, err := io.Copy(io.Discard, r.Body)
				if err != nil {
					b.Fatal(err)
				}
				b.SetBytes(n)
				r.Body.Close()
			}
		})
	}
}

func BenchmarkSmallQuery(b *testing.B) { benchmarkQuery(b, "SELECT 1") }

func BenchmarkLargeQuery(b *testing.B) {
	benchmarkQuery(b, "SELECT range AS a, range * 2 AS b, range % 7 AS c, range::DOUBLE AS d FROM range(5000000)")
}
