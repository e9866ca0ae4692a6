package duckdb

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// What answers differently on each node, although the engine calls it consistent, is
// refused in a client's query as well, wherever it stands; the functions of time and
// chance, and those that show the catalog, are a query's to use.
func TestLiarsInQueries(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i INTEGER); CREATE MACRO threads() AS current_setting('threads'); CREATE MACRO every() AS TABLE FROM duckdb_settings()"})
	for _, sql := range []string{
		"SELECT current_setting('threads')", "SELECT main.current_setting('threads')", "SELECT system.main.current_setting('threads')",
		"SELECT CURRENT_SETTING('allowed_directories')", "SELECT ('threads').current_setting()", "EXPLAIN SELECT current_setting('threads')",
		"SELECT 1 FROM t WHERE i = (SELECT current_setting('threads')::INT)", "WITH x AS (SELECT getvariable('x') AS v) FROM x", "DESCRIBE SELECT current_setting('threads')",
		"SELECT getvariable('x')", "SELECT version()", "SELECT getenv('HOME')", "SELECT list_transform([1], lambda x: current_setting('threads'))",
		"FROM duckdb_settings()", "FROM duckdb_secrets()", "FROM duckdb_variables()", "FROM duckdb_databases()", "FROM duckdb_logs()", "FROM duckdb_logs",
		"FROM duckdb_temporary_files()", "FROM duckdb_memory()", "FROM duckdb_extensions()", "FROM duckdb_prepared_statements()", "FROM pragma_version()",
		"FROM pragma_database_size()", "FROM pragma_user_agent()", "FROM glob('*')", "FROM pg_settings", "FROM pg_catalog.pg_settings", "SUMMARIZE pg_settings",
		"SELECT threads()", "FROM every()", "SELECT current_connection_id()", "SELECT current_query()",
	} {
		_, err := s.Query(ctx, QueryRequest{SQL: sql})
		var plan *registry.PlanError
		if !errors.As(err, &plan) || plan.Code != viewkeeper.CodeNotAllowed {
			t.Errorf("%s: %v", sql, err)
		}
	}
	for _, sql := range []string{
		"SELECT now(), random(), current_timestamp, age(TIMESTAMP '2020-01-01'), current_localtimestamp(), today()",
		"SELECT current_schema(), current_database(), current_schema, current_catalog", "SELECT * FROM duckdb_tables()", "FROM duckdb_columns()", "FROM duckdb_views",
		"FROM information_schema.tables", "FROM pg_catalog.pg_class", "FROM duckdb_functions() LIMIT 1", "FROM pragma_table_info('t')", "SHOW TABLES",
	} {
		r, err := s.Query(ctx, QueryRequest{SQL: sql})
		if err != nil {
			t.Errorf("%s: %v", sql, err)
			continue
		}
		readAll(t, r, err)
	}
}

// No text that a cast takes depends on the time: this engine reads 'epoch' and the
// infinities, which are constants, and none of PostgreSQL's now, today and
// tomorrow. When an engine reads them one day, a strict query must not.
func TestCastsDoNotDependOnTime(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{})
	types := []string{"DATE", "TIME", "TIMETZ", "TIMESTAMP", "TIMESTAMPTZ", "TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS", "INTERVAL"}
	for _, typ := range types {
		for _, word := range []string{"now", "NOW", " now ", "now()", "today", "today 10:00", "tomorrow", "yesterday", "current", "noon", "midnight", "allballs"} {
			for _, sql := range []string{"SELECT CAST('" + word + "' AS " + typ + ")", "SELECT v::" + typ + " FROM (VALUES ('" + word + "')) x(v)"} {
				r, err := s.Query(ctx, QueryRequest{SQL: sql})
				if err == nil {
					t.Errorf("%s = %v", sql, readAll(t, r, nil))
				}
			}
		}
	}
	p, err := Open(ctx, Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	for sql, want := range map[string]bool{
		"SELECT 'epoch'::TIMESTAMP AS a":                                 false,
		"SELECT DATE 'infinity' AS a":                                    false,
		"SELECT timezone('UTC', TIMESTAMP '2020-01-01') AS a":            false,
		"SELECT timezone('Asia/Singapore', TIMETZ '10:00:00+00') AS a":   true, // the zone's offset of today
		"SELECT x::TIMETZ AT TIME ZONE 'Europe/London' AS a FROM main.t": true,
	} {
		parsed, err := p.Parse(ctx, []registry.Query{{Text: sql, Strict: true}})
		if err != nil {
			t.Fatal(err)
		}
		if e := parsed[0].Err; (e != nil && e.Code == viewkeeper.CodeVolatile) != want {
			t.Errorf("%s: %v", sql, e)
		}
	}
}

// A base's view that uses the time or chance says so, also one over another, and
// through a macro.
func TestVolatileViewsOfTheBase(t *testing.T) {
	p, err := Open(t.Context(), Options{BaseSQL: `CREATE TABLE t (d DATE); CREATE MACRO late(x) AS x < now();
		CREATE VIEW a AS SELECT d, now() AS n FROM t; CREATE VIEW b AS SELECT d FROM a; CREATE VIEW c AS SELECT random() AS r; CREATE VIEW d AS SELECT d FROM t WHERE late(d);
		CREATE VIEW e AS SELECT current_setting('threads') AS s; CREATE VIEW f AS SELECT d FROM t; CREATE VIEW g AS FROM t TABLESAMPLE 10%; CREATE VIEW h AS SELECT current_date AS x`})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() })
	e, err := p.Describe(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var volatile []string
	for _, r := range e.Relations {
		if r.Volatile != "" {
			volatile = append(volatile, r.Name.View)
		}
	}
	if slices.Sort(volatile); strings.Join(volatile, "") != "abcdegh" {
		t.Errorf("volatile: %v", volatile)
	}
}

// Lists of relations are for people: nothing of the engine's own bookkeeping is there.
func TestListsHaveNoInternals(t *testing.T) {
	ctx := context.Background()
	s := openTestServer(t, Options{BaseSQL: "CREATE TABLE t (i INTEGER)"})
	if err := s.Apply(ctx, 3, true, []registry.Apply{{Name: viewkeeper.MakeName("s", "v"), Query: "SELECT i FROM main.t"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"t", "v"}
	for _, table := range SystemTables() {
		want = append(want, table.Name)
	}
	slices.Sort(want)
	for _, sql := range []string{
		"SELECT name FROM (SHOW ALL TABLES)", "SELECT table_name FROM information_schema.tables",
		"SELECT table_name FROM duckdb_tables() UNION ALL SELECT view_name FROM duckdb_views() WHERE NOT internal",
	} {
		r, err := s.Query(ctx, QueryRequest{SQL: sql})
		var got []string
		for _, row := range readAll(t, r, err).rows {
			got = append(got, row[0])
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", sql, got, want)
		}
	}
	for _, sql := range []string{"SHOW TABLES", "SHOW TABLES FROM vk", "SHOW ALL TABLES"} {
		r, err := s.Query(ctx, QueryRequest{SQL: sql})
		for _, row := range readAll(t, r, err).rows {
			if strings.Contains(strings.Join(row, " "), "__") {
				t.Errorf("%s: %v", sql, row)
			}
		}
	}
}
