package duckdb

import (
	"errors"
	"fmt"
	"reflect"
	"sync/atomic"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// TestQueriesOfOneCall: what is parsed and bound side by side is answered as it is alone.
func TestQueriesOfOneCall(t *testing.T) {
	all, alone := openTestPlanner(t), openTestPlanner(t)
	if len(all.lanes) == 1 {
		t.Log("there is one processor, and so one lane")
	}
	var stubs []registry.Stub
	for i := range 40 {
		stubs = append(stubs, registry.Stub{Name: viewkeeper.MakeName("s9", fmt.Sprint("v", i)), Columns: []viewkeeper.Column{{Name: "x", Type: []string{"INTEGER", untypedName, "STRUCT(a INTEGER)[]"}[i%3]}}})
	}
	var queries []registry.Query
	for i, text := range append(append(scriptQueries(t, "parse", "parse"), scriptQueries(t, "bind", "bind")...), truthQueries...) {
		queries = append(queries, registry.Query{Text: text, Strict: i%5 == 0},
			registry.Query{Text: fmt.Sprintf("SELECT a.*, b.x AS y FROM s9.v%d AS a, s9.v%d AS b", i%40, i*7%41)},
			registry.Query{Text: "SELECT * FROM t ASOF JOIN t AS u USING (a, b)"})
	}
	for _, p := range []*Planner{all, alone} {
		if _, err := p.Bind(t.Context(), stubs, nil); err != nil {
			t.Fatal(err)
		}
	}
	parsed, err := all.Parse(t.Context(), queries)
	if err != nil {
		t.Fatal(err)
	}
	bound, err := all.Bind(t.Context(), nil, queries)
	if err != nil {
		t.Fatal(err)
	}
	for i, q := range queries {
		p, err := alone.Parse(t.Context(), []registry.Query{q})
		if err != nil || !reflect.DeepEqual(p[0], parsed[i]) {
			t.Errorf("%s: alone it is parsed as %+v (%v), among others as %+v", q.Text, p, err, parsed[i])
		}
		b, err := alone.Bind(t.Context(), nil, []registry.Query{q})
		if err != nil || !reflect.DeepEqual(b[0], bound[i]) {
			t.Errorf("%s: alone it is bound as %+v (%v), among others as %+v", q.Text, b, err, bound[i])
		}
	}
}

// TestLanesEndWithTheFirstError: no lane begins another call, and a lost engine is what
// the caller hears of.
func TestLanesEndWithTheFirstError(t *testing.T) {
	p := &Planner{lanes: []*lane{{}, {}, {}}}
	var calls atomic.Int64
	if err := p.each(1000, func(*lane, int) error { calls.Add(1); return nil }); err != nil || calls.Load() != 1000 {
		t.Fatal(err, calls.Load())
	}
	calls.Store(0)
	lost := &registry.LostError{Detail: "gone"}
	err := p.each(1000, func(_ *lane, i int) error {
		if calls.Add(1); i%2 == 0 {
			return lost
		}
		return errors.New("after it")
	})
	if n := calls.Load(); n > 3 || !errors.Is(err, lost) {
		t.Errorf("%v after %d calls", err, n)
	}
}
