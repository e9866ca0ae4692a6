package registry_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// TestHidden: a definition that a base relation hides is broken, nobody reads it,
// and it can be got out of the way.
func TestHidden(t *testing.T) {
	rows := rowsOf(t, "CREATE VIEW u AS SELECT 1 AS x", "CREATE VIEW r AS SELECT a FROM u")
	for _, c := range []struct{ text, want string }{
		{"DROP VIEW u", "accepted: dropped main.u"},
		{"ALTER VIEW u RENAME TO free", "accepted: renamed main.u to main.free"},
		{"DROP VIEW u CASCADE", "accepted: dropped main.u"},
		{"COMMENT ON VIEW u IS 'hidden'", "accepted: commented on main.u"},
		{"CREATE OR REPLACE VIEW u AS SELECT 2 AS x", "refused NAME at 1:24: main.u is reserved: the base has a relation of that name; choose another name"},
	} {
		base, _ := newBase(t, quiet())
		catalog, err := registry.LoadCatalog(t.Context(), base, rows, registry.CatalogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := catalog.Judge(t.Context(), statement(9, c.text))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := strings.Cut(show(out), "\n"); got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
		if r, _ := catalog.Snapshot().Definition(viewkeeper.MakeName("", "r")); !r.OK() || r.Row.Version != 2 {
			t.Errorf("%s: r is %+v", c.text, r)
		}
	}
}

// TestRecordSize: what a statement makes of the catalog must fit one record, also
// when the statement itself is small.
func TestRecordSize(t *testing.T) {
	var texts []string
	filler := strings.Repeat("x", 1000)
	texts = append(texts, "CREATE VIEW v AS SELECT a FROM u")
	for i := range 50 {
		texts = append(texts, fmt.Sprintf("CREATE VIEW r%d AS SELECT a, '%s' AS filler FROM v", i, filler))
	}
	base, _ := newBase(t, registry.BaseOptions{Limits: registry.Limits{Record: 100_000}})
	catalog, err := registry.LoadCatalog(t.Context(), base, rowsOf(t, texts...), registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := catalog.Judge(t.Context(), statement(100, "ALTER VIEW v RENAME TO w"))
	if err != nil || out.Decision.Code != viewkeeper.CodeTooLarge || len(out.Rows) > 0 {
		t.Fatalf("%v %+v", err, out)
	}
	if out, err = catalog.Judge(t.Context(), statement(101, "COMMENT ON VIEW v IS 'small'")); err != nil || out.Decision.Verdict != viewkeeper.Accepted {
		t.Fatalf("%v %+v", err, out)
	}
}

// TestManyOutputs: beyond a hundred dependents whose output changes, only names.
func TestManyOutputs(t *testing.T) {
	texts := []string{"CREATE VIEW v AS SELECT a FROM u"}
	for i := range 150 {
		texts = append(texts, fmt.Sprintf("CREATE VIEW r%03d AS SELECT * FROM v", i))
	}
	base, _ := newBase(t, quiet())
	catalog, err := registry.LoadCatalog(t.Context(), base, rowsOf(t, texts...), registry.CatalogOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out, err := catalog.Judge(t.Context(), statement(200, "CREATE OR REPLACE VIEW v AS SELECT a, d FROM u"))
	if err != nil {
		t.Fatal(err)
	}
	d := out.Decision
	if len(d.Changed) != 151 || len(d.Changed[100].ColumnsAfter) != 2 || len(d.Changed[101].ColumnsAfter) != 0 || !strings.Contains(d.Message, "the output of 150 other definitions changes") {
		t.Errorf("%d changes, %d and %d columns: %s", len(d.Changed), len(d.Changed[100].ColumnsAfter), len(d.Changed[101].ColumnsAfter), d.Message)
	}
}

// TestRowsKeep: what survives a change of a row. The comment and the ID survive a
// replace and a rename, fields of a newer program survive everything.
func TestRowsKeep(t *testing.T) {
	base, _ := newBase(t, quiet())
	rows := rowsOf(t, "CREATE VIEW v AS SELECT a FROM u", "CREATE VIEW r AS SELECT a FROM v")
	comment := "hello"
	for i := range rows {
		rows[i].Extra, rows[i].Format = map[string]json.RawMessage{"later": json.RawMessage(`1`)}, 7
		rows[i].Definition.Comment = &comment
	}
	catalog, err := registry.LoadCatalog(t.Context(), base, rows, registry.CatalogOptions{VersionBase: 1000, Epoch: 5})
	if err != nil {
		t.Fatal(err)
	}
	for offset, text := range []string{"CREATE OR REPLACE VIEW v AS SELECT a, d FROM u", "ALTER VIEW v RENAME TO w", "DROP VIEW r"} {
		out, err := catalog.Judge(t.Context(), statement(int64(offset), text))
		if err != nil || out.Decision.Verdict != viewkeeper.Accepted {
			t.Fatalf("%v %+v", err, out)
		}
		for _, r := range out.Rows {
			if r.Version != viewkeeper.Version(1001+offset) || r.Epoch != 5 {
				t.Errorf("%s: %s at version %s, epoch %s", text, r.Name, r.Version, r.Epoch)
			}
			if !r.Live() {
				continue
			}
			if d := r.Definition; d.ID > 2 || d.Comment == nil || d.Name != r.Name || r.Format != 7 || string(r.Extra["later"]) != "1" {
				t.Errorf("%s: row %+v, definition %+v", text, r, d)
			}
		}
	}
}
