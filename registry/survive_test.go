package registry_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// TestSurvival: who is a victim of a change, and who is not.
func TestSurvival(t *testing.T) {
	pre := rowsOf(t,
		"CREATE VIEW a AS SELECT a, d FROM u",
		"CREATE VIEW b AS SELECT d FROM a",
		"CREATE VIEW c AS SELECT * FROM b",
		"CREATE VIEW all_of AS SELECT * FROM a",
		"CREATE VIEW broken AS SELECT e FROM a",
		"CREATE VIEW gone AS SELECT a FROM a",
		"CREATE VIEW hurt AS SELECT a FROM gone",
	)
	post := append(rowsOf(t), pre[1:5]...)
	post = append(post, pre[6], rowOf(t, 9, "CREATE VIEW a AS SELECT a, 1 AS e FROM u"))
	base, planner := newBase(t, quiet())
	s, err := registry.CheckDependentsSurvive(t.Context(), base, pre, post)
	if err != nil {
		t.Fatal(err)
	}
	if s.OK() {
		t.Error("everything survives")
	}
	got := fmt.Sprintf("%v %v", names(s.Broken), s.Repaired)
	if want := "[main.b main.hurt main.c<main.b] [main.broken]"; got != want {
		t.Errorf("broken and repaired %s, want %s", got, want)
	}
	if len(s.Changed) != 2 || s.Changed[0].Name.View != "a" || s.Changed[1].Name.View != "all_of" {
		t.Errorf("changed %+v", s.Changed)
	}
	if planner.parsed != 8 {
		t.Errorf("%d texts parsed; only what differs is read again", planner.parsed)
	}
	if s, err := registry.CheckDependentsSurvive(t.Context(), base, post, post); err != nil || !s.OK() || len(s.Changed)+len(s.Repaired) > 0 {
		t.Errorf("nothing changes: %v %+v", err, s)
	}
}

func names(broken []viewkeeper.Broken) []string {
	var out []string
	for _, b := range broken {
		n := b.Name.String()
		if b.RootCause != nil {
			n += "<" + b.RootCause.String()
		}
		out = append(out, n)
	}
	return out
}

// TestSkippedRows: no row is fatal; each is skipped at its stage, and a live
// snapshot says so in the log and to the counter, a probe to nobody.
func TestSkippedRows(t *testing.T) {
	var log strings.Builder
	counted := map[string]int{}
	options := registry.BaseOptions{
		Log:         slog.New(slog.NewTextHandler(&log, nil)),
		LoadFailure: func(n viewkeeper.Name) { counted[n.String()]++ },
	}
	row := func(name, sql string) viewkeeper.Row {
		n, _ := viewkeeper.ParseName(name)
		return viewkeeper.Row{Name: n, Version: 1, Definition: &viewkeeper.Definition{Name: n, Kind: viewkeeper.KindView, SQL: sql}}
	}
	rows := []viewkeeper.Row{
		row("parse", "CREATE VIEW parse AS"),
		row("other", "CREATE VIEW another AS SELECT 1 AS x"),
		row("statement", "DROP VIEW statement"),
		row("kind", "CREATE MATERIALIZED VIEW kind WITH (extract_query = 'x')"),
		row("nul", "CREATE VIEW nul AS SELECT '\x00' AS x"),
		row("build", "CREATE VIEW build AS SELECT nope FROM u"),
		row("collateral", "CREATE VIEW collateral AS SELECT * FROM build"),
		row("p", "CREATE VIEW p AS SELECT * FROM q"),
		row("q", "CREATE VIEW q AS SELECT * FROM p"),
		row("u", "CREATE VIEW u AS SELECT 1 AS a"),
		row("good", "CREATE VIEW good AS SELECT a FROM u"),
		{Name: viewkeeper.MakeName("", "dropped"), Version: 7},
	}
	base, _ := newBase(t, options)
	f, err := registry.BuildFactory(t.Context(), base, rows, registry.Probe)
	if err != nil {
		t.Fatal(err)
	}
	if log.Len() > 0 || len(counted) > 0 {
		t.Errorf("a probe logged %q and counted %v", log.String(), counted)
	}
	var got strings.Builder
	for _, x := range f.Failures() {
		fmt.Fprintln(&got, x.Name, x.Stage, x.Code)
	}
	want := `main.build build BIND
main.collateral build BIND
main.kind parse OPTION
main.nul parse SYNTAX
main.other parse NAME
main.p validate CYCLE
main.parse parse NOT_ONE_QUERY
main.q validate CYCLE
main.statement parse SYNTAX
main.u validate NAME
`
	if got.String() != want {
		t.Errorf("failures:\n%swant:\n%s", got.String(), want)
	}
	if d, ok := f.Definition(viewkeeper.MakeName("", "good")); !ok || !d.OK() || f.Len() != 11 || f.Version() != 7 {
		t.Errorf("good: %+v, %d definitions at %s", d, f.Len(), f.Version())
	}
	if _, err := registry.BuildFactory(t.Context(), base, rows, registry.LiveSnapshot); err != nil {
		t.Fatal(err)
	}
	if len(counted) != 10 || strings.Count(log.String(), "\n") != 10 || !strings.Contains(log.String(), "definition=main.collateral stage=build code=BIND reason=\"reads main.build\" root_cause=main.build") {
		t.Errorf("counted %v, log:\n%s", counted, log.String())
	}
}
