package view

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// changeCost is how many allocations it takes a node to read a change and to build it, in
// a catalog of n definitions. Nothing of it runs: no broker, no goroutine.
func changeCost(t *testing.T, count int) float64 {
	t.Helper()
	cfg := config(t, "127.0.0.1:1", "n1")
	cfg.Log = slog.New(slog.DiscardHandler)
	n, err := newNode(cfg, fast())
	if err != nil {
		t.Fatal(err)
	}
	s, next := n.following, int64(0)
	add := func(r codec.Record) {
		key, value := codec.EncodeRecord(r)
		n.record(s, next, codec.DecodeRecord(key, value), value)
		next++
	}
	row := func(i int, v viewkeeper.Version) viewkeeper.Row {
		name := viewkeeper.MakeName("", fmt.Sprintf("v%06d", i))
		return viewkeeper.Row{Name: name, Version: v, Epoch: 1, Definition: &viewkeeper.Definition{
			Name: name, Kind: viewkeeper.KindView, ID: 1, SQL: fmt.Sprintf("CREATE VIEW %s AS SELECT a, %d AS v FROM t", name, v)}}
	}
	version := viewkeeper.Version(count)
	add(&codec.Fence{Nonce: "00", Owner: "o"})
	add(&codec.Commit{Version: version, Epoch: 1, Owner: "o"})
	for i := range count {
		add(codec.Row{Row: row(i, 1)})
	}
	gap, _ := s.fold.NeedEnd()
	s.fold.EndIs(gap, next)
	p, rows := n.takePending()
	if !p.full || len(rows) != count {
		t.Fatalf("%d rows are to be built, of %d", len(rows), count)
	}
	if err := n.reg.Reload(t.Context(), p.version, rows); err != nil {
		t.Fatal(err)
	}
	n.built(p, nil)
	return testing.AllocsPerRun(20, func() {
		version++
		r := row(count/2, version)
		add(&codec.Commit{Version: version, Epoch: 1, Owner: "o", Rows: []viewkeeper.Row{r}})
		add(codec.Row{Row: r})
		p, rows := n.takePending()
		if p.full || len(rows) != 1 {
			t.Fatalf("%d rows are to be built", len(rows))
		}
		if err := n.reg.Advance(t.Context(), p.version, rows); err != nil {
			t.Fatal(err)
		}
		n.built(p, nil)
		_ = n.Status()
	})
}

// What a change costs a node hardly depends on how large the catalog is: by the depth of
// the trees that its definitions lie in.
func TestTheCostOfAChangeDoesNotGrow(t *testing.T) {
	small, large := changeCost(t, 100), changeCost(t, 3000)
	if large > small*1.5 {
		t.Errorf("a change takes %v allocations at 100 definitions and %v at 3,000", small, large)
	}
	t.Logf("%v allocations at 100 definitions, %v at 3,000", small, large)
}
