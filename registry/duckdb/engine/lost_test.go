package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

func startTestPlanner(t testing.TB, change func(*Config)) *Planner {
	t.Helper()
	p, err := StartPlanner(context.Background(), testConfig(t, change))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// Every way to lose an engine gives an error that says how, and the next call is
// answered by another engine.
func TestLostEngine(t *testing.T) {
	for fault, want := range map[string]string{
		"crash":   "SIGSEGV",
		"exit":    "exit status 3: the fault that was asked for",
		"hang":    "killed: fault was not done after",
		"balloon": "over the limit of 256 MiB",
	} {
		t.Run(fault, func(t *testing.T) {
			changes := make(chan string, 2)
			p := startTestPlanner(t, func(c *Config) {
				c.ResidentLimit = 256 << 20
				c.Changed = func(loss string) { changes <- loss }
			})
			if _, err := p.Describe(context.Background()); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			if fault == "hang" {
				// The call has to be there by then.
				ctx, cancel = context.WithTimeout(context.Background(), 3*time.Second)
			}
			defer cancel()
			err := p.call(ctx, methodFault, faultParams{Kind: fault}, nil)
			lost := registry.AsLost(err)
			if lost == nil || !strings.Contains(lost.Detail, want) || lost.Timeout != (fault == "hang") {
				t.Fatalf("%#v", err)
			}
			t.Log(lost)
			died := time.Now()
			if e, err := p.Describe(context.Background()); err != nil || e.Name == "" {
				t.Fatal(e, err)
			}
			t.Logf("the next answer came %s later", time.Since(died))
			if loss := <-changes; !strings.Contains(loss, want) {
				t.Errorf("told of the loss %q", loss)
			}
			if loss := <-changes; loss != "" {
				t.Errorf("told of another loss: %q", loss)
			}
		})
	}
}

// A planner's loss between two calls is told once, since its scratch catalog is
// gone with it.
func TestLossBetweenCallsIsToldOnce(t *testing.T) {
	p := startTestPlanner(t, nil)
	if _, err := p.Describe(context.Background()); err != nil {
		t.Fatal(err)
	}
	child := p.supervisor.currentForTest(t)
	if err := syscall.Kill(child.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-child.exited
	if err := p.Settle(context.Background(), true); err != nil { // with the next Bind
		t.Fatal(err)
	}
	_, err := p.Bind(context.Background(), nil, nil)
	if lost := registry.AsLost(err); lost == nil || !strings.Contains(lost.Detail, "killed") {
		t.Fatal(err)
	}
	if _, err := p.Describe(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// A caller that gives up gets its context's error. The call has its grace to end,
// and one that does not end is killed.
func TestCancelledCall(t *testing.T) {
	p := startTestPlanner(t, func(c *Config) { c.Grace = 50 * time.Millisecond })
	child := p.supervisor.currentForTest(t)
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error)
	go func() { result <- p.call(ctx, methodFault, faultParams{Kind: "hang"}, nil) }()
	cancel()
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	// The call may not have reached the child before it was cancelled.
	if _, err := p.Describe(context.Background()); err != nil && registry.AsLost(err) == nil {
		t.Fatal(err)
	}
	if child.leaving() {
		t.Log(child.lost)
	}
}

// What was applied is there again after a loss, also what stands in another order
// now than it was made in, and less what can't be made any more.
func TestServerReplays(t *testing.T) {
	s := startTestServer(t, nil)
	ctx := context.Background()
	apply := func(version viewkeeper.Version, reset bool, changes ...registry.Apply) {
		t.Helper()
		if err := s.Apply(ctx, version, reset, changes); err != nil {
			t.Fatal(err)
		}
	}
	apply(1, false, view("x.gone", "SELECT 1 AS a"))
	apply(2, true, view("s.a", "SELECT i AS n FROM main.t"), view("s.b", "SELECT n + 1 AS n FROM s.a"))
	apply(3, false, view("s.c", "SELECT i * 10 AS n FROM main.t"), view("s.a", "SELECT n FROM s.c"))
	apply(4, false, view("s.d", "SELECT 4"))
	apply(5, false, registry.Apply{Name: viewkeeper.MakeName("s", "d")})
	for range 2 {
		if value, version := ask(t, s, "SELECT sum(n) FROM s.b"); value != "32" || version != 5 {
			t.Fatal(value, version)
		}
		for _, sql := range []string{"FROM s.d", "FROM x.gone"} {
			if _, err := s.Query(ctx, duckdb.QueryRequest{SQL: sql}); viewkeeper.Code("BIND") != planCode(err) {
				t.Fatal(err)
			}
		}
		child := s.supervisor.currentForTest(t)
		if err := s.supervisor.faultForTest(ctx, t, "crash"); registry.AsLost(err) == nil {
			t.Fatal(err)
		}
		<-child.exited
	}
}

func planCode(err error) viewkeeper.Code {
	var plan *registry.PlanError
	if errors.As(err, &plan) {
		return plan.Code
	}
	return ""
}

// A query that is running when the engine dies ends with the loss, not with an end
// of file that would look like the end of the rows.
func TestQueryInFlightWhenTheEngineDies(t *testing.T) {
	s := startTestServer(t, nil)
	r, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: "FROM range(100000000)"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if _, err := io.ReadFull(r.Body, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if err := s.supervisor.faultForTest(context.Background(), t, "crash"); registry.AsLost(err) == nil {
		t.Fatal(err)
	}
	if _, err = io.Copy(io.Discard, r.Body); registry.AsLost(err) == nil {
		t.Fatalf("the cut stream ended with %v", err)
	}
	if value, _ := ask(t, s, "SELECT count(*) FROM t"); value != "2" {
		t.Fatal(value)
	}
}

// Queries of a closed body, a cancelled context and a timeout end in the engine, and
// it goes on: nothing is killed for them.
func TestQueryEnds(t *testing.T) {
	s := startTestServer(t, func(c *Config) { c.Grace = 2 * time.Minute })
	child := s.supervisor.currentForTest(t)
	const endless = "SELECT sum(hash(a.range + b.range)) FROM range(10000000) a, range(10000000) b"
	const long = "FROM range(1000000000)"

	_, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: endless, Timeout: 50 * time.Millisecond})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	r, err := s.Query(ctx, duckdb.QueryRequest{SQL: long})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	r.Body.Close()

	for range 20 {
		r, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: long})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(r.Body, make([]byte, 100000)); err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if _, err := r.Body.Read(make([]byte, 1)); err == nil || err == io.EOF {
			t.Fatal(err)
		}
	}
	if value, _ := ask(t, s, "SELECT count(*) FROM t"); value != "2" {
		t.Fatal(value)
	}
	if now := s.supervisor.currentForTest(t); now != child {
		t.Fatal("the engine was replaced:", child.lost)
	}
}

// wasKilled reports whether the keeper has killed a child.
func (p *process) wasKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed != nil
}

// A query that ignores interrupts is killed with its engine at the end of the grace.
func TestQueryThatDoesNotEndIsKilled(t *testing.T) {
	s := startTestServer(t, func(c *Config) { c.Grace = 50 * time.Millisecond })
	child := s.supervisor.currentForTest(t)
	// The engine has to be at it when the time is over, on whatever machine: else there
	// is nothing to kill.
	for timeout := 50 * time.Millisecond; !child.wasKilled(); timeout *= 2 {
		_, err := s.Query(context.Background(), duckdb.QueryRequest{
			SQL: fmt.Sprintf("SELECT levenshtein(repeat('a', %d), repeat('b', %d))", 200000, 200000), Timeout: timeout,
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	<-child.exited
	t.Log(child.lost)
	if value, _ := ask(t, s, "SELECT count(*) FROM t"); value != "2" {
		t.Fatal(value)
	}
}

// An engine that ran out of its memory is replaced, with all that it had.
func TestOutOfMemoryReplaces(t *testing.T) {
	s := startTestServer(t, func(c *Config) { c.Options.MemoryLimit = 64 << 20; c.Options.Threads = 1 })
	if err := s.Apply(context.Background(), 3, false, []registry.Apply{view("v", "SELECT 7 AS n")}); err != nil {
		t.Fatal(err)
	}
	child := s.supervisor.currentForTest(t)
	r, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: "SELECT range, count(*) FROM range(50000000) GROUP BY ALL"})
	if err == nil {
		_, err = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	if planCode(err) != duckdb.CodeMemory {
		t.Fatal(err)
	}
	<-child.exited
	if value, version := ask(t, s, "FROM v"); value != "7" || version != 3 {
		t.Fatal(value, version)
	}
}

// A query that finds no memory since somebody else has it is answered all the same.
func TestOutOfMemoryOfSomebodyElse(t *testing.T) {
	s := startTestServer(t, func(c *Config) { c.Options.MemoryLimit = 96 << 20; c.Options.Threads = 1 })
	hog, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: "FROM range(2000000) r(i) ORDER BY hash(i)"})
	if err != nil {
		t.Fatal(err)
	}
	defer hog.Body.Close() // what it sorted is in memory until somebody reads it
	child := s.supervisor.currentForTest(t)
	if value, _ := ask(t, s, "SELECT count(*) FROM (FROM range(1000000) r(i) GROUP BY ALL)"); value != "1000000" {
		t.Fatal(value)
	}
	if !child.leaving() {
		t.Error("there was memory for both, so this test shows nothing")
	}
}

func TestCloseEndsEverything(t *testing.T) {
	s := startTestServer(t, nil)
	r, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: "FROM range(1000000000)"})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, r.Body); !errors.Is(err, duckdb.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := s.Query(context.Background(), duckdb.QueryRequest{SQL: "SELECT 1"}); !errors.Is(err, duckdb.ErrClosed) {
		t.Fatal(err)
	}
	if err := s.Apply(context.Background(), 1, false, nil); !errors.Is(err, duckdb.ErrClosed) {
		t.Fatal(err)
	}
}
