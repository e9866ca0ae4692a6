package registry_test

import (
	"context"
	"log/slog"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// Whatever is submitted is decided: no error, no failure of viewkeeper itself, places
// within the text. What is not accepted changes nothing, and the same text gets the
// same answer over the same catalog.
func FuzzJudge(f *testing.F) {
	for _, seed := range []string{
		"CREATE VIEW x AS SELECT a, d FROM v",
		"CREATE OR REPLACE VIEW v AS SELECT a FROM t",
		"CREATE OR REPLACE VIEW v(p, q) AS SELECT * FROM main.t",
		"CREATE VIEW IF NOT EXISTS v AS SELECT 1",
		"DROP VIEW v", "DROP VIEW v CASCADE", "DROP VIEW IF EXISTS nosuch, w",
		"ALTER VIEW v RENAME TO x", "ALTER VIEW w RENAME TO v",
		"COMMENT ON VIEW w IS 'it''s'", "COMMENT ON VIEW v IS NULL",
		"BEGIN; DROP VIEW w; CREATE VIEW x AS SELECT a FROM v; ALTER VIEW v RENAME TO y; COMMIT",
		"BEGIN; CREATE VIEW x AS FROM y; CREATE VIEW y AS FROM x; COMMIT;",
		"CREATE VIEW s.x AS WITH c AS (SELECT a FROM u) SELECT * FROM c UNION ALL SELECT d FROM v",
		`CREATE MATERIALIZED VIEW m WITH (extract_query = $$SELECT a, ts FROM p WHERE ts >= {begin} AND ts < {end}$$,
			count_src_query = $$SELECT count(*) AS count FROM p WHERE ts >= {begin} AND ts < {end}$$,
			merge_partitions_query = $$SELECT a, ts FROM {source}$$, time_column = 'ts')`,
		"", ";", "SELECT 1", "CREATE VIEW v AS SELECT 1; DROP TABLE t", "CREATE VIEW \"v\x00\" AS SELECT 1",
	} {
		f.Add(seed, "main.x", false)
		f.Add(seed, "w", true)
	}
	f.Fuzz(func(t *testing.T, sql, key string, tombstone bool) {
		ctx := context.Background()
		planner := registrytest.NewModel(
			registrytest.Relation("main.t", "a", "INTEGER", "d", "INTEGER"), registrytest.Relation("main.u", "a", "INTEGER"),
			registrytest.Relation("main.p", "a", "INTEGER", "ts", "TIMESTAMP"))
		base, err := registry.NewBase(ctx, planner, registry.BaseOptions{Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		c, err := registry.LoadCatalog(ctx, base, []viewkeeper.Row{
			row(1, "v", "CREATE VIEW v AS SELECT a, d FROM t"), row(2, "w", "CREATE VIEW w AS SELECT d FROM v"),
		}, registry.CatalogOptions{Epoch: 1, Owner: "fuzz"})
		if err != nil {
			t.Fatal(err)
		}
		before := c.Snapshot().BuildDigest()
		sub := viewkeeper.Submission{ID: "x", SQL: sql, Key: key, Tombstone: tombstone, Offset: 10}
		checked, err := c.Check(ctx, sub)
		if err != nil {
			t.Fatal(err)
		}
		out, err := c.Judge(ctx, sub)
		if err != nil {
			t.Fatal(err)
		}
		d := out.Decision
		if d.Code == viewkeeper.CodeInternal {
			t.Fatal(d.Message)
		}
		if checked.Decision.Verdict != d.Verdict || checked.Decision.Code != d.Code || checked.Decision.Message != d.Message {
			t.Fatalf("checked %s %s, judged %s %s", checked.Decision.Code, checked.Decision.Message, d.Code, d.Message)
		}
		if d.Position != nil && (d.Position.Offset < 0 || d.Position.Offset > len(sql)) {
			t.Fatalf("%+v", d.Position)
		}
		after := c.Snapshot()
		switch d.Verdict {
		case viewkeeper.Accepted:
			if len(out.Rows) == 0 || after.Broken() > 0 {
				t.Fatalf("%d rows, %d broken: %s", len(out.Rows), after.Broken(), d.Message)
			}
		case viewkeeper.Refused:
			if d.Code == "" || d.Message == "" || len(out.Rows) > 0 || after.BuildDigest() != before {
				t.Fatalf("%+v", d)
			}
		case viewkeeper.Unchanged:
			if len(out.Rows) > 0 || after.BuildDigest() != before {
				t.Fatalf("%+v", d)
			}
		default:
			t.Fatalf("verdict %q", d.Verdict)
		}
	})
}
