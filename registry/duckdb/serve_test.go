package duckdb

import (
	"context"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

func openTestServer(t testing.TB, opts Options) *Server {
	t.Helper()
	s, err := OpenServer(context.Background(), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// answer is a result read to its end: every value as Arrow prints it.
type answer struct {
	version viewkeeper.Version
	columns []viewkeeper.Column
	rows    [][]string
}

func readAll(t testing.TB, r *Result, err error) answer {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	a := answer{version: r.Version, columns: r.Columns}
	reader, err := ipc.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	for reader.Next() {
		batch := reader.RecordBatch()
		for row := range int(batch.NumRows()) {
			var values []string
			for _, c := range batch.Columns() {
				values = append(values, valueString(c, row))
			}
			a.rows = append(a.rows, values)
		}
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	return a
}

func valueString(a arrow.Array, row int) string {
	// ValueStr rounds a number of 39 digits.
	if d, ok := a.(*array.Decimal128); ok && d.IsValid(row) {
		return d.Value(row).ToString(a.DataType().(arrow.DecimalType).GetScale())
	}
	return a.ValueStr(row)
}

func (a answer) one(t testing.TB) string {
	t.Helper()
	if len(a.rows) != 1 || len(a.rows[0]) != 1 {
		t.Fatalf("not one value: %v", a.rows)
	}
	return a.rows[0][0]
}

func TestServerAppliesAndAnswers(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i BIGINT); INSERT INTO t VALUES (1), (2)"})
	err := s.Apply(ctx, 7, false, []registry.Apply{
		{Name: viewkeeper.MakeName("a", "one"), Query: "SELECT i AS n FROM main.t"},
		{Name: viewkeeper.MakeName("b", "two"), Columns: []string{"Total"}, Query: "SELECT sum(n) FROM a.one"},
		{Name: viewkeeper.MakeName("", "m"), Empty: []viewkeeper.Column{{Name: "x", Type: "INTEGER[]"}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Query(ctx, QueryRequest{SQL: "FROM b.two"})
	a := readAll(t, r, err)
	if a.one(t) != "3" || a.version != 7 || a.columns[0] != (viewkeeper.Column{Name: "Total", Type: "HUGEINT"}) {
		t.Fatalf("%+v", a)
	}
	r, err = s.Query(ctx, QueryRequest{SQL: "SELECT count(*) FROM m"})
	if a := readAll(t, r, err); a.one(t) != "0" {
		t.Fatalf("%+v", a)
	}
}
