package engine

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// crasher overflows the stack of the engine that runs it.
const crasher = "SELECT json_structure(repeat('[', 1000000) || repeat(']', 1000000)) FROM t"

// slow is a query that gives no row for a while.
const slow = "SELECT count(*) FROM range(40000000) r(i) WHERE hash(i) <> 1"

// sentForTest gives a channel that gets a value for each query that was sent to an
// engine.
func (s *Server) sentForTest() <-chan struct{} {
	sent := make(chan struct{}, 100)
	s.querySent = func() { sent <- struct{}{} }
	return sent
}

// Queries that are under way when their engine dies are answered all the same: they
// are tried again where nothing else can take them down.
func TestQueriesAreTriedAgainAlone(t *testing.T) {
	s := startTestServer(t, nil)
	if err := s.Apply(context.Background(), 7, false, []registry.Apply{view("v", slow)}); err != nil {
		t.Fatal(err)
	}
	child, sent := s.supervisor.currentForTest(t), s.sentForTest()
	const n = 5
	answers := make(chan string, n)
	var group sync.WaitGroup
	for range n {
		group.Go(func() {
			value, version := ask(t, s, "FROM v")
			answers <- fmt.Sprint(value, " at ", version)
		})
	}
	for range n {
		<-sent
	}
	if err := syscall.Kill(child.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	group.Wait()
	for range n {
		if got := <-answers; got != "40000000 at 7" {
			t.Error(got)
		}
	}
	if s.Losses() != 1 {
		t.Errorf("%d losses", s.Losses())
	}
}

// The one that the engine died of is told so, and takes down nothing else.
func TestTheGuiltyQueryIsAlone(t *testing.T) {
	s := startTestServer(t, nil)
	_, err := s.query(context.Background(), crasher)
	lost := registry.AsLost(err)
	if lost == nil || !strings.Contains(lost.Detail, "alone") {
		t.Fatalf("%v", err)
	}
	t.Log(err)
	second := s.supervisor.currentForTest(t)
	if value, _ := ask(t, s, "SELECT count(*) FROM t"); value != "2" {
		t.Fatal(value)
	}
	if s.Losses() != 1 || s.supervisor.currentForTest(t) != second {
		t.Errorf("%d engines were lost that others used", s.Losses())
	}
	if len(s.alone.places) != secondTries {
		t.Errorf("%d places are left", len(s.alone.places))
	}
}

// A second try ends with its caller's time, with the server, and leaves no place taken.
func TestSecondTriesEnd(t *testing.T) {
	s := startTestServer(t, func(c *Config) { c.Grace = 50 * time.Millisecond })
	child, sent := s.supervisor.currentForTest(t), s.sentForTest()
	called, giveUp := context.WithCancel(context.Background())
	defer giveUp()
	results, last := make(chan error, 3), make(chan error, 1)
	begin := func(ctx context.Context, result chan<- error) {
		go func() {
			_, err := s.query(ctx, "SELECT count(*) FROM range(1000000000000) r(i) WHERE hash(i) <> 1")
			result <- err
		}()
		<-sent
	}
	for range 3 {
		begin(called, results)
	}
	begin(context.Background(), last)
	if err := syscall.Kill(child.pid(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	// There is a place for two of the four.
	for range secondTries {
		<-sent
	}
	giveUp()
	for range 3 {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-last; !errors.Is(err, duckdb.ErrClosed) {
		t.Error(err)
	}
	if len(s.alone.places) != secondTries {
		t.Errorf("%d places are left", len(s.alone.places))
	}
}

// query runs a query to its end.
func (s *Server) query(ctx context.Context, sql string) (string, error) {
	r, err := s.Query(ctx, duckdb.QueryRequest{SQL: sql})
	if err != nil {
		return "", err
	}
	defer r.Body.Close()
	return oneValue(r.Body)
}
