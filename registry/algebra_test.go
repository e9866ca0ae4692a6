package registry_test

import (
	"context"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// merging is a planner that also answers for merge queries, as answer says.
type merging struct {
	registry.Planner
	asked  []registry.Merge
	answer func(registry.Merge) (registry.Algebra, error)
}

func (m *merging) MergeTwice(ctx context.Context, merges []registry.Merge) ([]registry.Algebra, error) {
	m.asked = append(m.asked, merges...)
	out := make([]registry.Algebra, len(merges))
	for i := range merges {
		if m.answer == nil {
			continue
		}
		var err error
		if out[i], err = m.answer(merges[i]); err != nil {
			if registry.AsLost(err) != nil {
				m.Planner.Reset(context.WithoutCancel(ctx))
			}
			return nil, err
		}
	}
	return out, nil
}

func materialized(name, merge string) string {
	return "CREATE OR REPLACE MATERIALIZED VIEW " + name + ` WITH (extract_query = 'SELECT a, ts FROM t WHERE ts >= {begin} AND ts < {end}',
	count_src_query = 'SELECT count(*) AS count FROM t WHERE ts >= {begin} AND ts < {end}', time_column = 'ts', merge_partitions_query = '` + merge + "')"
}

func mergingCatalog(t *testing.T) (*registry.Base, *registry.Catalog, *merging) {
	t.Helper()
	m := &merging{Planner: registrytest.NewModel(registrytest.BaseRelations()...)}
	base, err := registry.NewBase(t.Context(), m, quiet())
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return base, catalog, m
}

// TestMergeTwiceIsAsked: once for each materialized definition that a statement gives
// and that is in order, and for nothing else.
func TestMergeTwiceIsAsked(t *testing.T) {
	base, catalog, m := mergingCatalog(t)
	for i, c := range []struct{ text, asks string }{
		{"CREATE VIEW v AS SELECT a, ts FROM t", ""},
		{materialized("m", "SELECT a, ts FROM {source}"), "main.__source_m"},
		{materialized("m", "SELECT a, ts FROM {source}"), ""}, // unchanged
		{materialized("x", "SELECT a FROM {source}"), ""},     // MERGE_SCHEMA
		{materialized("x", "SELECT s.a, s.ts FROM {source} AS s, u"), ""},
		{"BEGIN; " + materialized("s.y", "SELECT ts, a FROM {source}") + "; COMMIT", ""},
		{"BEGIN; " + materialized("s.y", "SELECT a, ts FROM {source}") + "; " + materialized("z", "SELECT a, ts FROM {source}") + "; COMMIT", "s.__source_y main.__source_z"},
		{"CREATE OR REPLACE VIEW v AS SELECT a, ts, b FROM t", ""},
		{"ALTER VIEW m RENAME TO n", ""},
		{"COMMENT ON VIEW n IS 'text'", ""},
		{"DROP VIEW v", ""},
	} {
		m.asked = nil
		if _, err := catalog.Judge(t.Context(), statement(int64(i), c.text)); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, q := range m.asked {
			got = append(got, q.Source.String())
			if len(q.Columns) != 2 || !strings.Contains(q.Query.Text, q.Source.View) {
				t.Errorf("%s: asked %+v", c.text, q)
			}
		}
		if strings.Join(got, " ") != c.asks {
			t.Errorf("%s: asked about %q, want %q", c.text, got, c.asks)
		}
	}
	m.asked = nil
	if _, err := registry.LoadCatalog(t.Context(), base, catalog.Snapshot().Rows(), registry.CatalogOptions{}); err != nil || len(m.asked) > 0 {
		t.Errorf("a load asked about %v (%v)", m.asked, err)
	}
}

// TestMergeTwiceAnswers: only a counterexample refuses, and it is shown.
func TestMergeTwiceAnswers(t *testing.T) {
	_, catalog, m := mergingCatalog(t)
	for _, c := range []struct {
		answer  registry.Algebra
		code    viewkeeper.Code
		message string
	}{
		{registry.Algebra{}, "", ""},
		{registry.Algebra{Unknown: "the query has a join"}, "", ""},
		{registry.Algebra{Counter: &registry.Counterexample{Once: []string{"2", "x"}, Twice: []string{"1", "x"}, Changed: []int{0}}},
			viewkeeper.CodeMergeAlgebra, "main.m: merge_partitions_query can't merge what it merged: of made-up rows it makes (a 2, ts x), and of that row, merged again, (a 1, ts x); partitions are merged more than once, so combine what each column holds already: over a count say sum(a), not count(*)"},
		{registry.Algebra{Counter: &registry.Counterexample{Once: []string{"2", "x"}}},
			viewkeeper.CodeMergeAlgebra, "main.m: merge_partitions_query can't merge what it merged: of made-up rows it makes (a 2, ts x), and of that row, merged again, nothing; partitions are merged more than once, so give back as it is what was merged before"},
		{registry.Algebra{Counter: &registry.Counterexample{Twice: []string{"2", "x"}}},
			viewkeeper.CodeMergeAlgebra, "main.m: merge_partitions_query can't merge what it merged: what it makes of made-up rows gains the row (a 2, ts x) when it is merged again; partitions are merged more than once, so give back as it is what was merged before"},
	} {
		m.answer = func(registry.Merge) (registry.Algebra, error) { return c.answer, nil }
		text := materialized("m", "SELECT a, ts FROM {source}")
		out, err := catalog.Check(t.Context(), statement(0, text))
		if err != nil {
			t.Fatal(err)
		}
		d := out.Decision
		if d.Code != c.code || c.code != "" && (d.Message != c.message || d.Position == nil || d.Position.Offset != strings.LastIndex(text, "'SELECT")) {
			t.Errorf("%+v: %s %s at %v", c.answer, d.Code, d.Message, d.Position)
		}
	}
}

// TestMergeTwiceLoses: an engine that a merge query takes down twice refuses it, one
// that is lost once does not, and the catalog goes on.
func TestMergeTwiceLoses(t *testing.T) {
	_, catalog, m := mergingCatalog(t)
	losses := 0
	m.answer = func(q registry.Merge) (registry.Algebra, error) {
		if q.Source.View == "__source_killer" || losses == 0 {
			losses++
			return registry.Algebra{}, &registry.LostError{Detail: "killed"}
		}
		return registry.Algebra{}, nil
	}
	for i, c := range []struct {
		text string
		code viewkeeper.Code
	}{
		{materialized("once", "SELECT a, ts FROM {source}"), ""},
		{materialized("killer", "SELECT a, ts FROM {source}"), viewkeeper.CodeEngineKilled},
		{"CREATE VIEW r AS SELECT a FROM once", ""},
		{"CREATE VIEW q AS SELECT a FROM killer", viewkeeper.CodeBind},
	} {
		out, err := catalog.Judge(t.Context(), statement(int64(i), c.text))
		if err != nil {
			t.Fatal(err)
		}
		if out.Decision.Code != c.code {
			t.Errorf("%s: %s %s", c.text, out.Decision.Code, out.Decision.Message)
		}
	}
	if losses != 3 {
		t.Errorf("the engine was lost %d times", losses)
	}
}
