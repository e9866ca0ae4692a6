package registry_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// drawName draws from few names, so that they meet; two schemas, one of them not
// main, so that unqualified names have two things to find.
func drawName(t *rapid.T) viewkeeper.Name {
	return viewkeeper.Name{
		Schema: rapid.SampledFrom([]string{"main", "main", "s"}).Draw(t, "schema"),
		View:   fmt.Sprint("v", rapid.IntRange(0, 7).Draw(t, "view")),
	}
}

// drawRelation draws a relation as a text names it: mostly definitions that may
// or may not exist, with and without their schema.
// f, which may be nil, holds those that do.
func drawRelation(t *rapid.T, f *registry.Factory) string {
	if f != nil && f.Len() > 0 && rapid.IntRange(0, 2).Draw(t, "existing") > 0 {
		n := rapid.SampledFrom(f.Rows()).Draw(t, "row").Name
		if n.Schema == "main" && rapid.Bool().Draw(t, "bare") {
			return n.View
		}
		return n.String()
	}
	switch rapid.IntRange(0, 9).Draw(t, "relation") {
	case 0, 1:
		return "u"
	case 2:
		return "main.t"
	case 3, 4, 5:
		return drawName(t).View
	}
	return drawName(t).String()
}

// drawBody draws a query. Columns are a and d, or fewer, so that changes break.
func drawBody(t *rapid.T, f *registry.Factory) string {
	from := drawRelation(t, f)
	switch rapid.IntRange(0, 8).Draw(t, "body") {
	case 0:
		return "SELECT a, d FROM " + from + " x"
	case 1:
		return "SELECT a FROM " + from + " x"
	case 2:
		return "SELECT x.a + 1 AS a, y.a AS d FROM " + from + " x, " + drawRelation(t, f) + " y"
	case 3:
		return "WITH unused AS (SELECT * FROM " + drawRelation(t, f) + ") SELECT * FROM " + from + " x"
	case 4:
		return "SELECT a FROM " + from + " x UNION ALL SELECT a FROM " + drawRelation(t, f) + " y"
	case 5:
		if i := strings.LastIndexByte(from, '.'); true { // qualified by the table's own name
			return "SELECT " + from[i+1:] + ".a, " + from[i+1:] + ".a + 1 AS d FROM " + from
		}
	case 6:
		return "SELECT a, max(a) AS d FROM " + from + " x GROUP BY a"
	case 7:
		return "SELECT 1 AS a, 2 AS d"
	}
	return "SELECT * FROM " + from + " x"
}

func quiet() registry.BaseOptions {
	return registry.BaseOptions{Log: slog.New(slog.DiscardHandler)}
}

// facts is all that must be the same however a factory came about. Reasons may
// differ in words: a change knows what it removed, a fresh build does not.
func facts(f *registry.Factory) string {
	var b strings.Builder
	for d := range f.Definitions() {
		fmt.Fprintf(&b, "%s %s (%s) %v by %v", d.Row.Name, d.State(), columns(d.Columns), d.Reads, f.ReadBy(d.Row.Name))
		if x := d.Failure; x != nil {
			fmt.Fprintf(&b, " %s %s", x.Stage, x.Code)
			if x.RootCause != nil {
				fmt.Fprintf(&b, " %s: %s", x.RootCause, x.Reason)
			}
			if x.Code == viewkeeper.CodeCycle {
				fmt.Fprintf(&b, " %s", x.Reason)
			}
		}
		b.WriteString("\n")
	}
	fmt.Fprintln(&b, f.Digest(), f.BuildDigest())
	return b.String()
}

// TestAdvanceEqualsBuild: a registry that was given any changes whatever, cycles
// and nonsense among them, has the factory that its rows build from nothing.
func TestAdvanceEqualsBuild(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		live := newModelBase(t)
		scratch := newModelBase(t)
		applied := &views{}
		r := registry.New(live, registry.RegistryOptions{Applier: applied})
		rows := map[viewkeeper.Name]viewkeeper.Row{}
		for version := viewkeeper.Version(1); version <= 15; version++ {
			var changed []viewkeeper.Row
			for range rapid.IntRange(1, 4).Draw(t, "changes") {
				n := drawName(t)
				row := viewkeeper.Row{Name: n, Version: version}
				if rapid.IntRange(0, 3).Draw(t, "drop") > 0 {
					row.Definition = &viewkeeper.Definition{Name: n, Kind: viewkeeper.KindView, SQL: fmt.Sprintf("CREATE VIEW %s AS %s", n, drawBody(t, nil)), ID: version}
				}
				changed = append(changed, row)
				rows[n] = row
			}
			all := slices.Collect(maps.Values(rows))
			var err error
			if rapid.Bool().Draw(t, "reload") {
				err = r.Reload(ctx, version, all)
			} else {
				err = r.Advance(ctx, version, changed)
			}
			if err != nil {
				t.Fatal(err)
			}
			want, err := registry.BuildFactory(ctx, scratch, all, registry.Probe)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := facts(r.Current()), facts(want); got != want {
				t.Fatalf("version %d, changed %v:\n%s\nfrom nothing:\n%s", version, changed, got, want)
			}
			applied.check(t, r.Current())
		}
	})
}

// views is an applier that keeps what it was given.
type views struct {
	names   map[viewkeeper.Name]registry.Apply
	version viewkeeper.Version
	calls   int
	err     error
}

func (v *views) Apply(_ context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply) error {
	v.calls++
	if err := v.err; err != nil {
		v.err = nil
		if registry.AsLost(err) != nil {
			v.names = nil
		}
		return err
	}
	if reset || v.names == nil {
		v.names = map[viewkeeper.Name]registry.Apply{}
	}
	for _, c := range changes {
		if c.Query == "" && c.Empty == nil {
			delete(v.names, c.Name)
		} else {
			v.names[c.Name] = c
		}
	}
	v.version = version
	return nil
}

// check holds the real views to the factory: exactly what builds is there.
func (v *views) check(t interface{ Fatalf(string, ...any) }, f *registry.Factory) {
	n := 0
	for d := range f.Definitions() {
		if _, there := v.names[d.Row.Name]; there != d.OK() {
			t.Fatalf("%s is %s, and applied: %v", d.Row.Name, d.State(), there)
		}
		if d.OK() {
			n++
		}
	}
	if n != len(v.names) || v.version != f.Version() {
		t.Fatalf("%d views applied at version %s, %d build at %s", len(v.names), v.version, n, f.Version())
	}
}

// TestJudgeEqualsBuild: whatever is judged, the catalog is what its rows build
// from nothing, nothing that built is broken by an accepted statement, and a
// check says what the judge does.
func TestJudgeEqualsBuild(t *testing.T) {
	verdicts := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		ctx := context.Background()
		scratch := newModelBase(t)
		catalog, err := registry.LoadCatalog(ctx, newModelBase(t), nil, registry.CatalogOptions{Owner: "n", Epoch: 3})
		if err != nil {
			t.Fatal(err)
		}
		rows := map[viewkeeper.Name]viewkeeper.Row{}
		for offset := range int64(20) {
			before := catalog.Snapshot()
			text := drawStatement(t, before)
			if rapid.IntRange(0, 4).Draw(t, "set") == 0 {
				text = "BEGIN; " + text + "; " + drawStatement(t, before) + "; COMMIT"
			}
			check, err := catalog.Check(ctx, statement(offset, text))
			if err != nil {
				t.Fatal(err)
			}
			out, err := catalog.Judge(ctx, statement(offset, text))
			if err != nil {
				t.Fatal(err)
			}
			if show(check) != show(out) {
				t.Fatalf("%s\nchecked: %s\njudged: %s", text, show(check), show(out))
			}
			verdicts[string(out.Decision.Verdict)+" "+string(out.Decision.Code)]++
			for _, r := range out.Rows {
				rows[r.Name] = r
			}
			want, err := registry.BuildFactory(ctx, scratch, slices.Collect(maps.Values(rows)), registry.Probe)
			if err != nil {
				t.Fatal(err)
			}
			after := catalog.Snapshot()
			if got, want := facts(after), facts(want); got != want {
				t.Fatalf("%s\n%s\n%s\nfrom nothing:\n%s", text, show(out), got, want)
			}
			if out.Decision.Verdict != viewkeeper.Accepted && after.Digest() != before.Digest() {
				t.Fatalf("%s\n%s changed the catalog", text, show(out))
			}
			if len(after.Failures()) > 0 {
				t.Fatalf("%s\n%s broke %v", text, show(out), after.Failures()[0])
			}
		}
	})
	t.Log(verdicts)
}

// drawStatement draws any statement, mostly about what exists.
func drawStatement(t *rapid.T, f *registry.Factory) string {
	n := drawName(t)
	if f.Len() > 0 && rapid.IntRange(0, 3).Draw(t, "existing") > 0 {
		n = rapid.SampledFrom(f.Rows()).Draw(t, "row").Name
	}
	switch rapid.IntRange(0, 14).Draw(t, "statement") {
	case 0:
		return fmt.Sprintf("DROP VIEW %s", n)
	case 1:
		return fmt.Sprintf("DROP VIEW IF EXISTS %s, %s CASCADE", n, drawName(t))
	case 2, 3:
		return fmt.Sprintf("ALTER VIEW %s RENAME TO v%d", n, rapid.IntRange(0, 9).Draw(t, "to"))
	case 4:
		return fmt.Sprintf("COMMENT ON VIEW %s IS 'x'", n)
	case 5:
		return fmt.Sprintf("CREATE VIEW %s AS %s", n, drawBody(t, f))
	}
	return fmt.Sprintf("CREATE OR REPLACE VIEW %s AS %s", n, drawBody(t, f))
}
