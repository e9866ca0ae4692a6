package registrytest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// TestLarge holds the large catalog to what its users are told of it: a real owner
// accepts each statement, and it has the shape of its comment.
func TestLarge(t *testing.T) {
	const n = 400
	baseSQL, statements := registrytest.Large(n)
	planner, err := openEngine(t, baseSQL)
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Close()
	base, err := registry.NewBase(t.Context(), planner, registry.BaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := registry.LoadCatalog(t.Context(), base, nil, registry.CatalogOptions{Epoch: 1, Owner: "test"})
	if err != nil {
		t.Fatal(err)
	}
	if len(statements) != n {
		t.Fatalf("%d statements, want %d", len(statements), n)
	}
	level := map[viewkeeper.Name]int{}
	readers := map[viewkeeper.Name][]viewkeeper.Name{}
	schemas := map[string]int{}
	var counts [7]int
	for i, text := range statements {
		if len(text) < 150 || len(text) > 900 {
			t.Errorf("a statement of %d bytes: %s", len(text), text)
		}
		out, err := catalog.Judge(t.Context(), viewkeeper.Submission{Key: fmt.Sprint("record-", i), SQL: text, ID: fmt.Sprint("t:", i), Offset: int64(i)})
		if err != nil {
			t.Fatal(err)
		}
		if out.Decision.Verdict != viewkeeper.Accepted {
			t.Fatalf("%s %s:\n%s", out.Decision.Code, out.Decision.Message, text)
		}
	}
	for d := range catalog.Snapshot().Definitions() {
		name := d.Row.Name
		schemas[name.Schema]++
		for _, r := range d.Reads {
			read, err := viewkeeper.ParseName(r.Name)
			if err != nil {
				t.Fatal(err)
			}
			readers[read] = append(readers[read], name)
		}
	}
	for _, text := range statements {
		head, _, _ := strings.Cut(strings.TrimPrefix(text, "CREATE VIEW "), " AS")
		name, err := viewkeeper.ParseName(head)
		if err != nil {
			t.Fatal(err)
		}
		level[name] = max(level[name], 1)
		counts[level[name]]++
		for _, r := range readers[name] {
			level[r] = max(level[r], level[name]+1)
		}
	}
	if counts[1] < n/2 || counts[1] > n*6/10 || slices.Contains(counts[1:], 0) {
		t.Errorf("definitions by level: %v", counts[1:])
	}
	root, _ := viewkeeper.ParseName(registrytest.LargeRoot)
	two := 0
	for _, r := range readers[root] {
		if level[r] == 3 {
			two++
		}
	}
	if len(readers[root]) != n/10 || two != n/100 {
		t.Errorf("%d read the root, %d of them through another reader", len(readers[root]), two)
	}
	if len(schemas) != 4 {
		t.Errorf("schemas: %v", schemas)
	}
	if _, again := registrytest.Large(n); !slices.Equal(statements, again) {
		t.Error("a second call gives others")
	}
	if _, err := ddl.Parse(statements[0]); err != nil {
		t.Error(err)
	}
}
