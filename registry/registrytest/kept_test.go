package registrytest_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

type keptAnswers map[[32]byte]string

func (k keptAnswers) Lookup(key [32]byte) string { return k[key] }

// boundTexts counts what the engine plans.
type boundTexts struct {
	registry.Planner
	parsed, bound int
}

func (b *boundTexts) Parse(ctx context.Context, q []registry.Query) ([]registry.Parsed, error) {
	b.parsed += len(q)
	return b.Planner.Parse(ctx, q)
}

func (b *boundTexts) Bind(ctx context.Context, s []registry.Stub, q []registry.Query) ([]registry.Bound, error) {
	b.bound += len(q)
	return b.Planner.Bind(ctx, s, q)
}

// TestKeptAnswersAndFiles: what reads a file is planned at every start, by itself or
// through a macro of the base, so that a file that has gone, or has another shape, is
// found; what reads only that is planned when it gives something else.
func TestKeptAnswersAndFiles(t *testing.T) {
	lake := t.TempDir()
	file := filepath.Join(lake, "a.csv")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("id,name\n1,one\n")
	if err := os.WriteFile(filepath.Join(lake, "b.csv"), []byte("id\n1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	opts := duckdb.Options{LakeDirs: []string{lake}, BaseSQL: "CREATE TABLE t (a INTEGER); CREATE MACRO rows() AS TABLE SELECT * FROM 'b.csv';"}
	var rows []viewkeeper.Row
	for i, sql := range []string{
		"CREATE VIEW plain AS SELECT a FROM t", "CREATE VIEW direct AS SELECT * FROM 'a.csv'", "CREATE VIEW called AS SELECT * FROM rows()",
		"CREATE VIEW over AS SELECT * FROM direct",
	} {
		name := viewkeeper.MakeName("", []string{"plain", "direct", "called", "over"}[i])
		rows = append(rows, viewkeeper.Row{Name: name, Version: 1, Definition: &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: sql, ID: 1}})
	}
	load := func(kept keptAnswers) (*registry.Factory, *boundTexts) {
		t.Helper()
		engine, err := duckdb.Open(t.Context(), opts)
		if err != nil {
			t.Fatal(err)
		}
		defer engine.Close()
		planner := &boundTexts{Planner: engine}
		base, err := registry.NewBase(t.Context(), planner, registry.BaseOptions{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		r := registry.New(base, registry.RegistryOptions{})
		r.Recall(kept)
		if err := r.Reload(t.Context(), 1, rows); err != nil {
			t.Fatal(err)
		}
		return r.Current(), planner
	}
	kept := keptAnswers{}
	first, planner := load(kept)
	if first.Broken() != 0 || planner.parsed != 4 || planner.bound != 4 {
		t.Fatalf("%d broken, %d parsed, %d planned", first.Broken(), planner.parsed, planner.bound)
	}
	for key, answer := range first.Answers() {
		kept[key] = string(answer)
	}
	check := func(what string, broken, bound int) *registry.Factory {
		t.Helper()
		f, planner := load(kept)
		if f.Broken() != broken || planner.parsed != 0 || planner.bound != bound {
			t.Errorf("%s: %d broken, %d parsed, %d planned; want %d, 0, %d", what, f.Broken(), planner.parsed, planner.bound, broken, bound)
		}
		return f
	}
	if f := check("the same file", 0, 2); f.BuildDigest() != first.BuildDigest() {
		t.Error("another factory")
	}
	write("id,name,more\n1,one,2\n")
	f := check("a file with another shape", 0, 3)
	if d, _ := f.Definition(viewkeeper.MakeName("", "over")); len(d.Columns) != 3 {
		t.Errorf("over gives %v", d.Columns)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	check("no file", 2, 2)
}
