package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// many is more views than are made at once, with others in the middle.
func many(others ...registry.Apply) []registry.Apply {
	changes := []registry.Apply{view("root", "SELECT 1 AS n")}
	for i := range 2 * makeLater {
		if i == makeLater {
			changes = append(changes, others...)
		}
		c := view(fmt.Sprint("v", i), fmt.Sprint("SELECT n + ", i, " AS n FROM main.root"))
		c.Reads = []viewkeeper.Name{changes[0].Name}
		changes = append(changes, c)
	}
	return changes
}

// filling is a server whose batches and refusals are told of.
func filling(t *testing.T) (s *Server, batches, refused chan struct{}) {
	t.Helper()
	batches, refused = make(chan struct{}, 1000), make(chan struct{}, 1000)
	s = startTestServer(t, func(c *Config) {
		c.Refused = func() { refused <- struct{}{} }
	})
	s.applying.Lock() // the goroutine of the fill reads it with this held
	s.fill.batchDone = func() { batches <- struct{}{} }
	s.applying.Unlock()
	return s, batches, refused
}

func wait(t *testing.T, what string, c <-chan struct{}, n int) {
	t.Helper()
	for i := range n {
		select {
		case <-c:
		case <-time.After(5 * time.Minute):
			t.Fatalf("%s: %d of %d came", what, i, n)
		}
	}
}

// TestALargeCatalogIsFilledIn: it answers at once, its views are made behind that, and
// again in the next engine.
func TestALargeCatalogIsFilledIn(t *testing.T) {
	s, batches, _ := filling(t)
	changes := many()
	if err := s.Apply(context.Background(), 5, true, changes); err != nil {
		t.Fatal(err)
	}
	if value, version := ask(t, s, "FROM v300"); value != "301" || version != 5 {
		t.Fatal(value, version)
	}
	all := (len(changes) + fillBatch - 1) / fillBatch
	wait(t, "batches", batches, all)
	p := s.supervisor.currentForTest(t)
	p.kill(&registry.LostError{Detail: "killed: by the test"})
	<-p.exited
	if value, version := ask(t, s, "FROM v399"); value != "400" || version != 5 {
		t.Fatal(value, version)
	}
	wait(t, "batches of the next engine", batches, all)
}

// TestWhatTheFillFinds: a view that the engine refuses, or is lost on, is found although
// nobody asks for it; whoever applies all again learns of it, and all others are there.
func TestWhatTheFillFinds(t *testing.T) {
	for what, bad := range map[string]registry.Apply{
		"refused": view("bad", "SELECT n FROM main.nosuch"),
		"crash":   view("bad", "SELECT 1 AS n /* fault: crash */"),
	} {
		t.Run(what, func(t *testing.T) {
			s, batches, refused := filling(t)
			if err := s.Apply(context.Background(), 5, true, many(bad)); err != nil {
				t.Fatal(err)
			}
			wait(t, "a refusal", refused, 1)
			err := s.Apply(context.Background(), 5, true, many(bad))
			var no *registry.ApplyError
			if !errors.As(err, &no) || len(no.Refused) != 1 || no.Refused[0].Name != bad.Name {
				t.Fatal(err)
			}
			for len(batches) > 0 {
				<-batches
			}
			losses := s.Losses()
			changes := many()
			if err := s.Apply(context.Background(), 5, true, changes); err != nil {
				t.Fatal(err)
			}
			wait(t, "batches", batches, len(changes)/fillBatch)
			if value, version := ask(t, s, "FROM v399"); value != "400" || version != 5 {
				t.Fatal(value, version)
			}
			if now := s.Losses(); now != losses {
				t.Errorf("%d engines more were lost", now-losses)
			}
		})
	}
}
