package registrytest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// The clauses about Bind, Settle, Reset and the ends of a planner.

func stubsAreVisible(p *probe) {
	p.refused("SELECT x FROM main.v", viewkeeper.CodeBind)
	got := p.bind(stubs(stub("main.v", "x", "INTEGER", "y", "VARCHAR")),
		registry.Query{Text: "SELECT * FROM main.v"},
		registry.Query{Text: "SELECT x + 1 AS n, upper(y) AS up, count(*) AS k FROM main.v GROUP BY ALL"})
	for i, want := range [][]string{{"x", "INTEGER", "y", "VARCHAR"}, {"n", "INTEGER", "up", "VARCHAR", "k", "BIGINT"}} {
		if got[i].Err != nil {
			p.Fatal(got[i].Err)
		}
		p.sameColumns(fmt.Sprint("query ", i), got[i].Columns, want...)
	}
}

func trialsAreUndone(p *probe) {
	p.bind(stubs(stub("main.v", "x", "INTEGER")))
	p.settle(true)
	p.bind(stubs(stub("main.v", "x", "VARCHAR"), stub("main.w", "y", "DATE")))
	p.binds("SELECT v.x, w.y FROM main.v, main.w", "x", "VARCHAR", "y", "DATE")
	p.settle(false)
	p.binds("SELECT * FROM main.v", "x", "INTEGER")
	p.refused("SELECT * FROM main.w", viewkeeper.CodeBind)
	p.settle(false)
	// A removal is undone as well.
	p.bind(stubs(stub("main.v")))
	p.refused("SELECT * FROM main.v", viewkeeper.CodeBind)
	p.settle(false)
	p.binds("SELECT * FROM main.v", "x", "INTEGER")
}

func trialsAreKept(p *probe) {
	p.bind(stubs(stub("main.v", "x", "INTEGER"), stub("main.w", "y", "DATE")))
	p.settle(true)
	p.settle(false) // nothing is open
	p.binds("SELECT v.x, w.y FROM main.v, main.w", "x", "INTEGER", "y", "DATE")
	p.settle(false)
	p.binds("SELECT * FROM main.v", "x", "INTEGER")
}

func trialsAddUp(p *probe) {
	p.bind(stubs(stub("main.v", "x", "INTEGER")))
	p.bind(stubs(stub("main.w", "y", "DATE")))
	p.bind(stubs(stub("main.v", "x", "BIGINT")))
	p.binds("SELECT v.x, w.y FROM main.v, main.w", "x", "BIGINT", "y", "DATE")
	p.settle(false)
	p.refused("SELECT * FROM main.v", viewkeeper.CodeBind)
	p.refused("SELECT * FROM main.w", viewkeeper.CodeBind)
}

func stubsReplaced(p *probe) {
	p.bind(stubs(stub("main.v", "x", "INTEGER"), stub("main.w", "y", "DATE")))
	p.settle(true)
	p.bind(stubs(stub("main.v", "z", "VARCHAR"), stub("main.w"), stub("main.never")))
	p.binds("SELECT * FROM main.v", "z", "VARCHAR")
	p.refused("SELECT * FROM main.w", viewkeeper.CodeBind)
	p.settle(true)
	p.binds("SELECT * FROM main.v", "z", "VARCHAR")
	p.refused("SELECT * FROM main.w", viewkeeper.CodeBind)
	// Gone and back within one trial.
	p.bind(stubs(stub("main.v")))
	p.bind(stubs(stub("main.v", "q", "DOUBLE")))
	p.settle(true)
	p.binds("SELECT * FROM main.v", "q", "DOUBLE")
}

func resetEmpties(p *probe) {
	p.bind(stubs(stub("main.v", "x", "INTEGER")))
	p.settle(true)
	p.bind(stubs(stub("s9.w", "y", "DATE")))
	p.must(p.planner.Reset(p.Context()))
	p.refused("SELECT * FROM main.v", viewkeeper.CodeBind)
	p.refused("SELECT * FROM s9.w", viewkeeper.CodeBind)
	p.settle(true)
	p.refused("SELECT * FROM s9.w", viewkeeper.CodeBind)
	p.binds("SELECT a FROM main.t", "a", "INTEGER")
	p.must(p.planner.Reset(p.Context()))
	p.must(p.planner.Reset(p.Context()))
	p.bind(stubs(stub("main.v", "x", "BIGINT")))
	p.binds("SELECT * FROM main.v", "x", "BIGINT")
}

func namesAreQualified(p *probe) {
	p.bind(stubs(stub("s1.v", "x", "INTEGER"), stub("main.v", "x", "VARCHAR"), stub("s2.v", "x", "DATE")))
	p.binds("SELECT * FROM s1.v", "x", "INTEGER")
	p.binds("SELECT * FROM main.v", "x", "VARCHAR")
	p.binds("SELECT * FROM s2.v", "x", "DATE")
	p.binds(`SELECT x FROM "s1"."v"`, "x", "INTEGER")
	p.binds("SELECT X FROM S1.V", "x", "INTEGER")
	p.binds("SELECT v.x FROM s1.v", "x", "INTEGER")
	p.binds("SELECT s1.v.x FROM s1.v", "x", "INTEGER")
	p.binds("SELECT p.x AS a, q.x AS b FROM s1.v p, s2.v q", "a", "INTEGER", "b", "DATE")
	p.binds("SELECT z FROM s2.t", "z", "INTEGER")
	p.binds("WITH v AS (SELECT 1 AS one) SELECT v.one, w.x FROM v, s1.v w", "one", "INTEGER", "x", "INTEGER")
}

func schemasComeAndGo(p *probe) {
	p.refused("SELECT x FROM s7.v", viewkeeper.CodeBind)
	p.bind(stubs(stub("s7.v", "x", "INTEGER"), stub("s7.w", "x", "INTEGER")))
	p.settle(true)
	p.bind(stubs(stub("s7.v")))
	p.binds("SELECT x FROM s7.w", "x", "INTEGER")
	p.bind(stubs(stub("s7.w")))
	p.refused("SELECT x FROM s7.w", viewkeeper.CodeBind)
	p.settle(true)
	p.bind(stubs(stub("s7.v", "y", "DATE")))
	p.binds("SELECT * FROM s7.v", "y", "DATE")
	// A schema of the base stays when the last stub in it goes.
	p.bind(stubs(stub("s2.v", "x", "INTEGER")))
	p.bind(stubs(stub("s2.v")))
	p.settle(true)
	p.binds("SELECT z FROM s2.t", "z", "INTEGER")
}

func errorsHavePlaces(p *probe) {
	p.bind(stubs(stub("s1.v", "x", "INTEGER", "y", "VARCHAR")))
	for _, marked := range []string{
		"SELECT x, ⟨nope FROM s1.v",
		"SELECT x FROM ⟨main.nowhere",
		"SELECT x FROM s1.v WHERE ⟨nope > 1",
		"SELECT 'é' AS e, ⟨nope FROM s1.v",
		"SELECT x\nFROM s1.v\nWHERE x = 1\n  AND ⟨nope = 2",
		"SELECT ⟨v.nope FROM s1.v",
		"SELECT ⟨zz.x FROM s1.v",
		"SELECT y ⟨+ 1 AS n FROM s1.v",
		"SELECT ⟨upper(x) AS u FROM s1.v",
		"WITH c AS (SELECT ⟨nope FROM s1.v) SELECT * FROM c",
		"SELECT * FROM (SELECT ⟨nope FROM s1.v) q",
	} {
		text := strings.Replace(marked, "⟨", "", 1)
		at := strings.Index(marked, "⟨")
		if err := p.refused(text, viewkeeper.CodeBind); err != nil && err.At != at {
			p.Errorf("%s: place %d, want %d", text, err.At, at)
		}
	}
}

func unknownThings(p *probe) {
	for _, text := range []string{
		"SELECT a FROM main.nope",
		"SELECT a FROM nope.t",
		"SELECT nope FROM main.t",
		"SELECT t.nope FROM main.t",
		"SELECT nope.a FROM main.t",
		"SELECT nope.* FROM main.t",
		"SELECT a FROM main.t JOIN main.u ON t.a = u.a", // ambiguous
		"SELECT * FROM main.t JOIN main.u USING (b)",
		"SELECT b + 1 AS n FROM main.t",
		"SELECT sum(b) AS s FROM main.t",
		"SELECT ts > 1 AS n FROM main.t",
		"SELECT a, sum(d) AS s FROM main.u",
		"SELECT a FROM main.u UNION ALL SELECT a, d FROM main.u",
	} {
		p.refused(text, viewkeeper.CodeBind)
	}
	if p.full {
		p.refused("SELECT nofunction(a) AS n FROM main.t", viewkeeper.CodeBind)
		p.refused("SELECT a::notype AS n FROM main.t", viewkeeper.CodeBind)
	}
}

func oneErrorPoisonsNothing(p *probe) {
	good, bad := registry.Query{Text: "SELECT x FROM main.v"}, registry.Query{Text: "SELECT nope FROM main.v"}
	got := p.bind(stubs(stub("main.v", "x", "INTEGER")), good, bad, good, registry.Query{Text: "SELECT ("}, good)
	for i, b := range got {
		if wantErr := i%2 == 1; (b.Err != nil) != wantErr {
			p.Errorf("query %d: %+v", i, b)
		}
	}
	p.binds("SELECT x FROM main.v", "x", "INTEGER")
	p.bind(stubs(stub("main.w", "y", "DATE")), bad)
	p.settle(true)
	p.binds("SELECT v.x, w.y FROM main.v, main.w", "x", "INTEGER", "y", "DATE")
}

func columnLists(p *probe) {
	query := func(columns ...string) registry.Bound {
		return p.bind(nil, registry.Query{Text: "SELECT a, d FROM main.u", Columns: columns})[0]
	}
	for _, c := range []struct{ list, want []string }{
		{[]string{"p", "q"}, []string{"p", "INTEGER", "q", "INTEGER"}},
		{[]string{"p"}, []string{"p", "INTEGER", "d", "INTEGER"}},
		{[]string{"P q", "select"}, []string{"P q", "INTEGER", "select", "INTEGER"}},
		{[]string{"p", "p"}, []string{"p", "INTEGER", "p_1", "INTEGER"}},
		{[]string{"d"}, []string{"d", "INTEGER", "d_1", "INTEGER"}},
	} {
		got := query(c.list...)
		if got.Err != nil {
			p.Errorf("%q: %v", c.list, got.Err)
			continue
		}
		p.sameColumns(fmt.Sprintf("%q", c.list), got.Columns, c.want...)
	}
	if got := query("p", "q", "r"); got.Err == nil || got.Err.Code != viewkeeper.CodeBind {
		p.Errorf("three names over two columns: %+v, want BIND", got)
	}
}

func repeatedColumns(p *probe) {
	p.binds("SELECT a, a FROM main.t", "a", "INTEGER", "a_1", "INTEGER")
	p.binds("SELECT a, A, a AS a_1 FROM main.t", "a", "INTEGER", "a_1", "INTEGER", "a_1_1", "INTEGER")
	p.binds("SELECT t.a, u.a FROM main.t, main.u", "a", "INTEGER", "a_1", "INTEGER")
	p.binds("SELECT a + 1, a + 1 FROM main.u", "(a + 1)", "INTEGER", "(a + 1)_1", "INTEGER")
}

func stubsRoundTrip(p *probe) {
	p.roundTrip(
		"SELECT * FROM main.t",
		"SELECT a + 1, upper(b), count(*), sum(a) FROM main.t GROUP BY ALL",
		`SELECT a AS "Weird ""Col""", b AS "select", c AS "é" FROM main.t`,
		"SELECT a, a FROM main.t",
		"SELECT 1 AS i, 3000000000 AS l, 'x' AS s, true AS o",
		"SELECT a::SMALLINT AS s, a::HUGEINT AS h, a::REAL AS r FROM main.u",
	)
}

func stubsRoundTripAnyType(p *probe) {
	p.roundTrip(
		"SELECT t FROM main.t",
		"SELECT * FROM main.st",
		"SELECT info, [info] AS l, MAP {'k': info} AS m, tags[1:2] AS s FROM main.st",
		"SELECT b::mood AS m, [b::mood] AS ms FROM main.t",
		"SELECT ts::TIMESTAMP_NS AS ns, ts::TIMESTAMP_MS AS ms, ts::TIMESTAMP_S AS s, ts::TIMESTAMPTZ AS tz, ts::DATE AS d, ts::TIME AS tm, ts - ts AS iv FROM main.t",
		"SELECT a::DECIMAL(10,2) AS d, a::UBIGINT AS u, a::UHUGEINT AS uh, b::BLOB AS bl, b::UUID AS uu, array_value(a, a) AS arr FROM main.t",
		"SELECT {'x y': a, 'select': b} AS q, union_value(k := a) AS un FROM main.t",
		"SELECT NULL AS n",
		"FROM (PIVOT main.sales ON q IN ('q1', 'q2') USING sum(amt))",
	)
}

// roundTrip puts each query's columns in a stub and selects * from it.
func (p *probe) roundTrip(texts ...string) {
	p.Helper()
	for _, text := range texts {
		first := p.columns(text)
		if first.Err != nil {
			p.Errorf("%s: %v", text, first.Err)
			continue
		}
		name := viewkeeper.MakeName("s1", "v")
		got := p.bind([]registry.Stub{{Name: name, Columns: first.Columns}}, registry.Query{Text: "SELECT * FROM s1.v"})[0]
		if got.Err != nil {
			p.Errorf("%s: over the stub: %v", text, got.Err)
		} else if !reflect.DeepEqual(got.Columns, first.Columns) {
			p.Errorf("%s:\n  gives     %v\n  as a stub %v", text, first.Columns, got.Columns)
		}
		p.settle(true)
	}
}

func parquetTypes(p *probe) {
	got := p.bind(nil,
		registry.Query{Text: "SELECT a, sum(d) AS s, sum(d)::BIGINT AS n FROM main.u GROUP BY a", Parquet: true},
		registry.Query{Text: "SELECT a FROM main.u"})
	if got[0].Err != nil {
		p.Fatal(got[0].Err)
	}
	p.sameColumns("columns", got[0].Columns, "a", "INTEGER", "s", "HUGEINT", "n", "BIGINT")
	p.sameColumns("after Parquet", got[0].Parquet, "a", "INTEGER", "s", "DOUBLE", "n", "BIGINT")
	if got[1].Parquet != nil {
		p.Errorf("Parquet types that nobody asked for: %v", got[1].Parquet)
	}
}

func manyStubs(p *probe) {
	const n = 300
	var all []registry.Stub
	var queries []registry.Query
	for i := range n {
		all = append(all, stub(fmt.Sprintf("s%d.v%d", i%7, i), "x", "INTEGER", fmt.Sprintf("c%d", i), "VARCHAR"))
		queries = append(queries, registry.Query{Text: fmt.Sprintf("SELECT * FROM s%d.v%d", i%7, i)})
	}
	for i, b := range p.bind(all, queries...) {
		if b.Err != nil {
			p.Fatal(b.Err)
		}
		p.sameColumns(queries[i].Text, b.Columns, "x", "INTEGER", fmt.Sprintf("c%d", i), "VARCHAR")
	}
}

func emptyCalls(p *probe) {
	p.settle(true)
	p.settle(false)
	if got := p.parse(); len(got) != 0 {
		p.Errorf("Parse of nothing gave %v", got)
	}
	if got := p.bind(nil); len(got) != 0 {
		p.Errorf("Bind of nothing gave %v", got)
	}
	p.settle(true)
	p.must(p.planner.Reset(p.Context()))
}

func cancelledCalls(p *probe) {
	ctx := cancelled()
	_, err := p.planner.Parse(ctx, []registry.Query{{Text: "SELECT a FROM t"}})
	p.isCancel("Parse", err)
	_, err = p.planner.Bind(ctx, stubs(stub("main.v", "x", "INTEGER")), []registry.Query{{Text: "SELECT x FROM main.v"}})
	p.isCancel("Bind", err)
	// Whatever the call left behind, a Reset makes the planner as new.
	p.must(p.planner.Reset(p.Context()))
	p.refused("SELECT x FROM main.v", viewkeeper.CodeBind)
	p.binds("SELECT a FROM main.t", "a", "INTEGER")
}

func (p *probe) isCancel(call string, err error) {
	p.Helper()
	if !errors.Is(err, context.Canceled) {
		p.Errorf("%s under a cancelled context: %v, want context.Canceled", call, err)
	}
}

func closedPlanner(p *probe) {
	p.must(p.planner.Close())
	if _, err := p.planner.Bind(p.Context(), nil, []registry.Query{{Text: "SELECT 1"}}); err == nil {
		p.Error("a closed planner answers")
	}
}
