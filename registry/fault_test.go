package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// faultStory touches every kind of call: stubs, several ranks, a materialized
// definition, a refusal after planning, a rename, a drop.
var faultStory = []string{
	"BEGIN; CREATE VIEW a AS SELECT a, d FROM u; CREATE VIEW b AS SELECT * FROM a; CREATE VIEW c AS SELECT a FROM b; COMMIT",
	`CREATE MATERIALIZED VIEW m WITH (extract_query = $$ SELECT ts FROM t WHERE ts >= {begin} AND ts < {end} $$,
		count_src_query = $$ SELECT count(*) AS count FROM t WHERE ts >= {begin} AND ts < {end} $$,
		merge_partitions_query = $$ SELECT ts FROM {source} $$, time_column = 'ts')`,
	"CREATE OR REPLACE VIEW a AS SELECT d FROM u",
	"CREATE OR REPLACE VIEW a AS SELECT a, d, 1 AS e FROM u",
	"ALTER VIEW a RENAME TO first",
	"CREATE VIEW n AS SELECT nope FROM first",
	"DROP VIEW c",
	"CREATE VIEW last AS SELECT * FROM b",
}

// TestFaults fails the planner at call 0, 1, 2, ... of a story. Whatever fails,
// and whether before or after it took effect: no statement is half done, a lost
// engine costs no statement, and the story ends as it does without the fault.
func TestFaults(t *testing.T) {
	want := ""
	for _, late := range []bool{false, true} {
		for _, fault := range []error{nil, &registry.LostError{Detail: "killed"}, errors.New("the socket closed")} {
			for at := 0; ; at++ {
				planner := &registrytest.FaultPlanner{Planner: &merging{Planner: registrytest.NewModel(registrytest.BaseRelations()...)}, At: at, Err: fault, Late: late}
				if fault == nil {
					planner.At = -1
				}
				got := playFaults(t, planner, registry.AsLost(fault) != nil)
				if want == "" {
					want = got
				}
				if got != want {
					t.Errorf("%v (late: %v) at %s:\n%s\nwithout:\n%s", fault, late, planner.Hit(), got, want)
				}
				if planner.Hit() == "" {
					break
				}
			}
		}
	}
	if !strings.Contains(want, "main.last") {
		t.Errorf("the story did not come to its end:\n%s", want)
	}
}

func playFaults(t *testing.T, planner *registrytest.FaultPlanner, lost bool) string {
	var catalog *registry.Catalog
	// A person starts again what could not start.
	for try := 0; catalog == nil; try++ {
		base, err := registry.NewBase(t.Context(), planner, quiet())
		if err == nil {
			catalog, err = registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{})
		}
		if err != nil && try > 1 {
			t.Fatal(err)
		}
	}
	var b strings.Builder
	for i, text := range faultStory {
		s := statement(int64(i), text)
		before := catalog.Snapshot()
		out, err := catalog.Judge(t.Context(), s)
		if err != nil {
			// Only the engine's start may fail with the engine lost: then no query
			// was at work. Everything else is tried again inside.
			if lost && !strings.Contains(err.Error(), "planner") {
				t.Errorf("%s: %v", planner.Hit(), err)
			}
			if catalog.Snapshot() != before {
				t.Errorf("%s: the catalog changed with an error", planner.Hit())
			}
			if out, err = catalog.Judge(t.Context(), s); err != nil {
				t.Fatalf("%s: again: %v", planner.Hit(), err)
			}
		}
		b.WriteString(show(out))
	}
	b.WriteString(listing(catalog.Snapshot()))
	return b.String()
}

// poisoned fails, by losing the engine, every call that holds a query with one of
// the given texts.
func poisoned(c *counter, timeout bool, poison ...string) {
	c.hook = func(_ string, queries []registry.Query) error {
		for _, q := range queries {
			for _, p := range poison {
				if strings.Contains(q.Text, p) {
					return &registry.LostError{Timeout: timeout, Detail: "killed: over its memory"}
				}
			}
		}
		return nil
	}
}

// TestEngineKiller: a statement that kills the engine is tried once more, and
// refused; a load of many rows breaks the culprit alone.
func TestEngineKiller(t *testing.T) {
	base, planner := newBase(t, quiet())
	catalog, err := registry.LoadCatalog(t.Context(), base, rowsOf(t, star(10)...), registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		timeout bool
		code    viewkeeper.Code
	}{{false, viewkeeper.CodeEngineKilled}, {true, viewkeeper.CodeEngineTimeout}} {
		poisoned(planner, c.timeout, "999")
		planner.took()
		out, err := catalog.Judge(t.Context(), statement(100, "CREATE VIEW killer AS SELECT 999 AS k"))
		if err != nil || out.Decision.Code != c.code {
			t.Fatalf("%v %+v", err, out)
		}
		if planner.parse != 2 {
			t.Errorf("tried %d times", planner.parse)
		}
	}
	out, err := catalog.Judge(t.Context(), statement(101, "CREATE VIEW fine AS SELECT a FROM top9"))
	if err != nil || out.Decision.Verdict != viewkeeper.Accepted {
		t.Fatalf("after a killer: %v %+v", err, out)
	}

	// In a set, and where a dependent is the one that the engine dies on.
	poisoned(planner, false, "mid3")
	out, err = catalog.Judge(t.Context(), statement(102, "CREATE OR REPLACE VIEW mid3 AS SELECT a, 1 AS b FROM root"))
	if err != nil || out.Decision.Code != viewkeeper.CodeEngineKilled || len(out.Decision.Broken) != 1 {
		t.Fatalf("%v %+v", err, out)
	}

	texts := star(50)
	texts[33] = "CREATE VIEW killer AS SELECT 999 AS k"
	texts[60] = "CREATE VIEW killer2 AS SELECT a + 999 AS k FROM mid1"
	poisoned(planner, false, "999")
	f, err := registry.BuildFactory(t.Context(), base, rowsOf(t, texts...), registry.Probe)
	if err != nil {
		t.Fatal(err)
	}
	var failed []string
	for _, x := range f.Failures() {
		failed = append(failed, fmt.Sprint(x.Name, " ", x.Code))
	}
	// Two rows gave way to the killers: mid16 had a reader, and top29 none.
	if want := []string{"main.killer ENGINE_KILLED", "main.killer2 ENGINE_KILLED", "main.top16 BIND"}; !slices.Equal(failed, want) {
		t.Fatalf("failed %q, want %q", failed, want)
	}
}

// TestRetry: what the engine died on, or could not plan for reasons outside of
// the catalog, is tried again, and nothing else is.
func TestRetry(t *testing.T) {
	base, planner := newBase(t, quiet())
	var swaps []registry.Swap
	r := registry.New(base, registry.RegistryOptions{Swapped: func(s registry.Swap) { swaps = append(swaps, s) }})
	poisoned(planner, false, "999")
	rows := rowsOf(t, "CREATE VIEW k AS SELECT 999 AS k", "CREATE VIEW over AS SELECT * FROM k",
		"CREATE VIEW wrong AS SELECT nope FROM u", "CREATE VIEW good AS SELECT a FROM u")
	if err := r.Reload(t.Context(), 4, rows); err != nil {
		t.Fatal(err)
	}
	if n := len(r.FailedDefinitions()); n != 3 {
		t.Fatalf("failed: %v", r.FailedDefinitions())
	}
	if err := r.Retry(t.Context()); err != nil || len(swaps) != 1 {
		t.Fatalf("%v, %d swaps after nothing came of a retry", err, len(swaps))
	}
	planner.hook = nil
	planner.took()
	if err := r.Retry(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(swaps) != 2 || fmt.Sprint(swaps[1].Changed) != "[main.k main.over]" {
		t.Fatalf("swaps: %v", swaps)
	}
	failed := r.FailedDefinitions()
	if len(failed) != 1 || failed[0].Name.View != "wrong" || failed[0].Since != 4 {
		t.Fatalf("failed: %+v", failed)
	}
	if planner.parsed != 1 || planner.bound != 3 { // k, what reads it, and wrong
		t.Errorf("asked %s", planner.took())
	}
}

// TestPanic: a planner that panics stands for any mistake of the program. The
// statement is refused with what is known, the next one is judged.
func TestPanic(t *testing.T) {
	base, planner := newBase(t, quiet())
	catalog, err := registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	planner.hook = func(string, []registry.Query) error { panic("out of range") }
	out, err := catalog.Judge(t.Context(), statement(1, "CREATE VIEW a AS SELECT 1 AS x"))
	if err != nil || out.Decision.Code != viewkeeper.CodeInternal || !strings.Contains(out.Decision.Message, "out of range") || len(out.Rows) != 0 {
		t.Fatalf("%v %+v", err, out)
	}
	planner.hook = nil
	out, err = catalog.Judge(t.Context(), statement(2, "CREATE VIEW a AS SELECT 1 AS x"))
	if err != nil || out.Decision.Verdict != viewkeeper.Accepted {
		t.Fatalf("%v %+v", err, out)
	}
}

// TestCancelled: a caller that gave up gets its error, and nothing happened.
func TestCancelled(t *testing.T) {
	base, planner := newBase(t, quiet())
	catalog, err := registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	planner.hook = func(call string, _ []registry.Query) error {
		if call == "bind" {
			cancel()
			return ctx.Err()
		}
		return nil
	}
	if _, err := catalog.Judge(ctx, statement(1, "CREATE VIEW a AS SELECT 1 AS x")); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	planner.hook = nil
	out, err := catalog.Judge(t.Context(), statement(2, "CREATE VIEW a AS SELECT 1 AS x"))
	if err != nil || out.Decision.Verdict != viewkeeper.Accepted {
		t.Fatalf("%v %+v", err, out)
	}
}

// TestApplier: the applier's trouble keeps the last factory; the next change
// gives it everything.
func TestApplier(t *testing.T) {
	base, _ := newBase(t, quiet())
	v := &views{}
	r := registry.New(base, registry.RegistryOptions{Applier: v})
	advance := func(version viewkeeper.Version, text string) error {
		return r.Advance(t.Context(), version, []viewkeeper.Row{rowOf(t, version, text)})
	}
	if err := advance(1, "CREATE VIEW a AS SELECT a, d FROM u"); err != nil {
		t.Fatal(err)
	}
	if err := advance(2, "CREATE VIEW b AS SELECT * FROM a"); err != nil {
		t.Fatal(err)
	}
	v.check(t, r.Current())

	v.err = errors.New("disk full")
	if err := advance(3, "CREATE VIEW c AS SELECT * FROM b"); err == nil || r.Current().Version() != 2 {
		t.Fatalf("%v, at version %s", err, r.Current().Version())
	}
	if err := advance(4, "CREATE VIEW c AS SELECT a FROM b"); err != nil {
		t.Fatal(err)
	}
	v.check(t, r.Current())
	if c, _ := r.Current().Definition(viewkeeper.MakeName("", "c")); len(c.Columns) != 1 {
		t.Fatalf("c has %v", c.Columns)
	}

	v.err = &registry.LostError{Detail: "killed"}
	if err := advance(5, "CREATE VIEW d AS SELECT * FROM c"); err != nil {
		t.Fatal(err)
	}
	v.check(t, r.Current())

	v.names = nil
	if err := r.Reapply(t.Context()); err != nil {
		t.Fatal(err)
	}
	v.check(t, r.Current())
}
