package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/apache/arrow-go/v18/arrow/ipc"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/testlog"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

const envTestKeeper = "VIEWKEEPER_TEST_KEEPER"

func TestMain(m *testing.M) {
	if IsChild() {
		os.Exit(Main())
	}
	if os.Getenv(envTestKeeper) == "1" {
		keeperForTest()
	}
	os.Exit(m.Run())
}

func testConfig(t testing.TB, change func(*Config)) Config {
	cfg := Config{
		Options: duckdb.Options{BaseSQL: "CREATE TABLE t (i BIGINT); INSERT INTO t VALUES (1), (2)"},
		Log:     slog.New(slog.NewTextHandler(testlog.New(t), nil)),
		faults:  true,
	}
	if change != nil {
		change(&cfg)
	}
	return cfg
}

func startTestServer(t testing.TB, change func(*Config)) *Server {
	t.Helper()
	s, err := StartServer(context.Background(), testConfig(t, change))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// ask runs a query and gives its one value and its version.
func ask(t testing.TB, s *Server, sql string) (string, viewkeeper.Version) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	r, err := s.Query(ctx, duckdb.QueryRequest{SQL: sql})
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	defer r.Body.Close()
	value, err := oneValue(r.Body)
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return value, r.Version
}

func oneValue(body io.Reader) (string, error) {
	reader, err := ipc.NewReader(body)
	if err != nil {
		return "", err
	}
	defer reader.Release()
	value, rows := "", 0
	for reader.Next() {
		batch := reader.RecordBatch()
		rows += int(batch.NumRows())
		value = batch.Column(0).ValueStr(0)
	}
	if reader.Err() == nil && rows != 1 {
		return "", fmt.Errorf("%d rows", rows)
	}
	return value, reader.Err()
}

// current waits until a child is ready and gives it.
func (s *supervisor) currentForTest(t testing.TB) *process {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	p, err := s.acquire(ctx)
	if err != nil {
		t.Fatal(err)
	}
	p.leave()
	return p
}

func (s *supervisor) faultForTest(ctx context.Context, t testing.TB, kind string) error {
	t.Helper()
	return s.roundTrip(ctx, s.currentForTest(t), methodFault, faultParams{Kind: kind}, nil)
}

func view(name, query string) registry.Apply {
	n, err := viewkeeper.ParseName(name)
	if err != nil {
		panic(err)
	}
	return registry.Apply{Name: n, Query: query}
}

func TestServerInAChild(t *testing.T) {
	s := startTestServer(t, nil)
	err := s.Apply(context.Background(), 7, false, []registry.Apply{
		view("a.one", "SELECT i AS n FROM main.t"),
		view("b.two", "SELECT sum(n) FROM a.one"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if value, version := ask(t, s, "FROM b.two"); value != "3" || version != 7 {
		t.Fatal(value, version)
	}
	const sql = "SELECT count(*) FROM vk.failures WHERE stage = 'build'"
	if refs := s.References(sql); len(refs) != 1 || refs[0] != "failures" {
		t.Fatal(refs)
	}
	r, err := s.Query(context.Background(), duckdb.QueryRequest{
		SQL: sql, Timeout: time.Minute,
		VK: map[string]json.RawMessage{"failures": json.RawMessage(`[{"name": "main.x", "stage": "build"}, {"stage": "parse"}]`)},
	})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if value, err := oneValue(r.Body); value != "1" || err != nil {
		t.Fatal(value, err)
	}
	if err := s.Ready(); err != nil {
		t.Fatal(err)
	}
}

// What the keeper knows from its environment is not for whoever writes SQL.
func TestChildSeesNoSecrets(t *testing.T) {
	t.Setenv("VIEWKEEPER_TEST_SECRET", "secret")
	s := startTestServer(t, nil)
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", s.supervisor.currentForTest(t).pid()))
	if err != nil {
		t.Skip("no /proc here:", err)
	}
	if bytes.Contains(env, []byte("SECRET")) {
		t.Errorf("the child's environment: %q", env)
	}
}
