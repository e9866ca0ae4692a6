package ddl_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// Statements that are right by themselves are right as a change set, as the same
// statements, each at its place; and Split takes the set as one piece.
func FuzzChangeSet(f *testing.F) {
	for _, seed := range [][3]string{
		{"CREATE VIEW a AS SELECT 1", "DROP VIEW b, c CASCADE", "COMMENT ON VIEW s.d IS 'x'"},
		{"CREATE OR REPLACE VIEW a(x) AS SELECT ';'", "ALTER VIEW a RENAME TO b", "DROP MATERIALIZED VIEW IF EXISTS m"},
		{"CREATE VIEW a AS SELECT $$COMMIT;$$ -- ;", "CREATE VIEW b AS SELECT 1 /* COMMIT; */", ";"},
		{"CREATE VIEW commit AS SELECT 1", "CREATE VIEW a AS FROM begin", "CREATE VIEW IF NOT EXISTS c AS VALUES (E'\\'')"},
		{"CREATE MATERIALIZED VIEW m WITH (extract_query = $$ SELECT {begin}; $$, time_column = 't')", "BEGIN", "COMMIT"},
	} {
		f.Add(seed[0], seed[1], seed[2])
	}
	wide := ddl.Limits{MaxBody: 1 << 30, MaxChangeSet: 1 << 30}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var set strings.Builder
		set.WriteString("BEGIN;\n")
		var single []viewkeeper.Statement
		for _, text := range []string{a, b, c} {
			st, err := wide.Parse(text)
			if err != nil {
				continue
			}
			if _, nested := st.(*viewkeeper.ChangeSet); nested {
				continue
			}
			single = append(single, st)
			set.WriteString(text + "\n;\n")
		}
		if len(single) == 0 {
			return
		}
		set.WriteString("COMMIT")
		text := set.String()
		got, err := wide.Parse(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		statements := got.(*viewkeeper.ChangeSet).Statements
		if len(statements) != len(single) {
			t.Fatalf("%q: %d statements of %d", text, len(statements), len(single))
		}
		for i, st := range statements {
			if reflect.TypeOf(st) != reflect.TypeOf(single[i]) || !reflect.DeepEqual(st.Targets(), single[i].Targets()) {
				t.Fatalf("%q: %+v became %+v", text, single[i], st)
			}
			create, ok := st.(*viewkeeper.Create)
			if !ok {
				continue
			}
			if create.Canonical != single[i].(*viewkeeper.Create).Canonical || create.SQL != single[i].(*viewkeeper.Create).SQL {
				t.Fatalf("%q: %q became %q", text, single[i].(*viewkeeper.Create).SQL, create.SQL)
			}
			if text[create.Offset:create.Offset+len(create.SQL)] != create.SQL {
				t.Fatalf("%q does not stand at %d of %q", create.SQL, create.Offset, text)
			}
		}
		if pieces := ddl.Split(text); len(pieces) != 1 || pieces[0].Query {
			t.Fatalf("%q splits into %+v", text, pieces)
		}
	})
}
