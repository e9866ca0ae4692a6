package engine

import (
	"context"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// A Bind that was given up may have arrived or not: how trials ended is told again
// until it is known to have been heard, and counts once.
func TestTrialsEndOnce(t *testing.T) {
	planner, err := duckdb.Open(context.Background(), duckdb.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer planner.Close()
	stub := func(name string) []registry.Stub {
		return []registry.Stub{{Name: viewkeeper.MakeName("", name), Columns: []viewkeeper.Column{{Name: "x", Type: "INTEGER"}}}}
	}
	for name, arrived := range map[string]bool{"arrived": true, "lost on its way": false} {
		t.Run(name, func(t *testing.T) {
			if err := planner.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}
			c := &child{planner: planner}
			bind := func(p bindParams) []registry.Bound {
				t.Helper()
				got, err := c.bind(t.Context(), p)
				if err != nil {
					t.Fatal(err)
				}
				return got.([]registry.Bound)
			}
			bind(bindParams{Trial: 7, Stubs: stub("kept")})
			if arrived {
				bind(bindParams{Trial: 8, Ended: []trialEnd{{7, true}}, Stubs: stub("undone")})
			}
			bind(bindParams{Trial: 9, Ended: []trialEnd{{7, true}, {8, false}}, Stubs: stub("new")})
			bind(bindParams{Trial: 9, Ended: []trialEnd{{7, true}, {8, false}}, Stubs: stub("newer")})
			got := bind(bindParams{Trial: 9, Queries: []registry.Query{
				{Text: "SELECT * FROM main.kept"}, {Text: "SELECT * FROM main.new, main.newer"}, {Text: "SELECT * FROM main.undone"}}})
			if got[0].Err != nil || got[1].Err != nil || got[2].Err == nil {
				t.Errorf("kept: %v, of this trial: %v, undone: %v", got[0].Err, got[1].Err, got[2].Err)
			}
		})
	}
}
