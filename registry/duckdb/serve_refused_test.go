package duckdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// lakeWith makes a lake folder of CSV files.
func lakeWith(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		if err := os.WriteFile(filepath.Join(dir, f), []byte("a,b\n1,x\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func liveRow(t *testing.T, v viewkeeper.Version, text string) viewkeeper.Row {
	t.Helper()
	s, err := ddl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	c := s.(*viewkeeper.Create)
	return viewkeeper.Row{Name: c.Name, Version: v, Definition: &viewkeeper.Definition{Name: c.Name, Kind: c.Kind, SQL: text, ID: v}}
}

// before calls a function before each Apply.
type before struct {
	registry.Applier
	call func()
}

func (b *before) Apply(ctx context.Context, v viewkeeper.Version, reset bool, changes []registry.Apply) error {
	b.call()
	return b.Applier.Apply(ctx, v, reset, changes)
}

// A file that vanishes between the planner's look and the server's breaks the
// definition that reads it, and what reads that, and nothing else.
func TestAFileVanishesBetweenBindAndApply(t *testing.T) {
	ctx := context.Background()
	dir := lakeWith(t, "one.csv", "two.csv")
	opts := Options{LakeDirs: []string{dir}, BaseSQL: "CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (3)"}
	planner, err := Open(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { planner.Close() })
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s := openTestServer(t, opts)
	two := filepath.Join(dir, "two.csv")
	vanish := func() { os.Remove(two) }
	r := registry.New(base, registry.RegistryOptions{Applier: &before{s, func() { vanish() }}})
	err = r.Reload(ctx, 5, []viewkeeper.Row{
		liveRow(t, 1, "CREATE VIEW one AS SELECT a FROM 'one.csv'"),
		liveRow(t, 2, "CREATE VIEW two AS SELECT a, b FROM 'two.csv'"),
		liveRow(t, 3, "CREATE VIEW over AS SELECT one.a + two.a AS n FROM one, two"),
		liveRow(t, 4, "CREATE VIEW other AS SELECT i FROM t"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if v := r.Current().Version(); v != 5 {
		t.Fatalf("at version %s", v)
	}
	failed := r.FailedDefinitions()
	if len(failed) != 2 || failed[0].Name.View != "over" || failed[0].RootCause == nil || failed[0].RootCause.View != "two" ||
		failed[1].Name.View != "two" || failed[1].Stage != registry.StageBuild || !strings.Contains(failed[1].Reason, "two.csv") || strings.Contains(failed[1].Reason, dir) {
		t.Fatalf("%+v", failed)
	}
	ask := func(sql, want string) {
		t.Helper()
		result, err := s.Query(ctx, QueryRequest{SQL: sql})
		if a := readAll(t, result, err); a.one(t) != want || a.version != r.Current().Version() {
			t.Errorf("%s: %+v", sql, a)
		}
	}
	ask("SELECT sum(a) FROM one", "1")
	ask("FROM other", "3")
	for _, gone := range []string{"FROM two", "FROM over"} {
		if _, err := s.Query(ctx, QueryRequest{SQL: gone}); err == nil {
			t.Errorf("%s: it is there", gone)
		}
	}

	// The file comes back: a retry is enough.
	vanish = func() {}
	if err := os.WriteFile(two, []byte("a,b\n4,x\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := r.Retry(ctx); err != nil || r.Current().Broken() > 0 {
		t.Fatal(err, r.FailedDefinitions())
	}
	ask("FROM over", "5")
}

// When a whole folder is away, one Apply says so of all that reads files alone.
func TestApplyNamesAllRefusedFiles(t *testing.T) {
	ctx := context.Background()
	var files []string
	var changes []registry.Apply
	for i := range 6 {
		files = append(files, fmt.Sprint("f", i, ".csv"))
		changes = append(changes, registry.Apply{Name: viewkeeper.MakeName("", fmt.Sprint("v", i)), Query: fmt.Sprintf("SELECT a FROM 'f%d.csv'", i)})
	}
	changes = append(changes, registry.Apply{Name: viewkeeper.MakeName("", "all"), Query: "SELECT a FROM main.v0 UNION ALL SELECT a FROM main.v5"},
		registry.Apply{Name: viewkeeper.MakeName("", "fine"), Query: "SELECT 1 AS a"})
	dir := lakeWith(t, files...)
	s := openTestServer(t, Options{LakeDirs: []string{dir}})
	if err := s.Apply(ctx, 1, false, []registry.Apply{{Name: viewkeeper.MakeName("", "v0"), Query: "SELECT 7 AS a"}}); err != nil {
		t.Fatal(err)
	}
	for _, f := range files[1:] {
		os.Remove(filepath.Join(dir, f))
	}
	err := s.Apply(ctx, 2, false, changes)
	refused := registry.AsRefused(err)
	if refused == nil {
		t.Fatal(err)
	}
	var names []string
	for _, r := range refused.Refused {
		names = append(names, r.Name.View)
	}
	if slices.Sort(names); strings.Join(names, " ") != "v1 v2 v3 v4 v5" {
		t.Errorf("refused: %v", refused)
	}
	// And nothing of it was applied.
	r, err := s.Query(ctx, QueryRequest{SQL: "FROM v0"})
	if a := readAll(t, r, err); a.one(t) != "7" || a.version != 1 {
		t.Fatal(a)
	}
}

// Mistakes after which the engine goes on are all told at once; those of the gate
// come before the engine is asked; trouble of the engine's own is no refusal.
func TestWhatIsARefusal(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{})
	name := func(n string) viewkeeper.Name { return viewkeeper.MakeName("", n) }
	err := s.Apply(ctx, 1, false, []registry.Apply{
		{Name: name("a"), Query: "SELECT nope FROM main.nowhere"}, {Name: name("b"), Query: "SELECT 1 AS x"}, {Name: name("c"), Query: "SELECT 1 +"},
	})
	if e := registry.AsRefused(err); e == nil || len(e.Refused) != 2 || e.Refused[0].Name != name("a") || e.Refused[1].Name != name("c") {
		t.Error(err)
	}
	err = s.Apply(ctx, 1, false, []registry.Apply{{Name: name("a"), Query: "SELECT a FROM 'no.csv'"}, {Name: name("b"), Query: "SELECT 1 AS x"}})
	if e := registry.AsRefused(err); e == nil || len(e.Refused) != 1 || !strings.Contains(e.Error(), "main.a could not be applied: ") {
		t.Error(err)
	}
	over, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.Apply(over, 1, false, []registry.Apply{{Name: name("b"), Query: "SELECT 1 AS x"}}); !errors.Is(err, context.Canceled) || registry.AsRefused(err) != nil {
		t.Error(err)
	}
	if err := s.Apply(ctx, 1, false, []registry.Apply{{Name: name("b"), Query: "SELECT 1 AS x"}}); err != nil {
		t.Error(err)
	}
}

// No memory at BEGIN or COMMIT is no fault of what is applied: the engine is lost, and
// the next one is given the same.
func TestAnApplyThatFindsNoMemory(t *testing.T) {
	for _, kind := range []string{"Out of Memory", "FATAL", "INTERNAL"} {
		if err := ownTrouble(fmt.Errorf("at the commit: %w", &engineError{Type: kind, Message: "failed"})); registry.AsLost(err) == nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if err := ownTrouble(&engineError{Type: "Catalog"}); registry.AsLost(err) != nil {
		t.Error(err)
	}
	if err := ownTrouble(nil); err != nil {
		t.Error(err)
	}
}
