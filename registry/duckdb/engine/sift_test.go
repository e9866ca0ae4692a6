package engine

import (
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// A definition that takes down the engine that is to serve it is refused, and all
// others are there; what takes down one engine takes down no second one.
func TestAKillerAmongTheChanges(t *testing.T) {
	for _, fault := range []string{"crash", "hang"} {
		t.Run(fault, func(t *testing.T) {
			s := startTestServer(t, func(c *Config) {
				if fault == "hang" {
					c.CallTimeout = 3 * time.Second // five times; an innocent change on a loaded machine ends within it
				}
			})
			ctx := context.Background()
			if err := s.Apply(ctx, 1, false, []registry.Apply{view("a", "SELECT 1 AS n")}); err != nil {
				t.Fatal(err)
			}
			killer := view("k", "SELECT n FROM main.a /* fault: "+fault+" */")
			changes := []registry.Apply{
				view("b", "SELECT n FROM main.a"), view("c", "SELECT n FROM main.b"), killer,
				view("d", "SELECT n + 1 AS n FROM main.c"), view("e", "FROM main.nosuch"),
			}
			err := s.Apply(ctx, 2, false, changes)
			var no *registry.ApplyError
			if !errors.As(err, &no) || len(no.Refused) != 1 || no.Refused[0].Name.View != "k" || !strings.Contains(no.Refused[0].Reason, "also alone") {
				t.Fatal(err)
			}
			if value, version := ask(t, s, "FROM a"); value != "1" || version != 1 {
				t.Fatal(value, version)
			}
			losses := s.Losses()
			changes = slices.DeleteFunc(changes, func(c registry.Apply) bool { return c.Name == killer.Name || c.Name.View == "e" })
			if err := s.Apply(ctx, 2, false, changes); err != nil {
				t.Fatal(err)
			}
			if value, version := ask(t, s, "FROM d"); value != "2" || version != 2 {
				t.Fatal(value, version)
			}
			// Again, as when broken definitions are retried.
			if err := s.Apply(ctx, 3, false, []registry.Apply{killer}); registry.AsRefused(err) == nil {
				t.Fatal(err)
			}
			if now := s.Losses(); now != losses {
				t.Errorf("the engine that others use was lost %d times more", now-losses)
			}
			// Another text is another definition.
			if err := s.Apply(ctx, 3, false, []registry.Apply{view("k", "SELECT 5 AS n")}); err != nil {
				t.Fatal(err)
			}
			if value, _ := ask(t, s, "FROM k"); value != "5" {
				t.Fatal(value)
			}
		})
	}
}

// The whole way: the node's factory goes on without the killer and what reads it.
func TestAKillerIsBrokenAndTheRestIsServed(t *testing.T) {
	ctx := context.Background()
	planner := startTestPlanner(t, nil)
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s := startTestServer(t, nil)
	reg := registry.New(base, registry.RegistryOptions{Applier: s})
	row := func(name, query string) viewkeeper.Row {
		n := viewkeeper.MakeName("", name)
		sql := "CREATE VIEW " + name + " AS " + query
		return viewkeeper.Row{Name: n, Version: 7, Epoch: 1, Definition: &viewkeeper.Definition{Name: n, Kind: viewkeeper.KindView, SQL: sql}}
	}
	rows := []viewkeeper.Row{
		row("a", "SELECT 1 AS n"), row("k", "SELECT 'x /* fault: crash */' AS n FROM a"), row("over", "SELECT n FROM k"), row("z", "SELECT n + 1 AS n FROM a"),
	}
	if err := reg.Reload(ctx, 7, rows); err != nil {
		t.Fatal(err)
	}
	if value, version := ask(t, s, "FROM z"); value != "2" || version != 7 {
		t.Fatal(value, version)
	}
	failures := reg.FailedDefinitions()
	if len(failures) != 2 || failures[0].Name.View != "k" || failures[0].Stage != registry.StageBuild || failures[0].RootCause != nil ||
		failures[1].Name.View != "over" || failures[1].RootCause == nil || failures[1].RootCause.View != "k" {
		t.Fatalf("%+v", failures)
	}
	t.Log(failures[0].Reason)
	losses := s.Losses()
	if err := reg.Retry(ctx); err != nil {
		t.Fatal(err)
	}
	if now := s.Losses(); now != losses {
		t.Errorf("retrying it cost %d engines", now-losses)
	}
}

// A definition that was fine when it was applied, and that each new engine is lost on
// now: it is left out, else none would start.
func TestAKillerAmongWhatWasApplied(t *testing.T) {
	refused, ready := make(chan struct{}, 1), make(chan struct{}, 1)
	s := startTestServer(t, func(c *Config) {
		c.Refused = func() { refused <- struct{}{} }
		c.Changed = func(loss string) {
			if loss == "" {
				ready <- struct{}{}
			}
		}
	})
	if err := s.Apply(context.Background(), 4, false, []registry.Apply{view("a", "SELECT 1 AS n"), view("b", "SELECT 2 AS n")}); err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.given.add(4, false, []registry.Apply{view("b", "SELECT 2 AS n /* fault: crash */")})
	s.mu.Unlock()
	child := s.supervisor.currentForTest(t)
	if err := child.cmd.Process.Signal(os.Kill); err != nil {
		t.Fatal(err)
	}
	<-child.exited
	<-refused
	<-ready
	if value, version := ask(t, s, "FROM a"); value != "1" || version != 4 {
		t.Fatal(value, version)
	}
}
