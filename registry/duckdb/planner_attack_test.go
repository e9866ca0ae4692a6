package duckdb

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// attacks are texts that hang the engine, eat its memory or crash it when they
// reach its parser or its binder. The comment on each says what was measured with
// the optimizer off; the gate refuses them all. What a constant expression can do
// that no walk can foresee (repeat('a', 1000 * 1000 * 1000) in a LIMIT) is left to
// the kill timer and the memory watchdog of the engine's own process.
func attacks() map[string]string {
	r := strings.Repeat
	list := func(n int, f string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = fmt.Sprintf(f, i)
		}
		return strings.Join(parts, ", ")
	}
	return map[string]string{
		// Nesting: the engine's own limit is 1000, and costs time before it is reached.
		"parentheses":  "SELECT " + r("(", 2000) + "1" + r(")", 2000),
		"subqueries":   r("SELECT (", 150) + "SELECT 1" + r(")", 150),
		"from":         r("SELECT * FROM (", 150) + "SELECT 1" + r(") x", 150),
		"ctes within":  r("WITH x AS (", 150) + "SELECT 1" + r(") FROM x", 150),
		"lists":        "SELECT " + r("[", 150) + r("]", 150),
		"structs":      "SELECT " + r("{'a': ", 150) + "1" + r("}", 150),
		"functions":    "SELECT " + r("abs(", 150) + "1" + r(")", 150),
		"cases":        "SELECT " + r("CASE WHEN true THEN ", 150) + "1" + r(" END", 150),
		"casts":        "SELECT a" + r("::int", 150) + " FROM t",
		"nots":         "SELECT " + r("NOT ", 150) + "true",
		"indexes":      "SELECT a" + r("[1]", 150) + " FROM t",
		"pluses":       "SELECT 1" + r(" + 1", 150),
		"methods":      "SELECT b" + r(".upper()", 150) + " FROM t",
		"types":        "SELECT a::" + r("STRUCT(a ", 150) + "int" + r(")", 150),
		"union right":  r("SELECT 1 UNION ALL (", 150) + "SELECT 1" + r(")", 150),
		"exists":       "SELECT 1" + r(" WHERE EXISTS (SELECT 1", 150) + r(")", 150),
		"collations":   "SELECT b" + r(" COLLATE nocase", 150) + " FROM t",
		"join nesting": "FROM " + r("(t JOIN ", 150) + "t" + r(" USING (a))", 150),
		"pivots":       "FROM sales" + r(" PIVOT (sum(amt) FOR q IN ('x'))", 150),
		// Quadratic in the parser: 50,000 took 6 s, comments over 20 s.
		"ands":     "SELECT 1 WHERE true" + r(" AND true", 50_000),
		"comments": r("/*", 20_000) + r("*/", 20_000) + "SELECT 1",
		// 57 MB of syntax tree from 29 KB of text, 4 s.
		"rollup": "SELECT 1 FROM t GROUP BY ROLLUP (" + list(3000, "a + %d") + ")",
		"cube":   "SELECT 1 FROM t GROUP BY CUBE (" + list(100, "a + %d") + ")",
		"cubes":  "SELECT 1 FROM t GROUP BY " + r("CUBE (a, b, c, ts), ", 3) + "CUBE (a, b)",
		"joins":  "SELECT 1 FROM t" + r(", t", 60),
		"joins2": "SELECT 1 FROM t" + r(" JOIN u USING (a)", 60),
		// A macro's argument is bound as often as the body uses it: 15 levels took 2.4 s,
		// each one more twice that.
		"macros":        "SELECT " + r("twice(", 20) + "1" + r(")", 20),
		"engine macros": "SELECT " + r("nullif(", 20) + "1" + r(", 2)", 20),
		"both":          "SELECT " + r("twice(nullif(", 10) + "1" + r(", 2))", 10),
		// Twice the binder's time with each: 20 took 1.3 s, 40 never ended.
		"lambdas": "SELECT " + r("list_transform([1], lambda x: ", 40) + "1" + r(")", 40),
		"arrows":  "SELECT " + r("list_transform([1], x -> ", 40) + "1" + r(")", 40),
		// 15,000 stars over 500 columns never ended.
		"stars":   "SELECT " + r("t.*, ", 200) + "1 FROM t",
		"columns": "SELECT " + r("sum(COLUMNS(*)), ", 200) + "1 FROM t",
		// Worked out when the query is prepared: 4 s and 500 MB, and more.
		"repeat":      "SELECT 1 LIMIT length(repeat('a', 500000000))",
		"repeated":    "SELECT length(repeat(repeat('a', 100000), 100000))",
		"lpad":        "SELECT length(lpad('a', 1000000000, 'b'))",
		"range":       "FROM unnest(range(100000000))",
		"range2":      "FROM unnest(generate_series(1, 100000000, 1))",
		"resize":      "SELECT len(list_resize([1], 1000000000))",
		"printf":      "SELECT length(printf('%1000000000d', 1))",
		"format":      "SELECT length(format('{:1000000000}', 1))",
		"bits":        "SELECT length(bitstring('1', 1000000000))",
		"castrepeat":  "SELECT date_trunc(repeat('a', 500000000)::VARCHAR, ts) FROM t",
		"fold concat": "SELECT length(repeat('a' || 'b', 500000000))",
		// Crashes the process: the stack overflows over a deep structure.
		"structure":          "SELECT from_json('1', '" + r("[", 50_000) + "1" + r("]", 50_000) + "')",
		"many columns":       "SELECT 1" + r(",1", 29_999),
		"columns below":      "SELECT count(*) FROM (SELECT 1" + r(",1", 29_999) + ")",
		"structure2":         "SELECT json_transform('1', '" + r(`{"a":`, 200) + "1" + r("}", 200) + "')",
		"structure computed": "SELECT json_transform_strict('1', repeat('[', 200000))",
		// Plans any text, past the gate.
		"plan": "SELECT json_serialize_plan('SELECT 1')",
		"size": "SELECT '" + r("x", 600<<10) + "'",
		"nul":  "SELECT 1\x00; DROP TABLE t",
		"utf8": "SELECT '\xff\xfe'",
	}
}

// usedTime is what this process has taken of the processors.
func usedTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func TestAttacks(t *testing.T) {
	p := openTestPlanner(t)
	for name, text := range attacks() {
		before := usedTime(t)
		got, err := p.Parse(context.Background(), []registry.Query{{Text: text}})
		took := usedTime(t) - before
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch e := got[0].Err; {
		case e == nil:
			t.Errorf("%s: let through", name)
		case e.At > len(text):
			t.Errorf("%s: place %d outside the text", name, e.At)
		case len(e.Message) > longestMessage+200:
			t.Errorf("%s: a message of %d bytes", name, len(e.Message))
		case e.Code != viewkeeper.CodeComplexity && e.Code != viewkeeper.CodeNotAllowed && e.Code != viewkeeper.CodeSyntax:
			t.Errorf("%s: %v", name, e)
		}
		// Of processors, not of the clock, which a busy machine stretches. The slowest takes 20 ms.
		if took > 2*time.Second {
			t.Errorf("%s: took %v", name, took)
		}
		bound, err := p.Bind(context.Background(), nil, []registry.Query{{Text: text}})
		if err != nil || bound[0].Err == nil {
			t.Errorf("%s: Bind: %+v %v", name, bound, err)
		}
	}
}

// TestLimitsLetThrough holds texts that are long or deep and still sensible.
func TestLimitsLetThrough(t *testing.T) {
	p := openTestPlanner(t)
	r := strings.Repeat
	for name, text := range map[string]string{
		"ands":    "SELECT a FROM t WHERE a = 1" + r(" AND a <> 2", 2000),
		"ors":     "SELECT a FROM t WHERE a = 1" + r(" OR a = 2", 2000),
		"unions":  "SELECT a FROM t" + r(" UNION ALL SELECT a FROM t", 500),
		"in list": "SELECT a FROM t WHERE a IN (1" + r(", 2", 5000) + ")",
		"values":  "VALUES (1, 'x')" + r(", (2, 'y')", 2000),
		"ctes": "WITH x0 AS (SELECT 1 a)" + func() string {
			var b strings.Builder
			for i := range 90 {
				fmt.Fprintf(&b, ", x%d AS (FROM x%d)", i+1, i)
			}
			return b.String()
		}() + " FROM x90",
		"depth":      "SELECT " + r("(1 + ", 90) + "1" + r(")", 90),
		"subqueries": r("SELECT (", 45) + "SELECT 1" + r(")", 45),
		"joins": "SELECT 1 FROM t t0" + func() string {
			var b strings.Builder
			for i := range 50 {
				fmt.Fprintf(&b, " JOIN t t%d USING (a)", i+1)
			}
			return b.String()
		}(),
		"columns":     "SELECT a" + r(", a", 3000) + " FROM t",
		"case":        "SELECT CASE" + r(" WHEN a = 1 THEN 2", 1000) + " END FROM t",
		"range":       "FROM range(100000000)",
		"range list":  "SELECT range(1000), repeat('x', 1000), lpad(b, 20, ' ') FROM t",
		"json":        "SELECT from_json(b, '{\"a\": [\"INTEGER\"]}') FROM t",
		"lambda":      "SELECT list_transform([[[1]]], x -> list_transform(x, y -> list_transform(y, z -> z + 1)))",
		"rollup":      "SELECT a, b, count(*) FROM t GROUP BY ROLLUP (a, b, c), CUBE (a, b)",
		"macros":      "SELECT twice(twice(twice(a))) + nullif(nullif(a, 1), 2) FROM t",
		"long string": "SELECT '" + r("x", 100_000) + "'",
	} {
		bound, err := p.Bind(context.Background(), nil, []registry.Query{{Text: text}})
		if err != nil || bound[0].Err != nil {
			t.Errorf("%s: %v %v", name, bound[0].Err, err)
		}
	}
}

// TestPlannerSurvives shows that a planner goes on after whatever it was given.
func TestPlannerSurvives(t *testing.T) {
	p := openTestPlanner(t)
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	// Within what the gate allows this takes a while: the fold is interrupted, or ends.
	_, err := p.Bind(ctx, []registry.Stub{{Name: viewkeeper.MakeName("", "v"), Columns: []viewkeeper.Column{{Name: "a", Type: "INTEGER"}}}},
		[]registry.Query{{Text: "SELECT 1 LIMIT levenshtein(repeat('a', 9000), repeat('b', 9000))"}, {Text: "SELECT a FROM main.v"}})
	if err != nil && ctx.Err() == nil {
		t.Fatal(err)
	}
	if err := p.Reset(context.Background()); err != nil {
		t.Fatal(err)
	}
	got, err := p.Bind(context.Background(), nil, []registry.Query{{Text: "SELECT a FROM t"}, {Text: "SELECT a FROM main.v"}})
	if err != nil || got[0].Err != nil || got[1].Err == nil {
		t.Fatal(got, err)
	}
}
