package engine

import (
	"context"
	"fmt"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// What Apply said yes to is there, whenever the engine dies: before it applies, or
// after, when the next one has been given everything but that.
func TestApplySurvivesTheLossOfTheEngine(t *testing.T) {
	s := startTestServer(t, nil)
	var losses int
	lose := func(p *process) {
		if losses--; losses < 0 {
			return
		}
		p.kill(&registry.LostError{Detail: "killed: by the test"})
		<-p.exited
		s.supervisor.currentForTest(t) // the next one is there, with what is remembered so far
	}
	apply := func(n int) error {
		return s.Apply(context.Background(), viewkeeper.Version(n), false, []registry.Apply{view("v", fmt.Sprint("SELECT ", n))})
	}
	check := func(n int) {
		t.Helper()
		if value, version := ask(t, s, "FROM v"); value != fmt.Sprint(n) || version != viewkeeper.Version(n) {
			t.Fatalf("value %s at version %s instead of %d", value, version, n)
		}
	}
	if err := apply(1); err != nil {
		t.Fatal(err)
	}
	s.afterApply, losses = lose, 1
	if err := apply(2); err != nil {
		t.Fatal(err)
	}
	check(2)
	s.beforeApply, s.afterApply, losses = lose, nil, 1
	if err := apply(3); err != nil {
		t.Fatal(err)
	}
	check(3)
	// Lost twice in one Apply is said, and nothing of it stays.
	losses = 2
	if err := apply(4); registry.AsLost(err) == nil {
		t.Fatal(err)
	}
	check(3)
	if n := s.Losses(); n != 4 {
		t.Errorf("%d losses were counted", n)
	}
}

func TestGiven(t *testing.T) {
	var g given
	g.add(1, false, []registry.Apply{view("a", "1"), view("b", "2"), view("c", "3")})
	g.add(2, false, []registry.Apply{view("b", ""), view("d", "4"), view("a", "5"), view("zz", "")})
	version, all := g.all()
	if got := fmt.Sprint(version, all); got != "2 [{main.a 5 [] [] [] false} {main.c 3 [] [] [] false} {main.d 4 [] [] [] false}]" {
		t.Error(got)
	}
	g.add(3, false, []registry.Apply{view("d", "6"), view("b", "7")})
	g.add(4, false, []registry.Apply{{Name: viewkeeper.MakeName("", "c"), Empty: []viewkeeper.Column{{Name: "x", Type: "INTEGER"}}}})
	version, all = g.all()
	if got := fmt.Sprint(version, all); got != "4 [{main.a 5 [] [] [] false} {main.c  [] [{x INTEGER}] [] false} {main.d 6 [] [] [] false} {main.b 7 [] [] [] false}]" {
		t.Error(got)
	}
	g.add(5, true, []registry.Apply{view("e", "8")})
	version, all = g.all()
	if got := fmt.Sprint(version, all); got != "5 [{main.e 8 [] [] [] false}]" {
		t.Error(got)
	}
}

// BenchmarkRestore is the start of an engine that had 10,000 definitions, ten deep.
func BenchmarkRestore(b *testing.B) {
	s := startTestServer(b, nil)
	var changes []registry.Apply
	for i := range 10_000 {
		query := "SELECT i FROM main.t"
		if i%10 > 0 {
			query = fmt.Sprintf("SELECT i + 1 AS i FROM s.v%d", i-1)
		}
		changes = append(changes, view(fmt.Sprintf("s.v%d", i), query))
	}
	if err := s.Apply(context.Background(), 1, true, changes); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		p := s.supervisor.currentForTest(b)
		p.kill(&registry.LostError{Detail: "killed: by the benchmark"})
		<-p.exited
		ask(b, s, "SELECT count(*) FROM s.v9999")
	}
}
