package duckdb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// What a short query costs beside its rows is what the engine is asked for it.
func TestWhatTheEngineIsAskedForAQuery(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{})
	if err := s.Apply(ctx, 1, false, []registry.Apply{{Name: viewkeeper.MakeName("", "v"), Query: "SELECT 1 AS n"}}); err != nil {
		t.Fatal(err)
	}
	ask := func(req QueryRequest) int64 {
		before := s.instance.asked.Load()
		r, err := s.Query(ctx, req)
		readAll(t, r, err)
		return s.instance.asked.Load() - before
	}
	const most = 3 // the gate's parser; BEGIN and the version; the query
	if n := ask(QueryRequest{SQL: "FROM v"}); n > most {
		t.Errorf("a new text: the engine was asked %d times, at most %d are right", n, most)
	}
	for range 3 {
		if n := ask(QueryRequest{SQL: "FROM v"}); n > most-1 {
			t.Errorf("a text that it knows: the engine was asked %d times, at most %d are right", n, most-1)
		}
	}
}

// A text that was let through before means what the catalog says now, and a mistake in
// it has the same place for each who asks.
func TestAKnownTextAndANewCatalog(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{})
	v := viewkeeper.MakeName("", "v")
	const sql = "EXPLAIN ANALYZE SELECT nowhere FROM v"
	for n := 1; n <= 3; n++ {
		if err := s.Apply(ctx, viewkeeper.Version(n), false, []registry.Apply{{Name: v, Query: fmt.Sprintf("SELECT %d AS n", n)}}); err != nil {
			t.Fatal(err)
		}
		r, err := s.Query(ctx, QueryRequest{SQL: "FROM v"})
		if a := readAll(t, r, err); a.one(t) != fmt.Sprint(n) || int(a.version) != n {
			t.Errorf("at version %d: %+v", n, a)
		}
		var plan *registry.PlanError
		if _, err := s.Query(ctx, QueryRequest{SQL: sql}); !errors.As(err, &plan) || plan.Code != viewkeeper.CodeBind || plan.At != strings.Index(sql, "nowhere") {
			t.Errorf("at version %d: %v", n, err)
		}
	}
	if err := s.Apply(ctx, 4, false, []registry.Apply{{Name: v}}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Query(ctx, QueryRequest{SQL: "FROM v"}); err == nil {
		t.Error("the dropped view answers")
	}
}

func TestKnownTextsAreBounded(t *testing.T) {
	var known checkedQueries
	text := func(n, size int) string { return fmt.Sprint(n) + strings.Repeat(" ", size) }
	add := func(sql string) { known.add(&checkedQuery{sql: sql}) }
	add("first")
	for n := range 3 * maxChecked {
		add(text(n, 10))
		if known.get("first") == nil {
			t.Fatal("what is used was forgotten")
		}
	}
	if n := len(known.byKey); n != maxChecked || known.used.Len() != n {
		t.Errorf("%d texts, %d in the list", n, known.used.Len())
	}
	for n := range 200 {
		add(text(n, maxCheckedText/2))
	}
	add(text(0, maxCheckedText))
	total := 0
	for sql := range known.byKey {
		total += len(sql)
	}
	if total > maxCheckedBytes || total != known.bytes || known.get(text(0, maxCheckedText)) != nil {
		t.Errorf("%d bytes, %d counted", total, known.bytes)
	}
	// What is refused is not remembered.
	s := openTestServer(t, Options{})
	for range 2 {
		if _, err := s.Query(t.Context(), QueryRequest{SQL: "DROP TABLE x"}); err == nil {
			t.Fatal("DDL was let through")
		}
	}
	if n := len(s.gate.known.byKey); n != 0 {
		t.Errorf("%d texts are known", n)
	}
}

// The rows cost copies of their vectors, and nothing a row.
func TestAllocationsOfALongAnswer(t *testing.T) {
	s := openTestServer(t, Options{})
	const rows = 1_000_000
	answer := func() (allocations uint64, batches int) {
		r, err := s.Query(t.Context(), QueryRequest{SQL: fmt.Sprintf(
			"SELECT range AS a, range * 0.5 AS b, 'name ' || range AS c, make_timestamp(range) AS d, (range / 7)::DECIMAL(12, 2) AS e FROM range(%d)", rows)})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		var w countingWriter
		if _, err := io.Copy(&w, r.Body); err != nil {
			t.Fatal(err)
		}
		runtime.ReadMemStats(&after)
		return after.Mallocs - before.Mallocs, w.writes
	}
	answer()
	allocations, batches := answer()
	t.Logf("%d allocations for %d batches", allocations, batches)
	if batches < 20 {
		t.Errorf("%d rows came in %d batches", rows, batches)
	}
	if allocations > uint64(rows/20) || allocations > uint64(500*batches) {
		t.Errorf("%d allocations for %d rows in %d batches", allocations, rows, batches)
	}
}

type countingWriter struct{ writes int }

func (w *countingWriter) Write(p []byte) (int, error) {
	w.writes++
	return len(p), nil
}

// flushed tells when it is told to flush.
type flushed struct {
	countingWriter
	told chan int // the writes so far
}

func (f *flushed) Flush() error {
	f.told <- f.writes
	return nil
}

// What is held back does not wait for rows that take their time.
func TestRowsAreFlushedBeforeAWait(t *testing.T) {
	pieces, f := make(chan piece), &flushed{told: make(chan int)}
	go func() {
		<-f.told
		pieces <- piece{last: true}
	}()
	if p, ok, err := await(pieces, f); !p.last || !ok || err != nil {
		t.Error(p, ok, err)
	}
}

// A writer that fails ends the stream and leaves nothing, wherever the engine is.
func TestAWriterFails(t *testing.T) {
	s := openTestServer(t, Options{})
	for after := range 4 {
		r, err := s.Query(t.Context(), QueryRequest{SQL: "SELECT range FROM range(100000000)"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(&failing{after: after}, r.Body); !errors.Is(err, errFull) {
			t.Errorf("after %d: %v", after, err)
		}
		r.Body.Close()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) != 0 {
		t.Errorf("%d queries are still open", len(s.open))
	}
}

var errFull = errors.New("full")

type failing struct{ after int }

func (f *failing) Write(p []byte) (int, error) {
	if f.after--; f.after < 0 {
		return 0, errFull
	}
	return len(p), nil
}
