package duckdb

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// chain is n views, each over the one before.
func chain(n, value int) []registry.Apply {
	changes := []registry.Apply{{Name: viewkeeper.MakeName("", "v0"), Query: fmt.Sprintf("SELECT %d AS n", value)}}
	for i := 1; i < n; i++ {
		below := viewkeeper.MakeName("", fmt.Sprint("v", i-1))
		changes = append(changes, registry.Apply{
			Name: viewkeeper.MakeName("", fmt.Sprint("v", i)), Query: "SELECT n FROM " + below.SQL(), Reads: []viewkeeper.Name{below},
		})
	}
	return changes
}

// made counts the views that are in the engine, by its own word.
func (s *Server) made(t *testing.T) int {
	t.Helper()
	c, err := s.instance.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	rows, err := c.query(t.Context(), "SELECT view_name FROM duckdb_views() WHERE NOT internal")
	if err != nil {
		t.Fatal(err)
	}
	return len(rows)
}

func (s *Server) answers(t *testing.T, sql, want string) {
	t.Helper()
	r, err := s.Query(t.Context(), QueryRequest{SQL: sql})
	if got := readAll(t, r, err).one(t); got != want {
		t.Errorf("%s: %s, want %s", sql, got, want)
	}
}

// TestNotedViewsAreMade: a large catalog that is given whole, or again after a loss,
// costs no view; a query makes what it names, with what that reads; what is given again
// is made; and who lists what there is sees all.
func TestNotedViewsAreMade(t *testing.T) {
	for what, give := range map[string]func(s *Server, changes []registry.Apply) error{
		"apply": func(s *Server, changes []registry.Apply) error { return s.Apply(t.Context(), 7, true, changes) },
		"restore": func(s *Server, changes []registry.Apply) error {
			refused, err := s.Restore(t.Context(), 7, changes)
			if len(refused) > 0 {
				t.Errorf("refused: %v", refused)
			}
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			s := openTestServer(t, Options{MakeLater: 5})
			if err := give(s, chain(50, 1)); err != nil {
				t.Fatal(err)
			}
			check := func(want int) {
				t.Helper()
				if got := s.made(t); got != want {
					t.Fatalf("%d views are made, want %d", got, want)
				}
			}
			check(0)
			s.answers(t, "SELECT 5", "5")
			check(0)
			s.answers(t, "SELECT n FROM V3", "1")
			check(4)
			if err := s.Apply(t.Context(), 8, false, chain(50, 2)[:2]); err != nil { // v0 is another one now
				t.Fatal(err)
			}
			check(4)
			s.answers(t, "SELECT n FROM v3", "2")
			if err := s.Apply(t.Context(), 8, false, chain(50, 2)[8:10]); err != nil {
				t.Fatal(err)
			}
			check(10)
			if err := s.Apply(t.Context(), 9, true, chain(50, 3)[:40]); err != nil { // what is made is made anew
				t.Fatal(err)
			}
			check(10)
			s.answers(t, "SELECT n FROM v9", "3")
			r, err := s.Query(t.Context(), QueryRequest{SQL: "SHOW TABLES"})
			if a := readAll(t, r, err); len(a.rows) != 40 || a.version != 9 {
				t.Errorf("%d relations are listed at version %s", len(a.rows), a.version)
			}
			check(40)
			if s.apply.noting.Load()%2 != 0 {
				t.Error("all are made, and some are taken for noted")
			}
			if err := s.Apply(t.Context(), 10, true, nil); err != nil {
				t.Fatal(err)
			}
			check(0)
		})
	}
}

// TestNotedFileIsMadeAtOnce: what reads a file is refused when it is applied, as ever.
func TestNotedFileIsMadeAtOnce(t *testing.T) {
	s := openTestServer(t, Options{MakeLater: 5, LakeDirs: []string{t.TempDir()}})
	changes := append(chain(10, 1), registry.Apply{Name: viewkeeper.MakeName("", "f"), Query: "SELECT * FROM 'gone.csv'", Files: true})
	err := s.Apply(t.Context(), 1, true, changes)
	if no := registry.AsRefused(err); no == nil || len(no.Refused) != 1 || no.Refused[0].Name.View != "f" {
		t.Fatal(err)
	}
	if err := s.Apply(t.Context(), 1, true, changes[:10]); err != nil {
		t.Fatal(err)
	}
	s.answers(t, "SELECT n FROM v9", "1")
	// A suspect is made at once too.
	changes = append(chain(10, 2), registry.Apply{Name: viewkeeper.MakeName("", "x"), Query: "SELECT * FROM main.nosuch"})
	err = s.ApplyAll(t.Context(), 2, true, changes, []viewkeeper.Name{viewkeeper.MakeName("", "x")})
	if no := registry.AsRefused(err); no == nil || len(no.Refused) != 1 || no.Refused[0].Name.View != "x" {
		t.Fatal(err)
	}
	s.answers(t, "SELECT n FROM v9", "1")
	// One that nobody suspected is not there, and in nobody's way.
	if err := s.Apply(t.Context(), 2, true, changes); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Query(t.Context(), QueryRequest{SQL: "FROM x"}); err == nil {
		t.Error("what can't be made answers")
	}
	s.answers(t, "SELECT v9.n FROM v9, v8 AS x", "2")
	if no := registry.AsRefused(s.Apply(t.Context(), 2, false, changes[10:])); no == nil {
		t.Error("what can't be made was made when it was given again")
	}
}

// TestWhatAChangeCosts counts the statements of a change, and of a replay, in a small
// catalog and in a large one.
func TestWhatAChangeCosts(t *testing.T) {
	var costs []string
	for _, n := range []int{20, 2000} {
		s := openTestServer(t, Options{MakeLater: 5})
		wide := func(value int) []registry.Apply { // over one root
			changes := chain(1, value)
			for i := 1; i < n; i++ {
				changes = append(changes, registry.Apply{Name: viewkeeper.MakeName("s", fmt.Sprint("w", i)), Query: "SELECT n FROM main.v0", Reads: []viewkeeper.Name{changes[0].Name}})
			}
			return changes
		}
		cost := ""
		count := func(p *applyPlan) {
			t.Helper()
			if err := p.finish(t.Context()); err != nil {
				t.Fatal(err)
			}
			cost += fmt.Sprintf(" %d+%d+%d/%d", len(p.made), len(p.drops), len(p.creates), len(p.set))
		}
		p := s.apply.newPlan(true)
		p.add(wide(1))
		if err := p.finish(t.Context()); err != nil || len(p.creates) != 0 || len(p.notes) != n {
			t.Fatalf("%d made, %d noted of %d: %v", len(p.creates), len(p.notes), n, err)
		}
		if _, err := s.Restore(t.Context(), 1, wide(1)); err != nil {
			t.Fatal(err)
		}
		for range 2 { // while views are noted, and when all are made
			for _, changes := range [][]registry.Apply{
				wide(2)[:1], {{Name: viewkeeper.MakeName("s", "w7"), Query: "SELECT 5"}}, {{Name: viewkeeper.MakeName("s", "w8")}}, nil,
			} {
				p := s.apply.newPlan(false)
				p.add(changes)
				count(p)
			}
			s.answers(t, "SELECT count(*) FROM duckdb_views() WHERE NOT internal", fmt.Sprint(n))
		}
		costs = append(costs, cost)
	}
	if costs[0] != costs[1] {
		t.Errorf("in a small catalog %s, in a large one %s", costs[0], costs[1])
	}
}

// TestNotingAnswersLikeMaking gives two servers the same changes, of which one notes
// all that it may: whatever is asked, they say the same.
func TestNotingAnswersLikeMaking(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 5))
	for range 12 {
		noting, making := openTestServer(t, Options{MakeLater: 1}), openTestServer(t, Options{})
		texts := map[viewkeeper.Name]registry.Apply{}
		var order []viewkeeper.Name
		name := func() viewkeeper.Name {
			return viewkeeper.Name{Schema: []string{"main", "s", "r"}[rng.IntN(3)], View: fmt.Sprint("v", rng.IntN(8))}
		}
		for version := viewkeeper.Version(1); version <= 25; version++ {
			changed := map[viewkeeper.Name]bool{}
			for range 1 + rng.IntN(4) {
				n := name()
				changed[n] = true
				order = slices.DeleteFunc(order, func(o viewkeeper.Name) bool { return o == n })
				delete(texts, n)
				if rng.IntN(4) == 0 {
					continue
				}
				a := registry.Apply{Name: n, Query: fmt.Sprintf("SELECT %d AS v0", version)}
				if len(order) > 0 && rng.IntN(3) > 0 {
					below := order[rng.IntN(len(order))]
					a.Query, a.Reads = fmt.Sprintf("SELECT v0 * 3 + %d AS v0 FROM %s", version, below.SQL()), []viewkeeper.Name{below}
				}
				texts[n] = a
				order = append(order, n)
			}
			// The registry gives what is in order alone: what reads what is gone, is gone.
			for again := true; again; {
				again = false
				for _, n := range order {
					if slices.ContainsFunc(texts[n].Reads, func(r viewkeeper.Name) bool {
						return texts[r].Query == "" || slices.Index(order, r) > slices.Index(order, n)
					}) {
						order = slices.DeleteFunc(order, func(o viewkeeper.Name) bool { return o == n })
						delete(texts, n)
						changed[n] = true
						again = true
						break
					}
				}
			}
			reset := rng.IntN(3) == 0
			var changes []registry.Apply
			for n := range changed {
				if texts[n].Query == "" && !reset {
					changes = append(changes, registry.Apply{Name: n})
				}
			}
			for _, n := range order {
				if changed[n] || reset {
					changes = append(changes, texts[n])
				}
			}
			for _, s := range []*Server{noting, making} {
				if err := s.Apply(t.Context(), version, reset, changes); err != nil {
					t.Fatalf("%v: %v", changes, err)
				}
			}
			ask := []string{"FROM v1", "SELECT v0 FROM s.v2", "FROM v3 AS v4", "WITH v5 AS (FROM v6) FROM v5, r.v7", "SELECT v7 FROM v0", "DESCRIBE v2"}
			if rng.IntN(5) == 0 {
				ask = append(ask, "SELECT name FROM (SHOW ALL TABLES) ORDER BY ALL", "SELECT view_name FROM duckdb_views() WHERE NOT internal ORDER BY ALL", "SELECT table_name FROM information_schema.tables ORDER BY ALL")
			}
			for range 3 {
				sql := ask[rng.IntN(len(ask))]
				if a, b := said(t, noting, sql), said(t, making, sql); a != b {
					t.Fatalf("version %s, %s:\nnoting %s\nmaking %s\nof %v", version, sql, a, b, texts)
				}
			}
		}
	}
}

// said is an answer, or the refusal.
func said(t *testing.T, s *Server, sql string) string {
	t.Helper()
	r, err := s.Query(t.Context(), QueryRequest{SQL: sql})
	if err != nil {
		return err.Error()
	}
	a := readAll(t, r, nil)
	return fmt.Sprint(a.version, a.columns, a.rows)
}

// TestNotingIsAtomicForQueries: catalogs are given whole, noted or not, and a part of
// them again, while queries run: each sees the views and the version of one commit.
func TestNotingIsAtomicForQueries(t *testing.T) {
	s := openTestServer(t, Options{MakeLater: 3})
	catalog := func(n int) []registry.Apply {
		changes := chain(5, n)
		return append(changes, registry.Apply{Name: viewkeeper.MakeName(fmt.Sprint("s", n), "own"), Query: fmt.Sprint("SELECT ", n)})
	}
	if err := s.Apply(t.Context(), 1, true, catalog(1)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			var last viewkeeper.Version
			for {
				select {
				case <-done:
					return
				default:
				}
				r, err := s.Query(context.Background(), QueryRequest{SQL: "SELECT v4.n, v0.n, (SELECT max(n) FROM v2) FROM v4, v0"})
				if err != nil {
					t.Error(err)
					return
				}
				a := readAll(t, r, err)
				want := a.version.String()
				if got := strings.Join(slices.Compact(a.rows[0]), " "); got != want || a.version < last {
					t.Errorf("torn: version %s after %s, rows %v", want, last, a.rows)
					return
				}
				last = a.version
			}
		}()
	}
	for n := 2; n <= 150 && !t.Failed(); n++ {
		if err := s.Apply(t.Context(), viewkeeper.Version(n), true, catalog(n)); err != nil {
			t.Error(err)
		}
		for i := n % 3; i > 0; i-- { // as they are filled in
			if err := s.Apply(t.Context(), viewkeeper.Version(n), false, catalog(n)[2*i-2:2*i+1]); err != nil {
				t.Error(err)
			}
		}
	}
	close(done)
	wg.Wait()
}
