package ddl_test

import (
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

func TestLimits(t *testing.T) {
	body := func(n int) string { return "SELECT '" + strings.Repeat("x", n-len("SELECT ''")) + "'" }
	commented := func(n int) string { return "SELECT 1 /*" + strings.Repeat("x", n-len("SELECT 1 /**/")) + "*/" }
	materialized := func(extract string) string {
		return "CREATE MATERIALIZED VIEW m WITH (extract_query = $q$" + extract + "$q$, count_src_query = 'b', merge_partitions_query = 'c', time_column = 't')"
	}
	set := func(n int) string {
		const begin, end = "BEGIN;\n", "\nDROP VIEW a; COMMIT;"
		return begin + strings.Repeat(" ", n-len(begin)-len(end)) + end
	}
	limits := ddl.DefaultLimits()
	for _, c := range []struct {
		name string
		text func(n int) string
		at   int
	}{
		{"body", func(n int) string { return "CREATE VIEW v AS\n " + body(n) + " ;" }, limits.MaxBody},
		{"body with comments", func(n int) string { return "CREATE VIEW v AS " + commented(n) + ";" }, limits.MaxBody},
		{"option", func(n int) string { return materialized(body(n)) }, limits.MaxBody},
		{"change set", set, limits.MaxChangeSet},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n, want := range map[int]viewkeeper.Code{c.at - 1: "", c.at: "", c.at + 1: viewkeeper.CodeTooLarge} {
				if _, err := ddl.Parse(c.text(n)); viewkeeper.CodeOf(err) != want || (err == nil) != (want == "") {
					t.Errorf("%d bytes: %v, want code %q", n, err, want)
				}
			}
		})
	}
	small := ddl.Limits{MaxBody: 8, MaxChangeSet: 25}
	for text, want := range map[string]viewkeeper.Code{
		"CREATE VIEW v AS SELECT 1":   "",
		"CREATE VIEW v AS SELECT 12":  viewkeeper.CodeTooLarge, // the text
		"CREATE VIEW v AS FROM abcd":  viewkeeper.CodeTooLarge,
		"CREATE VIEW v AS FROM xyzz":  viewkeeper.CodeTooLarge,
		"CREATE VIEW v AS  FROM abc ": viewkeeper.CodeTooLarge,
	} {
		if _, err := small.Parse(text); viewkeeper.CodeOf(err) != want {
			t.Errorf("%s: %v, want code %q", text, err, want)
		}
	}
}
