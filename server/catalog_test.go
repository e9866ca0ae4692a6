package server

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// withCatalog gives the world a factory of a few definitions over the base
// relation t: daily and s.weekly build, report reads both, and broken does not.
func withCatalog(t *testing.T) *world {
	t.Helper()
	planner := registrytest.NewModel(registrytest.Relation("main.t", "a", "INTEGER"))
	base, err := registry.NewBase(t.Context(), planner, registry.BaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var rows []viewkeeper.Row
	for i, sql := range []string{
		"CREATE VIEW daily AS SELECT a FROM t",
		"CREATE VIEW s.weekly(w) AS SELECT a FROM main.t",
		"CREATE VIEW report AS SELECT a FROM daily UNION ALL SELECT w FROM s.weekly",
		"CREATE VIEW broken AS SELECT nothing FROM t",
		"CREATE VIEW victim AS SELECT * FROM broken",
	} {
		key, err := RecordKey(ddl.DefaultLimits(), sql, "")
		if err != nil {
			t.Fatal(err)
		}
		name, err := viewkeeper.ParseName(key)
		if err != nil {
			t.Fatal(err)
		}
		v := viewkeeper.Version(i + 1)
		rows = append(rows, viewkeeper.Row{Name: name, Version: v, Definition: &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: sql, ID: v}})
	}
	w := newWorld()
	if w.factory, err = registry.BuildFactory(t.Context(), base, rows, registry.Probe); err != nil {
		t.Fatal(err)
	}
	return w
}

// listed gives the names in a listing.
func listed(t *testing.T, r reply) string {
	t.Helper()
	var page struct {
		Definitions []struct {
			Name string `json:"name"`
		} `json:"definitions"`
	}
	if err := json.Unmarshal([]byte(r.body), &page); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, d := range page.Definitions {
		names = append(names, d.Name)
	}
	return strings.Join(names, " ")
}

func TestDefinitions(t *testing.T) {
	url := withCatalog(t).start(t)
	for query, names := range map[string]string{
		"":                   "main.broken main.daily main.report main.victim s.weekly",
		"?like=d%25":         "main.daily",
		"?state=broken":      "main.broken main.victim",
		"?kind=view&like=s":  "",
		"?kind=materialized": "",
		"?after=main.report": "main.victim s.weekly",
		"?after=report":      "main.victim s.weekly",
	} {
		r := do(t, "GET", url+"/v1/definitions"+query, "")
		want(t, r, 200)
		if got := listed(t, r); got != names {
			t.Errorf("%s lists %s, want %s", query, got, names)
		}
	}
	want(t, do(t, "GET", url+"/v1/definitions?kind=table", ""), 400, "kind")
}

// The pages of any size together are the whole listing.
func TestDefinitionsPages(t *testing.T) {
	url := withCatalog(t).start(t)
	for _, limit := range []string{"1", "2", "3", "5", "6"} {
		var all []string
		for after := ""; ; {
			r := do(t, "GET", url+"/v1/definitions?limit="+limit+"&after="+after, "")
			want(t, r, 200)
			all = append(all, listed(t, r))
			next, ok := r.field(t, "next").(string)
			if !ok {
				break
			}
			after = next
		}
		if got := strings.Join(all, " "); got != "main.broken main.daily main.report main.victim s.weekly" {
			t.Errorf("limit %s: %s", limit, got)
		}
	}
}

func TestDefinition(t *testing.T) {
	url := withCatalog(t).start(t)
	for _, path := range []string{"/v1/definitions/daily", "/v1/definitions/MAIN.daily", `/v1/definitions/%22main%22.%22daily%22`} {
		r := do(t, "GET", url+path, "")
		want(t, r, 200, `"name":"main.daily"`, `"columns":[{"name":"a","type":"INTEGER"}]`, `"reads":[{"name":"main.t","kind":"relation"}]`,
			`"read_by":["main.report"]`, `"state":"ok"`, `"sql":"CREATE VIEW daily AS SELECT a FROM t"`, `"comment":null`, `"history_length":1`)
		if got := r.header.Get(HeaderVersion); got != "5" {
			t.Errorf("%s is %s", HeaderVersion, got)
		}
	}
	want(t, do(t, "GET", url+"/v1/definitions/broken", ""), 200, `"columns":[]`, `"state":"broken"`, `"failure":{"name":"main.broken","stage":"build"`)
	want(t, do(t, "GET", url+"/v1/definitions/t", ""), 404, "base relation")
	want(t, do(t, "GET", url+"/v1/definitions/nothing", ""), 404, "NOT_FOUND")
	want(t, do(t, "GET", url+"/v1/definitions/a.b.c", ""), 400, "NAME")
}

// A node that has not been ready yet holds the base alone. That is not an empty
// catalog, and must not look like one.
func TestCatalogNotReady(t *testing.T) {
	w := withCatalog(t)
	w.status.Ready, w.status.ReadyReasons = false, []string{viewkeeper.ReasonCatchingUp}
	url := w.start(t)
	for _, path := range []string{"/v1/definitions", "/v1/definitions/daily", "/v1/failures", "/v1/lineage/daily"} {
		want(t, do(t, "GET", url+path, ""), 503, "NOT_READY", "CATCHING_UP")
	}
	w.change(func() { w.status.ReadyReasons = []string{viewkeeper.ReasonStale} })
	want(t, do(t, "GET", url+"/v1/definitions", ""), 200)
}

func TestFailures(t *testing.T) {
	r := do(t, "GET", withCatalog(t).start(t)+"/v1/failures", "")
	want(t, r, 200, `"name":"main.broken"`, `"stage":"build"`, `"root_cause":null`, `"name":"main.victim"`, `"root_cause":"main.broken"`, `"since":`)
}

func TestLineage(t *testing.T) {
	url := withCatalog(t).start(t)
	for query, in := range map[string][]string{
		"report?direction=up":         {`{"name":"main.t","kind":"relation"}`, `{"from":"main.daily","to":"main.report"}`, `{"from":"main.t","to":"main.daily"}`},
		"report?direction=up&depth=1": {`{"from":"main.daily","to":"main.report"}`},
		"t?direction=down":            {`{"from":"s.weekly","to":"main.report"}`},
		"daily":                       {`{"from":"main.t","to":"main.daily"}`, `{"from":"main.daily","to":"main.report"}`},
	} {
		want(t, do(t, "GET", url+"/v1/lineage/"+query, ""), 200, in...)
	}
	if r := do(t, "GET", url+"/v1/lineage/report?direction=up&depth=1", ""); strings.Contains(r.body, "main.t") {
		t.Errorf("depth 1 reaches further: %s", r.body)
	}
	want(t, do(t, "GET", url+"/v1/lineage/nothing", ""), 404, "NOT_FOUND")
	want(t, do(t, "GET", url+"/v1/lineage/t?direction=sideways", ""), 400, "direction")
}

// Each table of the schema vk is given in the shape of its HTTP answer.
func TestSystemTables(t *testing.T) {
	w := withCatalog(t)
	w.decisions = []viewkeeper.Decision{{StatementID: "s", Version: 1, SQL: create, Rows: []viewkeeper.RowJSON{{}}}}
	s, err := New(Config{Node: w, Engine: w, Checker: w, Settings: []Setting{{"http", ":1", "flag"}}})
	if err != nil {
		t.Fatal(err)
	}
	for table, in := range map[string]string{
		"definitions": `"read_by":["main.report"]`,
		"columns":     `{"definition":"s.weekly","position":1,"name":"w","type":"INTEGER"}`,
		"reads":       `{"definition":"main.daily","name":"main.t","kind":"relation"}`,
		"failures":    `"root_cause":"main.broken"`,
		"decisions":   `"statement_id":"s"`,
		"nodes":       `"node":"n2"`,
		"settings":    `{"name":"http","source":"flag","value":":1"}`,
		"partitions":  `[]`,
	} {
		rows, err := s.systemRows(context.Background(), []string{table})
		if err != nil {
			t.Fatal(err)
		}
		if got := string(rows[table]); !strings.Contains(got, in) || got[0] != '[' {
			t.Errorf("vk.%s is %s", table, got)
		}
		if table == "decisions" && strings.Contains(string(rows[table]), `"rows"`) {
			t.Error("vk.decisions holds rows")
		}
	}
}
