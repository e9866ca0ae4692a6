package duckdb

import (
	"math"
	"testing"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
)

// Arrow has no infinite dates and timestamps; the engine's come as the largest number
// of their width and its negative, whatever the precision: who prints them relies on it.
func TestInfiniteDatesAndTimestamps(t *testing.T) {
	s := openTestServer(t, Options{})
	for _, typ := range []string{"DATE", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"} {
		r, err := s.Query(t.Context(), QueryRequest{SQL: "SELECT v::" + typ + " AS v FROM (VALUES ('infinity'), ('-infinity')) x(v)"})
		if err != nil {
			t.Fatal(err)
		}
		reader, err := ipc.NewReader(r.Body)
		if err != nil || !reader.Next() {
			t.Fatal(err)
		}
		var got, want [2]int64
		switch c := reader.RecordBatch().Column(0).(type) {
		case *array.Date32:
			got, want = [2]int64{int64(c.Value(0)), int64(c.Value(1))}, [2]int64{math.MaxInt32, -math.MaxInt32}
		case *array.Timestamp:
			got, want = [2]int64{int64(c.Value(0)), int64(c.Value(1))}, [2]int64{math.MaxInt64, -math.MaxInt64}
		default:
			t.Errorf("%s comes as %T", typ, c)
		}
		if got != want {
			t.Errorf("%s: %d, want %d", typ, got, want)
		}
		reader.Release()
		r.Body.Close()
	}
}
