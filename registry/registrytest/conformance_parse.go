package registrytest

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// The clauses about Describe and Parse.

func describeIsStable(p *probe) {
	first := p.describe()
	if first.Name == "" || first.BaseDigest == "" {
		p.Errorf("the engine gives no name or digest: %+v", first)
	}
	want := BaseRelations()
	for _, w := range want {
		i := slices.IndexFunc(first.Relations, func(r registry.Relation) bool { return r.Name == w.Name })
		switch {
		case i < 0:
			p.Errorf("%s is not among the relations", w.Name)
		case !reflect.DeepEqual(first.Relations[i].Columns, w.Columns):
			p.Errorf("%s: columns %v, want %v", w.Name, first.Relations[i].Columns, w.Columns)
		}
	}
	if len(first.Relations) != len(want) {
		p.Errorf("%d relations, want %d: %v", len(first.Relations), len(want), first.Relations)
	}
	// Neither a trial, nor what was kept, nor a failure is part of the base.
	p.bind(stubs(stub("main.v", "a", "INTEGER")), registry.Query{Text: "SELECT nope FROM main.v"})
	inTrial := p.describe()
	p.settle(true)
	if again := p.describe(); !reflect.DeepEqual(first, inTrial) || !reflect.DeepEqual(first, again) {
		p.Errorf("Describe changed:\n%+v\n%+v\n%+v", first, inTrial, again)
	}
}

func describeListsMacros(p *probe) {
	e := p.describe()
	names := map[string]registry.Macro{}
	for _, m := range e.Macros {
		names[m.Name.String()] = m
	}
	for name, table := range map[string]bool{"main.addone": false, "main.cnt": false, "main.tm": true} {
		m, ok := names[name]
		if !ok || m.Table != table {
			p.Errorf("macro %s: %+v, want it with Table %v", name, m, table)
		}
		var reads []string
		for _, r := range m.References {
			reads = append(reads, r.View)
		}
		if reading := name != "main.addone"; reading != slices.Equal(reads, []string{"u"}) {
			p.Errorf("macro %s reads %q", name, reads)
		}
	}
	if !slices.Contains(e.Types, "main.mood") {
		p.Errorf("types %q, want main.mood among them", e.Types)
	}
}

func parseIsPure(p *probe) {
	texts := []string{
		"SELECT a FROM t", "SELECT * FROM s2.t x JOIN u USING (a)", "SELECT a FROM", "SELECT nope FROM nowhere",
		"WITH x AS (SELECT a FROM t) SELECT * FROM x", "SELECT a, sum(d) s FROM u GROUP BY a", "SELECT random() r",
	}
	first := p.parse(texts...)
	p.bind(stubs(stub("main.nowhere", "nope", "INTEGER"), stub("s2.u", "q", "VARCHAR")))
	if again := p.parse(texts...); !reflect.DeepEqual(first, again) {
		p.Errorf("Parse sees the trial:\n%+v\n%+v", first, again)
	}
	p.settle(true)
	for i, text := range slices.Backward(texts) {
		if one := p.parse(text)[0]; !reflect.DeepEqual(one, first[i]) {
			p.Errorf("%s: alone %+v, in a batch %+v", text, one, first[i])
		}
	}
	p.binds("SELECT nope FROM main.nowhere", "nope", "INTEGER")
}

// refCase is a text with what it reads: each ⟨ ⟩ is the place of a name, in
// order; a name in ⟨! ⟩ stands in a CTE that nothing reads.
type refCase string

func (c refCase) expand() (text string, want []registry.TableRef) {
	var b strings.Builder
	rest := string(c)
	for {
		before, after, found := strings.Cut(rest, "⟨")
		b.WriteString(before)
		if !found {
			return b.String(), want
		}
		name, tail, _ := strings.Cut(after, "⟩")
		name, unused := strings.CutPrefix(name, "!")
		n, err := viewkeeper.ParseName(name)
		if err != nil {
			panic(err)
		}
		ref := registry.TableRef{Schema: n.Schema, View: n.View, At: b.Len(), End: b.Len() + len(name), Unused: unused}
		if !strings.Contains(name, ".") {
			ref.Schema = ""
		}
		want = append(want, ref)
		b.WriteString(name)
		rest = tail
	}
}

func (p *probe) references(cases []refCase) {
	for _, c := range cases {
		text, want := c.expand()
		got := p.parse(text)[0]
		if got.Err != nil {
			p.Errorf("%s: %v", text, got.Err)
			continue
		}
		var in []registry.TableRef
		for _, r := range got.References {
			if r.At < 0 { // through a macro
				continue
			}
			r.Layers = 0
			in = append(in, r)
		}
		if !reflect.DeepEqual(in, want) {
			p.Errorf("%s\n  reads %s\n  want  %s", text, showRefs(in), showRefs(want))
		}
	}
}

func showRefs(refs []registry.TableRef) string {
	var parts []string
	for _, r := range refs {
		parts = append(parts, fmt.Sprintf("%s.%s@%d-%d unused=%v", r.Schema, r.View, r.At, r.End, r.Unused))
	}
	return strings.Join(parts, ", ")
}

func referencesHavePlaces(p *probe) {
	p.references([]refCase{
		`SELECT 1 x`,
		`SELECT a FROM ⟨t⟩`,
		`SELECT A FROM ⟨T⟩`,
		`SELECT a FROM ⟨"T"⟩`,
		`SELECT z FROM ⟨s2.t⟩`,
		`SELECT z FROM ⟨"s2"."t"⟩ AS "x y"`,
		`SELECT "Weird Col", "select" FROM ⟨"Mixed Case"⟩`,
		`SELECT "from" FROM ⟨"order"⟩`,
		`FROM ⟨t⟩`,
		`FROM ⟨t⟩ SELECT a`,
		`SELECT t.a FROM ⟨t⟩, ⟨u⟩`,
		`SELECT t.a FROM ⟨t⟩ JOIN ⟨u⟩ ON t.a = u.a`,
		`SELECT * FROM ⟨t⟩ JOIN ⟨u⟩ USING (a)`,
		`SELECT * FROM ⟨t⟩ NATURAL JOIN ⟨u⟩`,
		`SELECT x.a FROM ⟨t⟩ x LEFT JOIN ⟨t⟩ y ON x.a = y.a`,
		`SELECT a FROM ⟨t⟩ UNION ALL SELECT a FROM ⟨u⟩`,
		`(SELECT a FROM ⟨t⟩) UNION (SELECT a FROM ⟨u⟩)`,
		`SELECT a FROM (SELECT a FROM ⟨t⟩) x`,
		`SELECT a FROM ⟨t⟩ WHERE a IN (SELECT d FROM ⟨u⟩)`,
		`SELECT (SELECT max(d) FROM ⟨u⟩) m FROM ⟨t⟩`,
		`SELECT a FROM ⟨t⟩ WHERE EXISTS (SELECT 1 FROM ⟨u⟩ WHERE u.a = t.a)`,
		// A CTE hides an unqualified name, never a qualified one.
		`WITH t AS (SELECT a FROM ⟨u⟩) SELECT * FROM t`,
		`WITH T AS (SELECT a FROM ⟨u⟩) SELECT * FROM "t"`,
		`WITH t AS (SELECT 1 a) SELECT x.a, y.z FROM t x, ⟨s2.t⟩ y`,
		`WITH t AS (SELECT a FROM ⟨t⟩) SELECT * FROM t`,
		`WITH x AS (SELECT a FROM ⟨t⟩), y AS (SELECT a FROM x) SELECT a FROM y`,
		`WITH y AS (SELECT a FROM ⟨x⟩), x AS (SELECT a FROM ⟨!t⟩) SELECT a FROM y`,
		`SELECT a FROM (WITH u AS (SELECT a FROM ⟨t⟩) SELECT a FROM u) q, ⟨u⟩ w`,
		`WITH x AS (SELECT a FROM ⟨t⟩) SELECT a FROM x UNION ALL SELECT a FROM x`,
		// Nothing reads these.
		`WITH x AS (SELECT a FROM ⟨!nope⟩) SELECT 1 one`,
		`WITH x AS (SELECT a FROM ⟨!nope⟩), y AS (SELECT a FROM x) SELECT 1 one`,
		`WITH x AS (SELECT a FROM ⟨!nope⟩) SELECT a FROM ⟨t⟩`,
		// Places are bytes, whatever stands before them.
		"SELECT 'é', a FROM ⟨t⟩",
		"SELECT a -- FROM u\nFROM /* u */ ⟨t⟩",
		"SELECT 'FROM u' x FROM ⟨t⟩ -- end",
	})
}

func referencesOfDialect(p *probe) {
	p.references([]refCase{
		`TABLE ⟨t⟩`,
		`VALUES (1)`,
		`(((SELECT 1 x)))`,
		`SELECT a, b, FROM ⟨t⟩;;;`,
		`WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 3) FROM t`,
		`SELECT info.city, g FROM ⟨st⟩, unnest(st.tags) x(g)`,
		`SELECT x.a FROM ⟨t⟩ x, LATERAL (SELECT d FROM ⟨u⟩ WHERE u.a = x.a) y`,
		`SELECT t FROM ⟨t⟩`,
		`SELECT a FROM ⟨t⟩ UNION BY NAME SELECT d FROM ⟨u⟩`,
		`SELECT a, row_number() OVER (ORDER BY ts) rn FROM ⟨t⟩ QUALIFY rn = 1`,
		`FROM (PIVOT ⟨sales⟩ ON q IN ('q1', 'q2') USING sum(amt))`,
		`SELECT $$ FROM u; $$ x, $g$ it's $$ ok $g$ y FROM ⟨t⟩`,
		`SELECT E'it\'s; FROM u' x, 'c:\' y FROM ⟨t⟩`,
		`SELECT b::mood m FROM ⟨t⟩`,
		`SELECT addone(a) n FROM ⟨t⟩`,
		`SELECT cnt() n`,
		`FROM tm(3)`,
		`SELECT CASE WHEN EXISTS (FROM ⟨u⟩) THEN 1 ELSE 2 END x FROM ⟨t⟩`,
		`SELECT list_transform(tags, lambda x: upper(x)) l FROM ⟨st⟩`,
		`SELECT a FROM ⟨t⟩ WHERE a IN (FROM ⟨u⟩ SELECT d) ORDER BY (SELECT max(z) FROM ⟨s2.t⟩) LIMIT (SELECT count(*) FROM ⟨sales⟩)`,
		`SELECT count(*) FILTER (WHERE a > (SELECT min(d) FROM ⟨u⟩)) n FROM ⟨t⟩`,
		`SELECT * FROM ⟨t⟩ POSITIONAL JOIN ⟨u⟩`,
		`SELECT * FROM ⟨t⟩ SEMI JOIN ⟨u⟩ USING (a)`,
		`WITH x AS MATERIALIZED (FROM ⟨t⟩) FROM x`,
	})
	// A macro's own reads come with the macro's name and without a place.
	for text, macro := range map[string]string{"SELECT cnt() n": "cnt", "FROM tm(3)": "tm", "SELECT a, main.cnt() n FROM t": "cnt"} {
		got := p.parse(text)[0]
		found := slices.ContainsFunc(got.References, func(r registry.TableRef) bool {
			return r.View == "u" && r.Macro.View == macro && r.At == -1 && r.End == -1
		})
		if !found {
			p.Errorf("%s: references %+v, want u through macro %s", text, got.References, macro)
		}
		if len(got.Macros) != 1 || got.Macros[0] != viewkeeper.MakeName("", macro) {
			p.Errorf("%s: macros %v", text, got.Macros)
		}
	}
	if got := p.parse("SELECT b::mood m FROM t")[0]; !slices.Equal(got.Types, []string{"main.mood"}) {
		p.Errorf("types %q, want main.mood", got.Types)
	}
}

func parseErrorsStay(p *probe) {
	got := p.parse("SELECT a FROM t", "SELECT a FROM", "SELECT a, FROM FROM t", "SELECT d FROM u")
	for i, bad := range []bool{false, true, true, false} {
		if (got[i].Err != nil) != bad {
			p.Errorf("query %d: %+v", i, got[i])
		}
	}
	for _, text := range []string{"", " ", "-- nothing", "SELECT 1; SELECT 2", "SELECT 1; DROP TABLE t", "DROP TABLE t", "SELECT ("} {
		got := p.parse(text)[0]
		switch {
		case got.Err == nil:
			p.Errorf("%q: let through", text)
		case got.Err.Code != viewkeeper.CodeNotOneQuery && (text != "SELECT (" || got.Err.Code != viewkeeper.CodeSyntax):
			p.Errorf("%q: %v, want NOT_ONE_QUERY, or SYNTAX for what does not parse", text, got.Err)
		case got.Err.At < -1 || got.Err.At > len(text):
			p.Errorf("%q: place %d is outside the text", text, got.Err.At)
		}
	}
	p.binds("SELECT a FROM main.t", "a", "INTEGER")
}

func volatileIsFound(p *probe) {
	for _, text := range []string{"SELECT random() r FROM t", "SELECT a FROM t WHERE ts < now()", "SELECT a FROM (SELECT a, now() n FROM t) x"} {
		loose, err := p.planner.Parse(p.Context(), []registry.Query{{Text: text}, {Text: text, Strict: true}})
		p.must(err)
		if loose[0].Err != nil || loose[0].Volatile == nil {
			p.Errorf("%s: %+v, want it let through, with Volatile", text, loose[0])
		}
		if loose[1].Err == nil || loose[1].Err.Code != viewkeeper.CodeVolatile {
			p.Errorf("%s, strict: %+v, want VOLATILE", text, loose[1])
		}
	}
	got, err := p.planner.Parse(p.Context(), []registry.Query{{Text: "SELECT upper(b) b FROM t", Strict: true}})
	p.must(err)
	if got[0].Err != nil || got[0].Volatile != nil {
		p.Errorf("a stable query: %+v", got[0])
	}
}

func theGateHolds(p *probe) {
	before := p.describe()
	for text, code := range map[string]viewkeeper.Code{
		"INSERT INTO t VALUES (1, 'x', 1, NULL)":                  viewkeeper.CodeNotOneQuery,
		"WITH x AS (INSERT INTO u VALUES (1, 2)) SELECT * FROM x": viewkeeper.CodeNotOneQuery,
		"COPY t TO '/tmp/x.csv'":                                  viewkeeper.CodeNotOneQuery,
		"ATTACH ':memory:' AS z":                                  viewkeeper.CodeNotOneQuery,
		"SET memory_limit = '1TB'":                                viewkeeper.CodeNotOneQuery,
		"EXPLAIN SELECT 1":                                        viewkeeper.CodeNotOneQuery,
		"PRAGMA database_list":                                    viewkeeper.CodeNotOneQuery,
		"SELECT a FROM t WHERE a = $1":                            viewkeeper.CodeNotAllowed,
		"SELECT a FROM t WHERE a = ?":                             viewkeeper.CodeNotAllowed,
		"SELECT getvariable('x') x":                               viewkeeper.CodeNotAllowed,
		"SELECT current_setting('threads') x":                     viewkeeper.CodeNotAllowed,
		"SELECT getenv('HOME') x":                                 viewkeeper.CodeNotAllowed,
		"FROM read_text('/etc/passwd')":                           viewkeeper.CodeNotAllowed,
		"FROM '/etc/passwd'":                                      viewkeeper.CodeNotAllowed,
		"FROM query('SELECT 1')":                                  viewkeeper.CodeNotAllowed,
		"FROM duckdb_settings()":                                  viewkeeper.CodeNotAllowed,
		"FROM information_schema.tables":                          viewkeeper.CodeNotAllowed,
		"SELECT setseed(0.5) s":                                   viewkeeper.CodeNotAllowed,
	} {
		got := p.parse(text)[0]
		if got.Err == nil || got.Err.Code != code {
			p.Errorf("%s: %+v, want %s", text, got.Err, code)
		}
		// Whoever forgets to ask the gate first must not get through either.
		if b := p.columns(text); b.Err == nil {
			p.Errorf("%s: Bind lets it through", text)
		}
	}
	p.columns("SELECT 1; DROP TABLE t")
	if after := p.describe(); !reflect.DeepEqual(before, after) {
		p.Errorf("the base changed:\n%+v\n%+v", before, after)
	}
	p.binds("SELECT a FROM main.t", "a", "INTEGER")
}
