package duckdb

import (
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

func mergeOf(text string, columns ...viewkeeper.Column) []registry.Merge {
	return []registry.Merge{{Query: registry.Query{Text: text, Strict: true}, Source: viewkeeper.MakeName("", "__source_m"), Columns: columns}}
}

// TestMergeSamples: each type of which values are made takes those of every sample.
func TestMergeSamples(t *testing.T) {
	p, err := Open(t.Context(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	var columns []viewkeeper.Column
	for _, typ := range []string{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT",
		"FLOAT", "DOUBLE", "DECIMAL(1,0)", "DECIMAL(2,2)", "DECIMAL(3,2)", "DECIMAL(38,0)", "DECIMAL(38,10)", "DATE", "TIMESTAMP", "TIMESTAMP_NS",
		"TIMESTAMP WITH TIME ZONE", "VARCHAR", "BOOLEAN", "JSON", "UUID", "BLOB", "INTERVAL", "TIME", "VARCHAR[]", "STRUCT(a INTEGER, \"b c\" VARCHAR)",
		"MAP(VARCHAR, INTEGER)", "STRUCT(INTEGER, VARCHAR)[]"} {
		columns = append(columns, viewkeeper.Column{Name: "a " + typ, Type: typ})
	}
	for i, s := range mergeSamples() {
		got, err := describe(t.Context(), p.scratch.conn, rowsQuery(columns, s))
		if err != nil {
			t.Fatalf("sample %d: %v", i, err)
		}
		for k, c := range got {
			if c != columns[k] {
				t.Errorf("sample %d: %v became %v", i, columns[k], c)
			}
		}
		if err := p.scratch.conn.exec(t.Context(), rowsQuery(columns, s)); err != nil {
			t.Errorf("sample %d: %v", i, err)
		}
	}
	columns = columns[:len(columns)-1] // no table can hold a struct without names, so of that one nothing is known
	for _, text := range []string{"FROM main.__source_m", "SELECT DISTINCT * FROM main.__source_m", "SELECT ANY_VALUE(COLUMNS(*)) FROM main.__source_m"} {
		answers, err := p.MergeTwice(t.Context(), mergeOf(text, columns...))
		if err != nil {
			t.Fatal(err)
		}
		if a := answers[0]; a.Counter != nil || a.Unknown != "" {
			t.Errorf("%s: %+v", text, a)
		}
	}
}

// TestMergeIsBounded: a query that would run for long over two rows is not known, and
// the engine is there afterwards.
func TestMergeIsBounded(t *testing.T) {
	p, err := Open(t.Context(), Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	n := viewkeeper.Column{Name: "n", Type: "BIGINT"}
	for _, text := range []string{
		"SELECT n + unnest(range(1000000)) AS n FROM main.__source_m",
		"SELECT list_sum(list_transform(range(n * 1000), x -> list_sum(list_transform(range(x), y -> list_sum(range(y))))))::BIGINT AS n FROM main.__source_m",
	} {
		answers, err := p.MergeTwice(t.Context(), mergeOf(text, n))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if answers[0].Unknown == "" {
			t.Errorf("%s: %+v", text, answers[0])
		}
	}
	if _, err := p.Describe(t.Context()); err != nil {
		t.Error(err)
	}
}

func BenchmarkMergeTwice(b *testing.B) {
	p, err := Open(b.Context(), Options{Threads: 1})
	if err != nil {
		b.Fatal(err)
	}
	defer p.Close()
	columns := []viewkeeper.Column{{Name: "day", Type: "DATE"}, {Name: "n", Type: "BIGINT"}}
	for name, expression := range map[string]string{"right": "sum(n)::BIGINT", "wrong": "count(*)"} {
		b.Run(name, func(b *testing.B) {
			for range b.N {
				if _, err := p.MergeTwice(b.Context(), mergeOf("SELECT day, "+expression+" AS n FROM main.__source_m GROUP BY day", columns...)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
