package duckdb

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

func TestQueryForms(t *testing.T) {
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i INTEGER, s VARCHAR); INSERT INTO t VALUES (1, 'x')"})
	for _, sql := range []string{
		"SELECT 1", "FROM t", "TABLE t", "VALUES (1), (2)", "WITH a AS (SELECT 1) FROM a", "(SELECT 1) UNION ALL (SELECT 2)",
		"DESCRIBE t", "DESC t", "DESCRIBE SELECT 1", "SHOW TABLES", "SHOW ALL TABLES", "SHOW t", "SHOW TABLES FROM main", "SUMMARIZE t",
		"EXPLAIN SELECT 1", "EXPLAIN ANALYZE FROM t", "explain (FORMAT json) FROM t", "EXPLAIN (ANALYZE, FORMAT json) FROM t", "EXPLAIN (SELECT 1)",
		"SELECT now(), current_date, random()", "PIVOT t ON s IN ('x') USING sum(i)",
		"-- a comment\nSELECT 1 -- and one at the end", "SELECT 1;", "SELECT\u00a01",
	} {
		r, err := s.Query(context.Background(), QueryRequest{SQL: sql})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		readAll(t, r, err)
	}
}

func TestRefusedQueries(t *testing.T) {
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i INTEGER); INSERT INTO t VALUES (1)"})
	for _, c := range []struct {
		sql  string
		code viewkeeper.Code
	}{
		{"CREATE TABLE x (i INTEGER)", viewkeeper.CodeNotOneQuery},
		{"CREATE VIEW x AS SELECT 1", viewkeeper.CodeNotOneQuery},
		{"INSERT INTO t VALUES (2)", viewkeeper.CodeNotOneQuery},
		{"DROP TABLE t", viewkeeper.CodeNotOneQuery},
		{"EXPLAIN ANALYZE INSERT INTO t VALUES (2)", viewkeeper.CodeNotOneQuery},
		{"EXPLAIN (ANALYZE) DELETE FROM t", viewkeeper.CodeNotOneQuery},
		{"SET threads = 1", viewkeeper.CodeNotOneQuery},
		{"PRAGMA table_info('t')", viewkeeper.CodeNotOneQuery},
		{"COPY t TO '/tmp/x'", viewkeeper.CodeNotOneQuery},
		{"CALL range(1)", viewkeeper.CodeNotOneQuery},
		{"COMMIT", viewkeeper.CodeNotOneQuery},
		{"EXECUTE x", viewkeeper.CodeNotOneQuery},
		{"CHECKPOINT", viewkeeper.CodeNotOneQuery},
		{"SELECT 1; SELECT 2", viewkeeper.CodeNotOneQuery},
		{"SELECT 1; DROP TABLE t", viewkeeper.CodeNotOneQuery},
		{"EXPLAIN SELECT 1; DROP TABLE t", viewkeeper.CodeNotOneQuery},
		{"", viewkeeper.CodeNotOneQuery},
		{"-- nothing", viewkeeper.CodeNotOneQuery},
		{"SELECT 1\x00; DROP TABLE t", viewkeeper.CodeSyntax},
		{"SELECT '\xff'", viewkeeper.CodeSyntax},
		{"SELECT ?", viewkeeper.CodeNotAllowed},
		{"SELECT $1", viewkeeper.CodeNotAllowed},
		{"FROM query('SELECT 1')", viewkeeper.CodeNotAllowed},
		{"FROM read_csv('/etc/passwd')", viewkeeper.CodeNotAllowed},
		{"SELECT write_log('x')", viewkeeper.CodeNotAllowed},
		{"EXPLAIN ANALYZE SELECT write_log('x')", viewkeeper.CodeNotAllowed},
		{"FROM (DESCRIBE SELECT write_log('x'))", viewkeeper.CodeNotAllowed},
		{strings.Repeat("SELECT max(i) AS i FROM (", 13) + "FROM t" + strings.Repeat(")", 13), viewkeeper.CodeComplexity},
		{"SELECT " + strings.Repeat("- ", 30000) + "1", viewkeeper.CodeComplexity},
		{"SELECT " + strings.Repeat("NOT ", 30000) + "true", viewkeeper.CodeComplexity},
	} {
		_, err := s.Query(context.Background(), QueryRequest{SQL: c.sql})
		var plan *registry.PlanError
		if !errors.As(err, &plan) || plan.Code != c.code {
			t.Errorf("%q: %v, want %s", c.sql, err, c.code)
		}
	}
	r, err := s.Query(context.Background(), QueryRequest{SQL: "SELECT count(*) FROM t"})
	if a := readAll(t, r, err); a.one(t) != "1" {
		t.Fatal(a)
	}
}

// What is refused in a query is not said of a view.
func TestQueriesAreNotCalledViews(t *testing.T) {
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i INTEGER, s VARCHAR)"})
	for _, sql := range []string{"PIVOT t ON s USING sum(i)", "SELECT 1; SELECT 2", "SELECT ?"} {
		_, err := s.Query(context.Background(), QueryRequest{SQL: sql})
		var plan *registry.PlanError
		if !errors.As(err, &plan) || strings.Contains(plan.Message, "view") {
			t.Errorf("%q: %v", sql, err)
		}
	}
}

// A mistake is shown at its place in the text as it was submitted.
func TestPositionOfAMistake(t *testing.T) {
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i INTEGER)"})
	for _, sql := range []string{
		"SELECT @nope FROM t",
		"/* é */ SELECT\n\t@nope FROM t",
		"SELECT\u00a0\u2003@nope FROM t",
		"EXPLAIN ANALYZE SELECT @nope FROM t",
		"explain (FORMAT json) -- é\nSELECT @nope FROM t",
		"DESCRIBE SELECT @nope FROM t",
		"SELECT 1 FROM t WHERE @frobnicate(i)",
		"SELECT * FROM @nowhere",
		"SELECT 1 +@",
	} {
		at := strings.IndexByte(sql, '@')
		sql = strings.Replace(sql, "@", "", 1)
		_, err := s.Query(context.Background(), QueryRequest{SQL: sql})
		var plan *registry.PlanError
		if !errors.As(err, &plan) || plan.At != at && !strings.HasSuffix(sql, "+") {
			t.Errorf("%q: %v at %+v, want %d", sql, err, plan, at)
		}
	}
}

// Paths are those under the lake folders, relative ones from the first, whatever
// folder the process runs in; a mistake keeps its place, and the lake's own place on
// this node's disk is nobody's business.
func TestFilesOfTheLake(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{LakeDirs: []string{"testdata/lake"}})
	err := s.Apply(ctx, 1, false, []registry.Apply{
		{Name: viewkeeper.MakeName("", "x"), Query: "SELECT a FROM 'x.parquet'"},
		{Name: viewkeeper.MakeName("", "y"), Query: "SELECT count(*) AS n FROM read_parquet(['x.parquet', 'dir/y.parquet'], union_by_name = true)"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, sql := range []string{
		"SELECT count(*) > 0 FROM 'x.parquet'",
		"SELECT count(*) > 0 FROM x",
		"SELECT n > 0 FROM y",
	} {
		r, err := s.Query(ctx, QueryRequest{SQL: sql})
		if got := readAll(t, r, err).one(t); got != "true" {
			t.Errorf("%s: %s", sql, got)
		}
	}
	r, err := s.Query(ctx, QueryRequest{SQL: "EXPLAIN ANALYZE SELECT a FROM 'dir/../x.parquet'"})
	readAll(t, r, err)

	for sql, want := range map[string]struct {
		code viewkeeper.Code
		at   string
	}{
		"SELECT a, nope FROM 'x.parquet'":                              {viewkeeper.CodeBind, "nope"},
		"SELECT a FROM 'x.parquet' x WHERE x.nope > 0":                 {viewkeeper.CodeBind, "x.nope"},
		"EXPLAIN SELECT a FROM 'x.parquet' WHERE nope":                 {viewkeeper.CodeBind, "nope"},
		"SELECT 'x.parquet', a FROM 'x.parquet', nowhere":              {viewkeeper.CodeBind, "nowhere"},
		"SELECT * FROM 'not-there.parquet'":                            {"", ""},
		"SELECT * FROM '../x.parquet'":                                 {viewkeeper.CodeNotAllowed, "'../x"},
		"EXPLAIN SELECT * FROM read_csv('/etc/hostname')":              {viewkeeper.CodeNotAllowed, "'/etc"},
		"SELECT a FROM 'x.parquet' WHERE (a::VARCHAR || 'z')::INT > 0": {CodeExecution, ""},
	} {
		r, err := s.Query(ctx, QueryRequest{SQL: sql})
		if err == nil {
			_, err = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}
		var plan *registry.PlanError
		if !errors.As(err, &plan) || want.code != "" && plan.Code != want.code || want.at != "" && plan.At != strings.Index(sql, want.at) {
			t.Errorf("%s: %v, %+v", sql, err, plan)
			continue
		}
		if strings.Contains(plan.Message, "testdata") {
			t.Errorf("%s: %v", sql, err)
		}
		t.Logf("%s: %v at %d", sql, err, plan.At)
	}
}
