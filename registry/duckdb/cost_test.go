package duckdb

import (
	"fmt"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// TestStatementsOfAJudgedChange: how often the engine is asked for a change depends on
// the change, and not on how many definitions there are.
func TestStatementsOfAJudgedChange(t *testing.T) {
	asked := map[string][]int{}
	for _, n := range []int{50, 600} {
		sql, texts := registrytest.Large(n)
		p, err := Open(t.Context(), Options{BaseSQL: sql, Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		base, err := registry.NewBase(t.Context(), p, registry.BaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var rows []viewkeeper.Row
		for i, text := range texts {
			stmt, err := ddl.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			c := stmt.(*viewkeeper.Create)
			v := viewkeeper.Version(i + 1)
			rows = append(rows, viewkeeper.Row{Name: c.Name, Version: v, Definition: &viewkeeper.Definition{Name: c.Name, Kind: c.Kind, SQL: c.SQL, ID: v}})
		}
		catalog, err := registry.LoadCatalog(t.Context(), base, rows, registry.CatalogOptions{})
		if err != nil {
			t.Fatal(err)
		}
		offset := int64(n)
		took := func(what, text string) {
			t.Helper()
			before := p.asked()
			offset++
			out, err := catalog.Judge(t.Context(), viewkeeper.Submission{Key: "k", SQL: text, ID: fmt.Sprint("t:", offset), Offset: offset})
			if err != nil || out.Decision.Verdict != viewkeeper.Accepted {
				t.Fatal(err, out)
			}
			asked[what] = append(asked[what], p.asked()-before)
		}
		root := strings.Replace(texts[0], "CREATE VIEW", "CREATE OR REPLACE VIEW", 1)
		took("a leaf", "CREATE VIEW large.leaf AS SELECT id, amount FROM "+registrytest.LargeRoot)
		took("a leaf again", "CREATE OR REPLACE VIEW large.leaf AS SELECT id, amount + 1 AS amount FROM "+registrytest.LargeRoot)
		took("a root that keeps its schema", strings.Replace(root, "amount > 0", "amount > 1", 1))
		took("its only reader", "CREATE VIEW large.top AS SELECT id FROM large.leaf")
		took("a schema that changes", "CREATE OR REPLACE VIEW large.leaf AS SELECT id::VARCHAR AS id FROM "+registrytest.LargeRoot)
	}
	for what, n := range asked {
		if n[0] != n[1] {
			t.Errorf("%s: the engine was asked %d times among 50 definitions, and %d times among 600", what, n[0], n[1])
		}
	}
	if n := asked["a leaf again"][0]; n != 2 { // its tree, and the plan
		t.Errorf("a leaf: the engine was asked %d times", n)
	}
	t.Log(asked)
}

// asked is how often the engine was asked on any connection.
func (p *Planner) asked() int {
	n := 0
	for _, l := range p.lanes {
		n += l.conn.asked + l.gate.conn.asked
	}
	return n
}
