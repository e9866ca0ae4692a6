package registrytest_test

import (
	"reflect"
	"testing"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// TestModelAgrees asks the model and the real engine the same questions over the
// same base. On its subset the model knows better than to answer otherwise: the
// same references, the same columns, a no where the engine says no, at its place.
func TestModelAgrees(t *testing.T) {
	queries := []string{
		// numbers
		"SELECT a + 1, a - 1, a * 2, a / 2, a % 2, -a, (a + 1) * 2, a + 1 + 2, c + a, 1, 3000000000 FROM main.t",
		"SELECT a::SMALLINT + 1 AS s, a::SMALLINT + a AS i, a::BIGINT + a AS l, a::HUGEINT + 1 AS h, a::REAL + 1 AS f, a::REAL + c AS d FROM main.t",
		"SELECT sum(a) AS a, sum(a::BIGINT) AS b, sum(c) AS c, sum(a::REAL) AS d, sum(true) AS e, avg(a) AS f, max(ts) AS g, min(b) AS h FROM main.t",
		"SELECT sum(1), count(*), count(a), count(*) + 1, max(a) + 1 FROM main.t",
		"SELECT b + 1 AS n FROM main.t", "SELECT b + b AS n FROM main.t", "SELECT a + '1' AS n FROM main.t", "SELECT ts + 1 AS n FROM main.t",
		"SELECT ts::DATE + 1 AS d, ts::DATE - 1 AS e, ts::DATE - ts::DATE AS f, ts - ts AS i FROM main.t",
		"SELECT sum(b) AS n FROM main.t", "SELECT avg(ts) AS n, avg(ts::DATE) AS m FROM main.t", "SELECT avg(b) AS n FROM main.t", "SELECT sum(sum(a)) AS n FROM main.t", "SELECT -b AS n FROM main.t",
		// texts and names
		"SELECT upper(b), lower(b), length(b), upper('x'), 'x', true FROM main.t", "SELECT upper(a) AS n FROM main.t",
		`SELECT A, T.a + 1, "Weird Col" + 1, "select" + 1 FROM main.t, main."Mixed Case"`,
		"SELECT a::BIGINT, a::VARCHAR, CAST(a AS DOUBLE), a::TEXT, ts::DATE, a::REAL, a::BOOLEAN, a::SMALLINT, a::TINYINT, a::HUGEINT, b::TIMESTAMP FROM main.t", "SELECT A AS X, a, a FROM main.t",
		"SELECT t FROM main.t", "SELECT x FROM main.u x",
		// comparisons
		"SELECT a > 1, a <> 1, a = 1 AND a < 3, b IS NULL, b IS NOT NULL, a = 1 OR a = 2 FROM main.t",
		"SELECT a FROM main.t WHERE b = 1", "SELECT a FROM main.t WHERE b > 1", "SELECT a FROM main.t WHERE b > a", "SELECT a FROM main.t WHERE ts > 1",
		"SELECT a FROM main.t WHERE ts = 1", "SELECT a FROM main.t WHERE ts > '2026-01-02'", "SELECT a FROM main.t WHERE true > a", "SELECT a FROM main.t WHERE true > c",
		"SELECT a FROM main.t WHERE a IN (SELECT b FROM main.t)", "SELECT a FROM main.t WHERE c IN (SELECT a FROM main.u)", "SELECT a FROM main.t WHERE 'x' IN (SELECT a FROM main.u)",
		// joins
		"SELECT * FROM main.t JOIN main.u USING (a)", "SELECT * FROM main.t NATURAL JOIN main.u", "SELECT * FROM main.t JOIN main.u ON t.a = u.a",
		"SELECT t.*, d FROM main.t JOIN main.u USING (a)", "SELECT u.* FROM main.t JOIN main.u USING (a)", "SELECT u.a FROM main.t JOIN main.u USING (a)",
		"SELECT a FROM main.t JOIN main.u USING (a)", "SELECT a FROM main.t, main.u", "SELECT * FROM main.t, main.t", "SELECT * FROM main.t x, main.u x",
		"SELECT * FROM main.t JOIN main.u USING (b)", "SELECT * FROM main.t NATURAL JOIN s2.t", "SELECT x.a FROM main.t x LEFT JOIN (SELECT ts AS a FROM main.t) y USING (a)",
		"SELECT z FROM main.t, s2.t", "SELECT * FROM main.t, s2.t", "SELECT 1 AS x FROM main.t, main.t", "SELECT x.d FROM main.t x, main.u x", "SELECT a FROM main.t JOIN main.t USING (a)",
		"SELECT main.t.a FROM main.t", "SELECT main.t.a FROM main.t x", "SELECT t.a FROM main.t x", "SELECT zz.* FROM main.t", "SELECT *",
		// groups, aliases, sets
		"SELECT a, sum(c) AS s FROM main.t GROUP BY a", "SELECT a + 1 AS x, sum(c) AS s FROM main.t GROUP BY x", "SELECT a + 1 AS x, sum(c) AS s FROM main.t GROUP BY 1",
		"SELECT a + 1 AS x, sum(c) AS s FROM main.t GROUP BY a + 1", "SELECT a, sum(c) AS s FROM main.t", "SELECT b, sum(c) AS s FROM main.t GROUP BY a",
		"SELECT b, sum(c) AS s FROM main.t GROUP BY ALL", "SELECT a FROM main.t GROUP BY a HAVING count(*) > 1", "SELECT a FROM main.t WHERE sum(a) > 1",
		"SELECT a AS x, x + 1 AS y, x FROM main.t", "SELECT a AS x FROM main.t WHERE x > 1", "SELECT a FROM main.t ORDER BY nope",
		"SELECT a FROM main.t UNION ALL SELECT b FROM main.t", "SELECT a FROM main.t UNION ALL SELECT ts FROM main.t", "SELECT a FROM main.u UNION SELECT c FROM main.t",
		"SELECT a, d FROM main.u UNION ALL SELECT a FROM main.u", "SELECT a FROM main.t UNION SELECT a FROM main.u ORDER BY a", "SELECT a FROM main.t EXCEPT SELECT d FROM main.u",
		// scopes
		"WITH t AS (SELECT d FROM main.u) SELECT * FROM t", "WITH x AS (SELECT nope FROM nowhere) SELECT 1 AS one", "WITH x AS (SELECT nope FROM main.t) SELECT * FROM x",
		"SELECT a FROM (SELECT a FROM main.t) x WHERE x.a > 1", "SELECT a FROM main.t WHERE EXISTS (SELECT 1 FROM main.u WHERE u.a = t.a)",
		"SELECT b FROM main.t WHERE a IN (SELECT a FROM s2.t)", "SELECT a, (SELECT max(d) FROM main.u) AS m FROM main.t", "SELECT * FROM (SELECT a, a FROM main.t)",
	}
	real, err := openEngine(t, registrytest.BaseSQL)
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	model := registrytest.NewModel(registrytest.BaseRelations()...)
	for _, text := range queries {
		q := []registry.Query{{Text: text, Parquet: true}}
		parsed := [2]registry.Parsed{}
		bound := [2]registry.Bound{}
		for i, p := range []registry.Planner{real, model} {
			ps, err := p.Parse(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			bs, err := p.Bind(t.Context(), nil, q)
			if err != nil {
				t.Fatal(err)
			}
			parsed[i], bound[i] = ps[0], bs[0]
		}
		switch r, m := bound[0], bound[1]; {
		case registrytest.Unknown(m.Err):
			t.Errorf("%s: %s", text, m.Err.Message)
		case !reflect.DeepEqual(parsed[0].References, parsed[1].References):
			t.Errorf("%s:\n  the engine reads %+v\n  the model  reads %+v", text, parsed[0].References, parsed[1].References)
		case (r.Err == nil) != (m.Err == nil):
			t.Errorf("%s:\n  the engine says %v, %v\n  the model  says %v, %v", text, r.Columns, r.Err, m.Columns, m.Err)
		case r.Err == nil && !(reflect.DeepEqual(r.Columns, m.Columns) && reflect.DeepEqual(r.Parquet, m.Parquet)):
			t.Errorf("%s:\n  the engine gives %v, %v\n  the model  gives %v, %v", text, r.Columns, r.Parquet, m.Columns, m.Parquet)
		case r.Err != nil && (r.Err.Code != m.Err.Code || r.Err.At >= 0 && m.Err.At >= 0 && r.Err.At != m.Err.At):
			t.Errorf("%s:\n  the engine says %v at %d\n  the model  says %v at %d", text, r.Err, r.Err.At, m.Err, m.Err.At)
		}
	}
}
