package duckdb

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// residentBytes is what this process has in memory now.
func residentBytes(t testing.TB) int64 {
	b, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	pages, err := strconv.ParseInt(string(bytes.Fields(b)[1]), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return pages * int64(os.Getpagesize())
}

// A long answer is never whole in memory: not in the engine, not here.
func TestLongAnswerIsStreamed(t *testing.T) {
	s := openTestServer(t, Options{})
	const rows = 20_000_000
	r, err := s.Query(context.Background(), QueryRequest{
		SQL: fmt.Sprintf("SELECT range AS a, range * 2 AS b, range %% 7 AS c, range::DOUBLE AS d FROM range(%d)", rows),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	reader, err := ipc.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	var got, sum, batches, peak int64
	start := residentBytes(t)
	for reader.Next() {
		if batches++; batches == 1 {
			if n := reader.RecordBatch().NumRows(); n > 2048 {
				t.Errorf("the first batch waited for %d rows", n)
			}
		}
		if batches%100 == 0 {
			peak = max(peak, residentBytes(t)-start)
		}
		got += reader.RecordBatch().NumRows()
		sum += int64(reader.RecordBatch().Column(0).Len())
	}
	if err := reader.Err(); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d rows in %d batches; %d MiB more in memory", got, batches, peak>>20)
	if got != rows || sum != rows {
		t.Errorf("%d rows", got)
	}
	if peak > 200<<20 { // whole, it has 640
		t.Errorf("the answer took %d MiB", peak>>20)
	}
}

// The first rows come while most of the others do not exist yet: here they never will.
func TestFirstRowsOfAnEndlessAnswer(t *testing.T) {
	s := openTestServer(t, Options{})
	r, err := s.Query(context.Background(), QueryRequest{SQL: "SELECT range AS a FROM range(1000000000000000)"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	reader, err := ipc.NewReader(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Release()
	if !reader.Next() || reader.RecordBatch().NumRows() == 0 {
		t.Fatal("no rows:", reader.Err())
	}
}

// An answer is in one piece, or its reader gets an error: never a clean end.
func TestErrorInTheMiddle(t *testing.T) {
	s := openTestServer(t, Options{Threads: 1})
	r, err := s.Query(context.Background(), QueryRequest{
		SQL: "SELECT CASE WHEN range < 1000000 THEN range ELSE error('at ' || range) END AS n FROM range(2000000)",
	})
	if err != nil {
		// The engine may be fast enough to find it before the first row.
		t.Log("the error came first:", err)
		return
	}
	defer r.Body.Close()
	n, err := io.Copy(io.Discard, r.Body)
	var plan *registry.PlanError
	if !errors.As(err, &plan) || plan.Code != CodeExecution || !strings.Contains(plan.Message, "at 1000000") {
		t.Fatalf("after %d bytes: %v", n, err)
	}
	if n == 0 {
		t.Error("nothing came before the error")
	}
	if _, again := r.Body.Read(make([]byte, 1)); !errors.Is(again, err) {
		t.Errorf("then %v", again)
	}
}

// Close, a cancelled context and a timeout end a query wherever it is, and the next
// one is answered.
func TestQueryEnds(t *testing.T) {
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)"})
	const endless = "SELECT sum(hash(a.range + b.range)) FROM range(10000000) a, range(10000000) b"
	const long = "SELECT range FROM range(1000000000)"
	half := func(t *testing.T, ctx context.Context) io.ReadCloser {
		t.Helper()
		r, err := s.Query(ctx, QueryRequest{SQL: long})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 300000)); err != nil {
			t.Fatal(err)
		}
		return r.Body
	}
	t.Run("timeout before the first row", func(t *testing.T) {
		if _, err := s.Query(context.Background(), QueryRequest{SQL: endless, Timeout: 30 * time.Millisecond}); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	})
	t.Run("cancelled before the first row", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		result := make(chan error)
		go func() {
			_, err := s.Query(ctx, QueryRequest{SQL: endless})
			result <- err
		}()
		cancel()
		if err := <-result; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
	t.Run("cancelled in the middle", func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		body := half(t, ctx)
		defer body.Close()
		cancel()
		if _, err := io.Copy(io.Discard, body); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	})
	t.Run("timeout while nobody reads", func(t *testing.T) {
		// Half of it must have come before the time is over, on whatever machine.
		var b *body
		for timeout := 50 * time.Millisecond; b == nil; timeout *= 2 {
			r, err := s.Query(context.Background(), QueryRequest{SQL: long, Timeout: timeout})
			if err == nil {
				defer r.Body.Close()
				if _, err = io.ReadFull(r.Body, make([]byte, 300000)); err == nil {
					b = r.Body.(*body)
				}
			}
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				t.Fatal(err)
			}
		}
		<-b.released
		if _, err := b.Read(make([]byte, 1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	})
	t.Run("closed in the middle", func(t *testing.T) {
		body := half(t, context.Background())
		read := make(chan error)
		go func() {
			_, err := io.Copy(io.Discard, struct{ io.Reader }{body})
			read <- err
		}()
		body.Close()
		if err := <-read; err == nil {
			t.Fatal("a closed stream ended cleanly")
		}
		body.Close()
	})
	r, err := s.Query(context.Background(), QueryRequest{SQL: "FROM t"})
	if a := readAll(t, r, err); a.one(t) != "1" {
		t.Fatal(a)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) != 0 {
		t.Errorf("%d queries are still open", len(s.open))
	}
}

// Views change while queries run: each sees the views and the version of one commit.
func TestApplyIsAtomicForQueries(t *testing.T) {
	s := openTestServer(t, Options{})
	ctx := context.Background()
	apply := func(n int) error {
		return s.Apply(ctx, viewkeeper.Version(n), false, []registry.Apply{
			{Name: viewkeeper.MakeName("", "a"), Query: fmt.Sprintf("SELECT %d AS n", n)},
			{Name: viewkeeper.MakeName("", "b"), Query: fmt.Sprintf("SELECT a.n AS a, %d AS b FROM main.a", n)},
			{Name: viewkeeper.MakeName(fmt.Sprintf("s%d", n), "v"), Query: "SELECT 1"},
			{Name: viewkeeper.MakeName(fmt.Sprintf("s%d", n-1), "v")},
		})
	}
	if err := apply(1); err != nil {
		t.Fatal(err)
	}
	const last = 300
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			seen := 0
			for {
				select {
				case <-done:
					return
				default:
				}
				r, err := s.Query(ctx, QueryRequest{SQL: "SELECT x.n, b.a, b.b FROM a AS x, b"})
				if err != nil {
					t.Error(err)
					return
				}
				a := readAll(t, r, err)
				want := r.Version.String()
				if len(a.rows) != 1 || a.rows[0][0] != want || a.rows[0][1] != want || a.rows[0][2] != want {
					t.Errorf("torn: version %s, rows %v", want, a.rows)
					return
				}
				if int(r.Version) < seen {
					t.Errorf("version %d after %d", r.Version, seen)
					return
				}
				seen = int(r.Version)
			}
		}()
	}
	for n := 2; n <= last; n++ {
		if err := apply(n); err != nil {
			t.Error(err)
			break
		}
	}
	close(done)
	wg.Wait()
	r, err := s.Query(ctx, QueryRequest{SQL: "SELECT count(*) FROM information_schema.schemata WHERE schema_name LIKE 's%'"})
	if err == nil { // the gate may not let this through
		if a := readAll(t, r, err); a.one(t) != "1" {
			t.Errorf("%v schemas are left", a)
		}
	}
}

// A running query keeps what it saw at its start.
func TestQueryKeepsItsSnapshot(t *testing.T) {
	s := openTestServer(t, Options{})
	ctx := context.Background()
	name := viewkeeper.MakeName("", "v")
	if err := s.Apply(ctx, 1, false, []registry.Apply{{Name: name, Query: "SELECT range AS n FROM range(3000000)"}}); err != nil {
		t.Fatal(err)
	}
	r, err := s.Query(ctx, QueryRequest{SQL: "FROM v"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Apply(ctx, 2, false, []registry.Apply{{Name: name}}); err != nil {
		t.Fatal(err)
	}
	if a := readAll(t, r, err); len(a.rows) != 3000000 || a.version != 1 {
		t.Fatal(len(a.rows), a.version)
	}
	if _, err := s.Query(ctx, QueryRequest{SQL: "FROM v"}); err == nil {
		t.Fatal("the dropped view answers")
	}
}

// An Apply that fails leaves everything as it was, whatever failed.
func TestFailedApplyChangesNothing(t *testing.T) {
	s := openTestServer(t, Options{})
	ctx := context.Background()
	good := registry.Apply{Name: viewkeeper.MakeName("x", "good"), Query: "SELECT 1 AS n"}
	if err := s.Apply(ctx, 1, false, []registry.Apply{good}); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"SELECT * FROM main.nowhere",              // the binder's no
		"SELECT",                                  // the parser's
		"SELECT 'x'::INTEGER",                     // folded, and aborts the transaction
		"SELECT 1; DROP VIEW x.good",              // two statements
		"SELECT 1\x00",                            // the engine would stop reading
		"SELECT * FROM read_csv('/etc/hostname')", // no access
	} {
		err := s.Apply(ctx, 2, true, []registry.Apply{
			{Name: viewkeeper.MakeName("y", "before"), Query: "SELECT 2 AS n"},
			{Name: viewkeeper.MakeName("y", "bad"), Query: query},
		})
		if err == nil {
			if query != "SELECT 'x'::INTEGER" { // a view may hold it: it fails when it is read
				t.Errorf("%q was applied", query)
			}
			if err := s.Apply(ctx, 1, true, []registry.Apply{good}); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if !strings.Contains(err.Error(), "y.bad") {
			t.Errorf("%q: the error does not name the view: %v", query, err)
		}
		r, err := s.Query(ctx, QueryRequest{SQL: "FROM x.good"})
		if a := readAll(t, r, err); a.one(t) != "1" || a.version != 1 {
			t.Fatalf("%q: %+v", query, a)
		}
		if _, err := s.Query(ctx, QueryRequest{SQL: "FROM y.before"}); err == nil {
			t.Errorf("%q: half of it was applied", query)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Apply(cancelled, 3, true, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := s.Apply(ctx, 4, true, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Query(ctx, QueryRequest{SQL: "FROM x.good"}); err == nil {
		t.Fatal("a reset to nothing left a view")
	}
}

func TestMaterializedReadsEmpty(t *testing.T) {
	s := openTestServer(t, Options{BaseSQL: "CREATE TYPE mood AS ENUM ('a', 'b')"})
	columns := []viewkeeper.Column{
		{Name: "select", Type: "BIGINT"}, {Name: "A b", Type: `STRUCT("x y" DECIMAL(9,2), "key" VARCHAR[])`},
		{Name: "e", Type: "ENUM('a', 'b')"}, {Name: "m", Type: "MAP(VARCHAR, TIMESTAMP WITH TIME ZONE)"},
		{Name: "u", Type: "UNION(n INTEGER, s VARCHAR)"}, {Name: "j", Type: "JSON"}, {Name: "arr", Type: "INTEGER[3]"},
	}
	err := s.Apply(context.Background(), 1, false, []registry.Apply{{Name: viewkeeper.MakeName("", "m"), Empty: columns}})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Query(context.Background(), QueryRequest{SQL: "FROM m"})
	a := readAll(t, r, err)
	if len(a.rows) != 0 || fmt.Sprint(a.columns) != fmt.Sprint(columns) {
		t.Fatalf("%v\nwant %v", a.columns, columns)
	}
}

func TestSystemTables(t *testing.T) {
	s := openTestServer(t, Options{})
	ctx := context.Background()
	for _, table := range SystemTables() {
		sql := "FROM vk." + table.Name
		if refs := s.References(sql); len(refs) != 1 || refs[0] != table.Name {
			t.Errorf("%s: %v", sql, refs)
		}
		r, err := s.Query(ctx, QueryRequest{SQL: sql})
		if a := readAll(t, r, err); len(a.rows) != 0 || len(a.columns) != len(table.Columns) {
			t.Errorf("%s: %+v", sql, a)
		}
	}
	position := &viewkeeper.Position{Offset: 3, Line: 1, Column: 4}
	decision := viewkeeper.Decision{
		StatementID: "x", Version: 5, Offset: 4, Verdict: viewkeeper.Refused, Code: viewkeeper.CodeBind, Position: position,
		Changed: []viewkeeper.Change{{Name: viewkeeper.MakeName("s", "v"), Action: viewkeeper.ActionCreated, ColumnsAfter: []viewkeeper.Column{{Name: "a", Type: "INTEGER"}}}},
		Broken:  []viewkeeper.Broken{{Name: viewkeeper.MakeName("s", "w"), Reason: "because", Position: position}},
		Dropped: []viewkeeper.Name{viewkeeper.MakeName("", "d")},
		At:      time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC), Epoch: 7, SQL: "it's",
	}
	decision.Normalize()
	rows, err := json.Marshal([]viewkeeper.Decision{decision, decision})
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Query(ctx, QueryRequest{
		SQL: `SELECT version || ' ' || verdict || ' ' || "position"."line" || ' ' || changed[1].columns_after[1]."type" || ' ' || broken[1].position."offset"
			|| ' ' || dropped[1] || ' ' || "at" || ' ' || sql || ' ' || len(repaired) AS x FROM "VK".decisions LIMIT 1`,
		VK: map[string]json.RawMessage{"decisions": rows},
	})
	if got, want := readAll(t, r, err).one(t), "5 refused 1 INTEGER 3 main.d 2026-01-02 03:04:05.678+00 it's 0"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	status, err := json.Marshal([]viewkeeper.Status{{Node: "n", Ready: true, Degraded: []string{"STALE"}, Details: map[string]string{"STALE": "old"}, StaleFor: 1.5}})
	if err != nil {
		t.Fatal(err)
	}
	r, err = s.Query(ctx, QueryRequest{
		SQL: "SELECT node || degraded[1] || details['STALE'] || stale_for || ready AS x FROM vk.nodes",
		VK:  map[string]json.RawMessage{"nodes": status},
	})
	if got := readAll(t, r, err).one(t); got != "nSTALEold1.5true" {
		t.Error(got)
	}
	// The rows were that query's alone.
	r, err = s.Query(ctx, QueryRequest{SQL: "SELECT (SELECT count(*) FROM vk.decisions) + (SELECT count(*) FROM vk.nodes)"})
	if got := readAll(t, r, err).one(t); got != "0" {
		t.Error(got)
	}
	if _, err := s.Query(ctx, QueryRequest{SQL: "SELECT 1", VK: map[string]json.RawMessage{"nope": nil}}); err == nil {
		t.Error("rows of a table that does not exist were taken")
	}
}

func TestReferences(t *testing.T) {
	for sql, want := range map[string]string{
		"SELECT 1":                    "[]",
		"FROM definitions":            "[]",
		"FROM VK . /* x */ \"Nodes\"": "[nodes]",
		"SELECT 'vk.nodes'":           "[]",
		"FROM vk.reads r JOIN vk.columns c USING (definition)": "[columns reads]",
	} {
		if got := fmt.Sprint(References(sql)); got != want {
			t.Errorf("%s: %s, want %s", sql, got, want)
		}
	}
}
