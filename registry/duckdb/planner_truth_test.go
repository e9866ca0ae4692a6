package duckdb

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// scriptQueries gives the queries of the scripts in testdata, those of the command
// cmd only.
func scriptQueries(t *testing.T, dir, cmd string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", dir, "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	var out []string
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range strings.Split("\n"+string(text), "\n"+cmd+"\n")[1:] {
			query, _, ok := strings.Cut(block, "\n----")
			if !ok {
				t.Fatalf("%s: a block without an end", f)
			}
			out = append(out, query)
		}
	}
	return out
}

func openTestPlanner(t testing.TB) *Planner {
	t.Helper()
	base, err := os.ReadFile("testdata/base.sql")
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(context.Background(), Options{BaseSQL: string(base), LakeDirs: []string{"testdata/lake"}, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	return p
}

// TestReferencesAreTrue compares what the gate says that a query reads with the
// truth: what the engine can't bind it without. For every relation there is, the
// relation is renamed within a transaction, and the query must fail to bind
// exactly when the gate says that it reads it, be it through a macro or a view of
// the base.
func TestReferencesAreTrue(t *testing.T) {
	p := openTestPlanner(t)
	ctx := context.Background()
	truth := &truth{t: t, planner: p}
	queries := append(scriptQueries(t, "parse", "parse"), truthQueries...)
	checked := 0
	for _, q := range queries {
		w, refusal, err := p.gate.walk(ctx, q, forDefinition)
		if err != nil {
			t.Fatal(err)
		}
		if refusal != nil {
			continue
		}
		w.finish()
		text, _ := withFullPaths(w.text, w.files)
		if st, err := p.scratch.conn.prepare(ctx, text); err != nil {
			continue // it reads what is not there; the scripts say so
		} else {
			st.close()
		}
		checked++
		claimed := map[viewkeeper.Name]bool{}
		for _, r := range w.out.References {
			if !r.Unused {
				claimed[viewkeeper.MakeName(r.Schema, r.View)] = true
			}
		}
		if claimed[viewkeeper.MakeName("", "clock2")] {
			claimed[viewkeeper.MakeName("", "clock")] = true // a view of the base over another
		}
		// A schema put before each name at its place changes nothing.
		if qualified, err := p.scratch.conn.prepare(ctx, qualify(text, w.out.References)); err != nil {
			t.Errorf("%s\n  qualified: %v", q, err)
		} else {
			qualified.close()
		}
		real := truth.reads(text)
		for n := range p.gate.base.relations {
			if claimed[n] != real[n] {
				t.Errorf("%s\n  %s: the gate says %v, the engine %v", q, n, claimed[n], real[n])
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d queries were checked", checked)
	}
}

// qualify does what the registry does before it has a query bound. Files come
// behind the last name in the queries that have both.
func qualify(text string, refs []registry.TableRef) string {
	var edits []ddl.Edit
	for _, r := range refs {
		if r.At >= 0 && r.Schema == "" && r.End <= len(text) {
			edits = append(edits, ddl.Edit{At: r.At, End: r.At, Text: `"main".`})
		}
	}
	out, _ := ddl.ApplyEdits(text, edits)
	return out
}

type truth struct {
	t       *testing.T
	planner *Planner
}

// reads gives the relations that a text can't be bound without.
func (tr *truth) reads(text string) map[viewkeeper.Name]bool {
	tr.t.Helper()
	c := tr.planner.scratch.conn
	ctx := context.Background()
	must := func(sql string) {
		tr.t.Helper()
		if err := c.exec(ctx, sql); err != nil {
			tr.t.Fatalf("%s: %v", sql, err)
		}
	}
	out := map[viewkeeper.Name]bool{}
	for n := range tr.planner.gate.base.relations {
		must("BEGIN")
		kind := "TABLE"
		if slices.ContainsFunc(tr.planner.instance.base, func(s baseStatement) bool { return s.kind == "view" && s.name == n }) {
			kind = "VIEW"
		}
		must(fmt.Sprintf("ALTER %s %s RENAME TO hidden", kind, n.SQL()))
		st, err := c.prepare(ctx, text)
		if err != nil {
			out[n] = true
		} else {
			st.close()
		}
		must("ROLLBACK")
	}
	return out
}

var truthQueries = []string{
	"FROM clock2",
	"WITH RECURSIVE x AS (SELECT a FROM u UNION SELECT a + 1 FROM x WHERE a < 3) FROM x",
	"WITH RECURSIVE u AS (SELECT a, d FROM u UNION SELECT a + 1, d FROM u WHERE a < 3) FROM u",
	"WITH u AS (FROM t) SELECT cnt2()",
	"WITH u AS (SELECT 1 x) SELECT * FROM tm(2), main.u",
	"WITH x AS (SELECT cnt() n) FROM x",
	"WITH a AS (FROM t), b AS (FROM a), c AS (FROM b) SELECT (SELECT max(a) FROM c) FROM b",
	"WITH t AS (FROM t), t2 AS (FROM t) FROM t2",
	"WITH x AS (FROM u) SELECT * FROM t WHERE a IN (FROM x SELECT d) AND EXISTS (WITH x AS (FROM s2.t) FROM x)",
	"SELECT * FROM (WITH t AS (SELECT 1 a) FROM t) q, t",
	"(WITH t AS (FROM u) FROM t SELECT a) UNION ALL (FROM t SELECT a)",
	"WITH t AS (FROM u) (SELECT a FROM t UNION ALL SELECT a FROM main.t)",
	"SELECT * FROM t, LATERAL (WITH u AS (SELECT t.a + 1 AS n) FROM u)",
	"SELECT (WITH x AS (SELECT d FROM u WHERE u.a = t.a) SELECT max(d) FROM x) FROM t",
	"SELECT list_transform([1], lambda x: x + (SELECT count(*) FROM sales)) FROM range(3)",
	"FROM (PIVOT (SELECT a, d FROM u) ON d IN (1, 2) USING max((SELECT max(z) FROM s2.t)))",
	"FROM (UNPIVOT (FROM u) ON a, d)",
	"SELECT a.b FROM (SELECT u AS a, 1 AS b FROM u) q(a, b) LIMIT 0",
	"SELECT COLUMNS(c -> c = 'a') FROM t",
	"SELECT * FROM t JOIN u ON t.a = (SELECT max(amt) FROM sales)",
	"SELECT sum(a) FILTER (WHERE EXISTS (FROM s2.t)) FROM u GROUP BY ROLLUP(d) HAVING count(*) > (SELECT count(*) FROM sales)",
	"SELECT a FROM u WINDOW w AS (PARTITION BY (SELECT max(z) FROM s2.t)) QUALIFY row_number() OVER w = 1",
	"SELECT a FROM u WINDOW w AS (PARTITION BY (SELECT max(z) FROM s2.t))",
	"SELECT CASE (SELECT max(z) FROM s2.t) WHEN 1 THEN (SELECT count(*) FROM u) END",
	"SELECT a FROM t INTERSECT SELECT a FROM u EXCEPT SELECT z FROM s2.t UNION SELECT amt FROM sales",
	"SELECT * FROM t NATURAL JOIN u ORDER BY (SELECT 1 FROM sales LIMIT 1)",
	"SELECT a FROM t WHERE (a, a) IN (SELECT a, d FROM u)",
	"SELECT plus(1, y := (SELECT max(z) FROM s2.t))",
	"SELECT addone((SELECT max(z) FROM s2.t))",
	"FROM tm((SELECT 3))",
	"VALUES ((SELECT max(z) FROM s2.t)), (1)",
	"SELECT * EXCLUDE (a) REPLACE ((SELECT max(z) FROM s2.t) AS b) FROM t",
	"FROM range((SELECT 3))",
	"SELECT unnest([(SELECT max(z) FROM s2.t)])",
	"SELECT MAP {'k': (SELECT max(z) FROM s2.t)}, {'a': (SELECT count(*) FROM u)}, ARRAY(SELECT amt FROM sales)",
	"FROM t SEMI JOIN u USING (a) ANTI JOIN sales ON amt = a",
	"FROM t POSITIONAL JOIN u",
	"SELECT * FROM t ASOF JOIN (SELECT a, ts FROM t) y USING (ts)",
	"FROM listing() SELECT a",
	"SELECT x.a FROM x_files x JOIN 'x.parquet' y USING (a)",
}

// TestColumnsAreTrue compares the columns of a bound query with those of a real
// view made of it.
func TestColumnsAreTrue(t *testing.T) {
	p := openTestPlanner(t)
	ctx := context.Background()
	queries := append(scriptQueries(t, "bind", "bind"), scriptQueries(t, "parse", "parse")...)
	queries = append(queries, truthQueries...)
	queries = append(queries, "SELECT a, a, A FROM t", `SELECT a, a AS a_1, a FROM t`, `SELECT a AS "A", a, a AS "a_1", a AS A_1 FROM t`,
		"SELECT 1 x, 'y' AS X, 2.5 AS x_1, 3 AS x", "SELECT x.*, y.* FROM u x, u y", "SELECT a + 1, a + 1, A + 1 FROM t",
		"SELECT 'x'::JSON j, ['x'::JSON] js, {'j': 'x'::JSON} sj, 1::DECIMAL(5,2)[] ds, MAP {'a': [1]} m, '1'::BIT b, 1::BIGNUM n, 1::VARIANT v, 'a'::s2.size",
		"SELECT INTERVAL 1 DAY i, TIME '10:00' t, TIMETZ '10:00+01' tz, TIMESTAMP_NS '2020-01-01' ns, array_value(1, 2) arr, [[1]] ll, union_value(k := 1) un")
	checked := 0
	for _, q := range queries {
		got, err := p.Bind(ctx, nil, []registry.Query{{Text: q}})
		if err != nil {
			t.Fatal(err)
		}
		if got[0].Err != nil {
			continue
		}
		checked++
		w, _, err := p.gate.walk(ctx, q, forDefinition)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := withFullPaths(w.text, w.files)
		c := p.scratch.conn
		if err := c.exec(ctx, "CREATE OR REPLACE VIEW main.probe AS "+text); err != nil {
			t.Errorf("%s: binds, but is no view: %v", q, err)
			continue
		}
		want, err := describe(ctx, c, "main.probe")
		if err != nil {
			t.Fatal(err)
		}
		for i := range got[0].Columns {
			got[0].Columns[i].Type = strings.ReplaceAll(got[0].Columns[i].Type, untypedName, "INTEGER") // which DESCRIBE says
		}
		if !slices.Equal(got[0].Columns, want) {
			t.Errorf("%s\n  bound %v\n  view  %v", q, got[0].Columns, want)
		}
	}
	if checked < 120 {
		t.Errorf("only %d queries were checked", checked)
	}
}

// TestParquetTypes writes a relation of every type to a Parquet file and reads it
// back.
func TestParquetTypes(t *testing.T) {
	ctx := context.Background()
	i := &instance{}
	openUnlocked(t, i)
	c, err := i.connect()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.close(); i.close() })
	types := []string{"JSON", "BIT", "BIGNUM", "VARIANT", "TIME_NS", "GEOMETRY", "DECIMAL(4,1)", "DECIMAL(38,10)", "ENUM('a', 'b, c')",
		"INTEGER[]", "HUGEINT[]", "INTEGER[3]", "HUGEINT[2][]", "STRUCT(a HUGEINT, \"b c\" TIMESTAMP_S)", "MAP(VARCHAR, HUGEINT)", "UNION(k INTEGER, l HUGEINT)",
		"ENUM('x')[]", "STRUCT(INTEGER, HUGEINT)", untypedName, untypedName + "[]", "STRUCT(a STRUCT(b BIT[]))", "JSON[]"}
	for _, name := range typeNames {
		types = append(types, name)
	}
	slices.Sort(types)
	for n, typ := range types {
		file := quoteLiteral(filepath.Join(t.TempDir(), fmt.Sprint(n, ".parquet")))
		if err := c.exec(ctx, "COPY ("+emptyRelation([]viewkeeper.Column{{Name: "x", Type: typ}})+") TO "+file); err != nil {
			t.Errorf("%s: %v", typ, err)
			continue
		}
		got, err := describe(ctx, c, "FROM "+file)
		if err != nil {
			t.Fatal(err)
		}
		if want := parquetType(typ); got[0].Type != want {
			t.Errorf("%s comes back as %s, not %s", typ, got[0].Type, want)
		}
	}
}
