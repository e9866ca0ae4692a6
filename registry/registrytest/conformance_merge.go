package registrytest

import (
	"fmt"

	"github.com/viewkeeper/viewkeeper/registry"
)

// mergeColumns is what the merge queries of the suite merge.
var mergeColumns = []string{"day", "DATE", "k", "VARCHAR", "n", "BIGINT", "x", "DOUBLE", "i", "INTEGER", "d", "DECIMAL(10,2)", "ok", "BOOLEAN", "l", "VARCHAR[]"}

func (p *probe) merges(texts ...string) []registry.Algebra {
	p.Helper()
	merger, ok := p.planner.(registry.Merger)
	if !ok {
		p.Skip("runs no merge query")
	}
	var merges []registry.Merge
	for _, text := range texts {
		r := Relation("main.__source_m", mergeColumns...)
		merges = append(merges, registry.Merge{Query: registry.Query{Text: text, Strict: true}, Source: r.Name, Columns: r.Columns})
	}
	answers, err := merger.MergeTwice(p.Context(), merges)
	p.must(err)
	if len(answers) != len(texts) {
		p.Fatalf("MergeTwice of %d queries gave %d answers", len(texts), len(answers))
	}
	return answers
}

// columnsBut is the select list of the merged columns, one of them replaced.
func columnsBut(name, expression string) string {
	list := ""
	for i := 0; i < len(mergeColumns); i += 2 {
		if i > 0 {
			list += ", "
		}
		if mergeColumns[i] == name {
			list += expression + " AS "
		}
		list += mergeColumns[i]
	}
	return list
}

// grouped merges by day and k, with another expression for one of the others.
func grouped(name, expression string) string {
	all := map[string]string{"n": "sum(n)::BIGINT", "x": "sum(x)", "i": "max(i)", "d": "max(d)", "ok": "bool_and(ok)", "l": "any_value(l)"}
	all[name] = expression
	return fmt.Sprintf("SELECT day, k, %s AS n, %s AS x, %s AS i, %s AS d, %s AS ok, %s AS l FROM main.__source_m GROUP BY day, k",
		all["n"], all["x"], all["i"], all["d"], all["ok"], all["l"])
}

// A merge query that is right, or that only made-up rows could make wrong, has no
// counterexample; one that grows with every merge has.
func mergingTwice(p *probe) {
	for _, text := range rightMerges() {
		if a := p.merges(text)[0]; a.Counter != nil || a.Err != nil {
			p.Errorf("%s: refused by %+v %v", text, a.Counter, a.Err)
		}
	}
	for _, text := range wrongMerges() {
		a := p.merges(text)[0]
		switch c := a.Counter; {
		case c == nil:
			p.Errorf("%s: no counterexample (%s)", text, a.Unknown)
		case c.Once != nil && len(c.Once) != len(mergeColumns)/2, c.Twice != nil && len(c.Twice) != len(mergeColumns)/2, c.Once == nil && c.Twice == nil:
			p.Errorf("%s: the counterexample %q, %q is none", text, c.Once, c.Twice)
		}
	}
	if a := p.merges(grouped("n", "count(*)"), grouped("n", "max(n)")); a[0].Counter == nil || a[1].Counter != nil {
		p.Errorf("two at once: %+v", a)
	}
}

func wrongMerges() []string {
	const from = " FROM main.__source_m"
	return []string{
		grouped("n", "count(*)"),
		grouped("n", "count(n)"),
		grouped("n", "sum(n)::BIGINT + 1"),
		grouped("x", "stddev(x)"),
		grouped("x", "sum(x) * 1.1"),
		grouped("d", "(sum(d) / 2)::DECIMAL(10,2)"),
		grouped("i", "(max(i) + 1)::INTEGER"),
		grouped("ok", "count(*) = 1"),
		"SELECT " + columnsBut("n", "n * 2") + from,
		"SELECT " + columnsBut("i", "addone(i)") + from,
		"SELECT " + columnsBut("k", "'x' || k") + from,
		"SELECT " + columnsBut("day", "(day + INTERVAL 1 DAY)::DATE") + from,
		"SELECT " + columnsBut("ok", "NOT ok") + from,
		"WITH s AS (FROM main.__source_m) SELECT * FROM (SELECT " + columnsBut("n", "n + 1") + " FROM s) ORDER BY day -- the end",
		grouped("n", "sum(n)::BIGINT") + " HAVING count(*) > 1",
		"SELECT *" + from + " UNION ALL SELECT DATE '2013-01-01', 'total', 0, 0, 0, 0, true, NULL",
	}
}

func rightMerges() []string {
	const from = " FROM main.__source_m"
	right := []string{
		"FROM main.__source_m",
		"TABLE main.__source_m",
		"SELECT DISTINCT *" + from + ";",
		"SELECT *" + from + " WHERE n > 0 AND k <> ''",
		"SELECT *" + from + " WHERE false",
		"SELECT *" + from + " ORDER BY n LIMIT 1",
		"SELECT *" + from + " LIMIT 50%",
		"SELECT *" + from + " QUALIFY row_number() OVER (PARTITION BY day, k ORDER BY n DESC) = 1",
		"SELECT " + columnsBut("n", "row_number() OVER (ORDER BY day)") + from,
		"SELECT DISTINCT ON (day, k) *" + from + " ORDER BY n DESC",
		"SELECT *" + from + " s WHERE n = (SELECT max(n)" + from + " m WHERE m.k = s.k)",
		"SELECT a.*" + from + " a JOIN main.__source_m b USING (day, k)",
		"SELECT a.*" + from + " a, main.__source_m b WHERE a.k = b.k",
		"WITH s AS (FROM main.__source_m) SELECT a.* FROM s a JOIN s b USING (day)",
		"WITH s AS (FROM main.__source_m) FROM s UNION ALL FROM s WHERE n < 0",
		"SELECT s.* FROM main.__source_m s LEFT JOIN u ON u.a = s.i",
		"SELECT " + columnsBut("n", "n + cnt()") + from,
		"SELECT date_trunc('month', day)::DATE AS day, " + grouped("n", "sum(n)::BIGINT")[len("SELECT day, "):],
		"SELECT " + columnsBut("i", "(i // 10) * 10") + from,
		"SELECT " + columnsBut("x", "CASE WHEN x > 1 THEN x / 100 ELSE x END") + from,
		"SELECT " + columnsBut("n", "CASE WHEN n < 100000000000 THEN n * 1000 ELSE n END") + from,
		"SELECT " + columnsBut("k", "upper(trim(k))") + from,
		"SELECT " + columnsBut("k", "k::INTEGER::VARCHAR || 'x'") + from,
		"SELECT " + columnsBut("i", "127::TINYINT + i::TINYINT") + from,
		"SELECT " + columnsBut("x", "x / (n - 1)") + from,
		"SELECT " + columnsBut("k", "error('no')") + from,
	}
	for name, expressions := range map[string][]string{
		"n": {"max(n)", "min(n)", "any_value(n)", "first(n)", "last(n)", "arg_max(n, x)", "arg_min(n, day)", "bit_xor(n)", "coalesce(sum(n), 0)::BIGINT",
			"nullif(sum(n), 0)::BIGINT", "sum(DISTINCT n)::BIGINT", "mode(n)", "approx_quantile(n, 0.5)", "sum(n) FILTER (WHERE ok)::BIGINT",
			"round(sum(n * x) / sum(x))::BIGINT", "sum(n * i)::BIGINT // sum(i)::BIGINT"},
		"x": {"avg(x)", "sum(n * x) / sum(n)", "sum(x * i) / nullif(sum(i), 0)", "median(x)", "exp(avg(ln(x)))", "sqrt(avg(x * x))",
			"sqrt(sum(n * (x * x + i * i)) / sum(n) - (sum(n * i) / sum(n)) ** 2)", "sum(x) / (count(*) - 1)", "0 / (sum(n) - sum(n))", "quantile_cont(x, 0.9)", "product(x) ** (1 / count(*))"},
		"i": {"(sum(i) / count(*))::INTEGER", "max(i) & 3", "greatest(max(i), 10)", "CASE WHEN count(*) > 1 THEN 7 ELSE max(i) END"},
		"d": {"sum(d)::DECIMAL(10,2)", "(sum(n * d) / sum(n))::DECIMAL(10,2)", "avg(d)::DECIMAL(10,2)"},
		"l": {"list_distinct(flatten(list(l)))", "list_sort(flatten(list(l)))", "[max(k)]", "list_append(any_value(l), 'x')"},
	} {
		for _, e := range expressions {
			right = append(right, grouped(name, e))
		}
	}
	// Columns that go together, where rows of other values would not.
	return append(right,
		"SELECT day, k, sum(n)::BIGINT AS n, sum(i * x) AS x, (sum(i * x) / sum(n))::INTEGER AS i, max(d) AS d, bool_or(ok) AS ok, any_value(l) AS l"+from+" GROUP BY ALL",
		"SELECT day, string_agg(k, ',' ORDER BY k) AS k, sum(n)::BIGINT AS n, max(x) AS x, max(i) AS i, max(d) AS d, bool_or(ok) AS ok, any_value(l) AS l"+from+" GROUP BY day",
		"SELECT day, any_value(k) AS k, count(DISTINCT k) AS n, max(x) AS x, max(i) AS i, max(d) AS d, bool_or(ok) AS ok, any_value(l) AS l"+from+" GROUP BY day")
}

// The scratch catalog and an open trial are as they were.
func mergingLeavesTheTrial(p *probe) {
	p.bind(stubs(stub("main.kept", "a", "INTEGER")))
	p.settle(true)
	p.bind(stubs(stub("main.m", "n", "BIGINT"), stub("main.__source_m", mergeColumns...)))
	p.merges(grouped("n", "count(*)"), "SELECT "+columnsBut("k", "error('no')")+" FROM main.__source_m")
	p.binds("SELECT n FROM main.m", "n", "BIGINT")
	p.settle(true)
	p.binds("SELECT a, n FROM main.kept, main.m", "a", "INTEGER", "n", "BIGINT")
}
