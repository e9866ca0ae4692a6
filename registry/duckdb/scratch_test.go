package duckdb

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// TestStubsByChance changes, reads, keeps, undoes and resets at random, also with an
// interrupt in the middle: what is bound must always be what a plain map says.
func TestStubsByChance(t *testing.T) {
	const steps = 3000
	p := openTestPlanner(t)
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	defer func() {
		if t.Failed() {
			t.Logf("seed %d", seed)
		}
	}()
	kept, now := map[viewkeeper.Name]string{}, map[viewkeeper.Name]string{}
	types := []string{"INTEGER", "VARCHAR", "DATE", untypedName}
	for step := range steps {
		name := viewkeeper.MakeName([]string{"main", "s1", "s7", "s8"}[rng.IntN(4)], fmt.Sprint("n", rng.IntN(4)))
		switch rng.IntN(12) {
		case 0:
			if err := p.Settle(t.Context(), true); err != nil {
				t.Fatal(err)
			}
			kept = maps.Clone(now)
		case 1:
			if err := p.Settle(t.Context(), false); err != nil {
				t.Fatal(err)
			}
			now = maps.Clone(kept)
		case 2:
			if rng.IntN(20) > 0 {
				continue
			}
			if err := p.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			clear(now)
			clear(kept)
		case 3: // what was to be made may be there, or not
			for n := range p.scratch.made {
				p.scratch.made[n] = unsure()
			}
		case 4, 5, 6, 7:
			change := registry.Stub{Name: name}
			delete(now, name)
			if rng.IntN(3) > 0 {
				now[name] = types[rng.IntN(len(types))]
				change.Columns = []viewkeeper.Column{{Name: "x", Type: now[name]}}
			}
			if _, err := p.Bind(t.Context(), []registry.Stub{change}, nil); err != nil {
				t.Fatal(err)
			}
		default:
			other := viewkeeper.MakeName("s1", "n0")
			got, err := p.Bind(t.Context(), nil, []registry.Query{{Text: "SELECT * FROM " + name.SQL() + " AS a CROSS JOIN " + other.SQL() + " AS b"}})
			if err != nil {
				t.Fatal(err)
			}
			want := []viewkeeper.Column{{Name: "x", Type: now[name]}, {Name: "x_1", Type: now[other]}}
			if there := now[name] != "" && now[other] != ""; there != (got[0].Err == nil) || there && !slices.Equal(got[0].Columns, want) {
				t.Fatalf("step %d: %s and %s: %v, %v; the stubs are %v", step, name, other, got[0].Err, got[0].Columns, now)
			}
		}
	}
}

// TestUnreadStubsAreNotMade: the engine hears of a stub when somebody reads it.
func TestUnreadStubsAreNotMade(t *testing.T) {
	p := openTestPlanner(t)
	var stubs []registry.Stub
	for i := range 1000 {
		stubs = append(stubs, registry.Stub{Name: viewkeeper.MakeName("s1", fmt.Sprint("v", i)), Columns: []viewkeeper.Column{{Name: "x", Type: "INTEGER"}}})
	}
	if _, err := p.Bind(t.Context(), stubs, []registry.Query{{Text: "SELECT a.x FROM s1.v7 AS a JOIN s1.v9 AS b USING (x)"}}); err != nil {
		t.Fatal(err)
	}
	if n := len(p.scratch.made); n != 2 {
		t.Errorf("%d stubs were made for a query that reads two", n)
	}
}
