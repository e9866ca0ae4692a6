package registry_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// star is a root with n readers, each with a reader of its own.
func star(n int) []string {
	texts := []string{"CREATE VIEW root AS SELECT a, d FROM u"}
	for i := range n {
		texts = append(texts,
			fmt.Sprintf("CREATE VIEW mid%d AS SELECT a FROM root", i),
			fmt.Sprintf("CREATE VIEW top%d AS SELECT a FROM mid%d", i, i))
	}
	return texts
}

// TestCost holds a change to what it may ask of the planner, however much of the
// catalog there is around it.
func TestCost(t *testing.T) {
	base, planner := newBase(t, quiet())
	rows := rowsOf(t, star(1000)...)
	r := registry.New(base, registry.RegistryOptions{})
	planner.took()
	check := func(what, want string) {
		t.Helper()
		if got := planner.took(); got != want {
			t.Errorf("%s: asked %s, want %s", what, got, want)
		}
	}
	if err := r.Reload(t.Context(), 2001, rows); err != nil {
		t.Fatal(err)
	}
	check("first load", "parse 11/2001 bind 24/2001 stubs 2001 settle 2")

	if err := r.Reload(t.Context(), 2002, rows); err != nil {
		t.Fatal(err)
	}
	check("the same rows", "parse 0/0 bind 0/0 stubs 0 settle 0")
	if got := r.Current().Version(); got != 2002 {
		t.Errorf("version %s after a reload of the same rows at 2002", got)
	}

	advance := func(version viewkeeper.Version, text string) {
		t.Helper()
		if err := r.Advance(t.Context(), version, []viewkeeper.Row{rowOf(t, version, text)}); err != nil {
			t.Fatal(err)
		}
	}
	advance(2003, "CREATE VIEW top7 AS SELECT a + 1 AS a FROM mid7")
	check("a leaf", "parse 1/1 bind 1/1 stubs 0 settle 1")
	advance(2004, "CREATE VIEW root AS SELECT a, d FROM u WHERE a > 0")
	check("a root that keeps its columns", "parse 1/1 bind 1/1 stubs 0 settle 1")
	advance(2005, "CREATE VIEW mid7 AS SELECT a + 0 AS a, 1 AS one FROM root")
	check("a column more, which the reader's output does not show", "parse 1/1 bind 2/2 stubs 1 settle 1")
	advance(2006, "CREATE VIEW root AS SELECT a, d, 1 AS more FROM u")
	check("a root with a column more", "parse 1/1 bind 11/1001 stubs 1 settle 1")

	comment := "hello"
	row := rows[0]
	row.Version, row.Definition = 2007, &viewkeeper.Definition{Name: row.Name, Kind: viewkeeper.KindView, SQL: "CREATE VIEW root AS SELECT a, d, 1 AS more FROM u", Comment: &comment, ID: 1}
	if err := r.Advance(t.Context(), 2007, []viewkeeper.Row{row}); err != nil {
		t.Fatal(err)
	}
	check("a comment", "parse 0/0 bind 0/0 stubs 0 settle 0")
	if err := r.Advance(t.Context(), 2008, []viewkeeper.Row{{Name: viewkeeper.MakeName("", "top3"), Version: 2008}}); err != nil {
		t.Fatal(err)
	}
	check("a drop", "parse 0/0 bind 0/0 stubs 0 settle 0")
	if n := r.Current().Len(); n != 2000 || r.Current().Broken() != 0 {
		t.Errorf("%d definitions, %d broken", n, r.Current().Broken())
	}
}

// TestCostDoesNotGrow: what a change asks of the planner is the same among 100 definitions
// and among 2,000.
func TestCostDoesNotGrow(t *testing.T) {
	asked := map[int][]string{}
	for _, n := range []int{100, 2000} {
		texts := star(10)
		for i := range n {
			texts = append(texts, fmt.Sprintf("CREATE VIEW other%d AS SELECT a FROM u WHERE a > %d", i, i), fmt.Sprintf("CREATE VIEW above%d AS SELECT a FROM other%d", i, i))
		}
		base, planner := newBase(t, quiet())
		catalog, err := registry.LoadCatalog(t.Context(), base, rowsOf(t, texts...), registry.CatalogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		planner.took()
		for i, text := range []string{
			"CREATE VIEW leaf AS SELECT a FROM root",
			"CREATE OR REPLACE VIEW leaf AS SELECT a + 1 AS a FROM root",
			"CREATE OR REPLACE VIEW root AS SELECT a, d FROM u WHERE a > 0",
			"CREATE OR REPLACE VIEW root AS SELECT a, d, 1 AS more FROM u",
			"ALTER VIEW root RENAME TO roots",
			"DROP VIEW top3",
			"CREATE VIEW bad AS SELECT nope FROM root",
		} {
			if _, err := catalog.Judge(t.Context(), statement(int64(i), text)); err != nil {
				t.Fatal(err)
			}
			asked[n] = append(asked[n], text+": "+planner.took())
		}
	}
	for i, few := range asked[100] {
		if many := asked[2000][i]; few != many {
			t.Errorf("%s among 100 definitions, and among 2,000: %s", few, many)
		}
	}
	t.Log(strings.Join(asked[100], "\n"))
}

// TestSharedBase: two holders of one base take turns, and each finds its own
// definitions there.
func TestSharedBase(t *testing.T) {
	base, planner := newBase(t, quiet())
	a, b := registry.New(base, registry.RegistryOptions{}), registry.New(base, registry.RegistryOptions{})
	for version := viewkeeper.Version(1); version < 6; version++ {
		for i, r := range []*registry.Registry{a, b} {
			text := fmt.Sprintf("CREATE VIEW v%d AS SELECT %s FROM %s", version, []string{"a", "d"}[i], []string{"u", fmt.Sprint("v", version-1)}[min(int(version-1), 1)])
			if err := r.Advance(t.Context(), version, []viewkeeper.Row{rowOf(t, version, text)}); err != nil {
				t.Fatal(err)
			}
			for d := range r.Current().Definitions() {
				if want := []string{"a", "d"}[i]; !d.OK() || d.Columns[0].Name != want {
					t.Fatalf("%s: %v %v, want column %s", d.Row.Name, d.Failure, d.Columns, want)
				}
			}
		}
	}
	if planner.reset != 1 {
		t.Errorf("the scratch catalog was made from nothing %d times; the difference is less", planner.reset)
	}
}

// TestChecksBetweenCommits: a node checks statements over a factory while the
// registry goes on with the same planner. Each turn costs the difference.
func TestChecksBetweenCommits(t *testing.T) {
	base, planner := newBase(t, quiet())
	r := registry.New(base, registry.RegistryOptions{})
	if err := r.Reload(t.Context(), 2001, rowsOf(t, star(1000)...)); err != nil {
		t.Fatal(err)
	}
	planner.took()
	old := registry.CatalogAt(r.Current(), registry.CatalogOptions{})
	for version := viewkeeper.Version(3000); version < 3005; version++ {
		row := rowOf(t, version, fmt.Sprintf("CREATE VIEW mid1 AS SELECT a AS a, %d AS c%d FROM root", version, version))
		if err := r.Advance(t.Context(), version, []viewkeeper.Row{row}); err != nil {
			t.Fatal(err)
		}
		for _, catalog := range []*registry.Catalog{old, registry.CatalogAt(r.Current(), registry.CatalogOptions{})} {
			out, err := catalog.Check(t.Context(), statement(1, "CREATE VIEW n AS SELECT * FROM mid1"))
			if err != nil || out.Decision.Verdict != viewkeeper.Accepted {
				t.Fatalf("%v %+v", err, out)
			}
			if got, want := len(out.Decision.Changed[0].ColumnsAfter), map[bool]int{true: 1, false: 2}[catalog == old]; got != want {
				t.Errorf("%d columns, want %d", got, want)
			}
		}
	}
	if planner.reset > 0 || planner.stubs > 100 {
		t.Errorf("%d resets, %d stubs", planner.reset, planner.stubs)
	}
}

// TestOrderOfRows: the factory is the same whatever order the rows come in.
func TestOrderOfRows(t *testing.T) {
	rows := rowsOf(t, star(20)...)
	slices.Reverse(rows)
	base, _ := newBase(t, quiet())
	f, err := registry.BuildFactory(t.Context(), base, rows, registry.Probe)
	if err != nil {
		t.Fatal(err)
	}
	if f.Broken() != 0 || f.Len() != 41 || f.Version() != 41 {
		t.Fatalf("%d definitions at version %s, broken: %v", f.Len(), f.Version(), f.Failures())
	}
}

func BenchmarkLoad10k(b *testing.B) {
	rows := rowsOf(b, star(5000)...)
	for b.Loop() {
		base, _ := newBase(b, quiet())
		if _, err := registry.BuildFactory(b.Context(), base, rows, registry.Probe); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkAdvanceLeafOf10k(b *testing.B) {
	base, _ := newBase(b, quiet())
	r := registry.New(base, registry.RegistryOptions{})
	if err := r.Reload(b.Context(), 1, rowsOf(b, star(5000)...)); err != nil {
		b.Fatal(err)
	}
	version := viewkeeper.Version(20000)
	for b.Loop() {
		version++
		row := rowOf(b, version, fmt.Sprintf("CREATE VIEW top%d AS SELECT a + %d AS a FROM mid%d", version%5000, version, version%5000))
		if err := r.Advance(b.Context(), version, []viewkeeper.Row{row}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReloadSame10k(b *testing.B) {
	base, _ := newBase(b, quiet())
	r := registry.New(base, registry.RegistryOptions{})
	rows := rowsOf(b, star(5000)...)
	for b.Loop() {
		if err := r.Reload(b.Context(), 1, rows); err != nil {
			b.Fatal(err)
		}
	}
}

// TestCurrentAllocatesNothing: everything that answers from the catalog asks for it.
func TestCurrentAllocatesNothing(t *testing.T) {
	base, _ := newBase(t, quiet())
	r := registry.New(base, registry.RegistryOptions{})
	if err := r.Reload(t.Context(), 3, rowsOf(t, star(1)...)); err != nil {
		t.Fatal(err)
	}
	var f *registry.Factory
	if n := testing.AllocsPerRun(1000, func() { f = r.Current() }); n != 0 {
		t.Errorf("Current makes %v allocations", n)
	}
	if f.Version() != 3 {
		t.Errorf("it gives version %s", f.Version())
	}
}
