package view

import (
	"context"
	"os"
	"sync/atomic"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/plancache"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// asked counts the queries that a planner is asked about.
type asked struct {
	registry.Planner
	parsed, bound atomic.Int64
}

func (a *asked) Parse(ctx context.Context, q []registry.Query) ([]registry.Parsed, error) {
	a.parsed.Add(int64(len(q)))
	return a.Planner.Parse(ctx, q)
}

func (a *asked) Bind(ctx context.Context, s []registry.Stub, q []registry.Query) ([]registry.Bound, error) {
	a.bound.Add(int64(len(q)))
	return a.Planner.Bind(ctx, s, q)
}

// TestAStartFromItsCopyPlansNothing: a node that starts with its copy of the table asks
// the planner nothing that the run before asked, and one whose file of answers was lost
// or damaged asks again; the factory is the same.
func TestAStartFromItsCopyPlansNothing(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	o.accept("", view("w", "SELECT a, a + 1 AS more FROM v"))
	o.accept("", view("x", "SELECT * FROM w"))
	o.heartbeat()
	dir := t.TempDir()

	start := func(what string, parsed, bound int64) string {
		t.Helper()
		planner := &asked{Planner: registrytest.NewModel(registrytest.Relation("main.t", "a", "INTEGER", "b", "VARCHAR"))}
		cfg := withCopy(t, b.Addr(), dir)
		cfg.Base = base(t, planner)
		n := run(t, cfg, fast())
		n.ready()
		n.version(o.version)
		if p, b := planner.parsed.Load(), planner.bound.Load(); p != parsed || b != bound {
			t.Errorf("%s: %d texts were parsed and %d planned, want %d and %d", what, p, b, parsed, bound)
		}
		digest := n.Current().BuildDigest()
		n.stop()
		return digest
	}
	first := start("the first start", 3, 3)
	check := func(what string, parsed, bound int64) {
		t.Helper()
		if got := start(what, parsed, bound); got != first {
			t.Errorf("%s: another factory than before", what)
		}
	}
	check("a start with answers", 0, 0)

	path := plancache.Path(dir)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("nonsense"), 0o644); err != nil {
		t.Fatal(err)
	}
	check("another file", 3, 3)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check("no file", 3, 3)
	whole[len(whole)-1] ^= 1 // in the last definition's plan
	if err := os.WriteFile(path, whole, 0o644); err != nil {
		t.Fatal(err)
	}
	check("a damaged answer", 0, 1)
	check("a start after that", 0, 0)

	o.accept("", view("w", "SELECT a, a + 2 AS other FROM v"))
	o.heartbeat()
	first = start("a change while it was away", 1, 2) // w, and x that reads it
	check("a start after the change", 0, 0)
	if v := o.version; v != viewkeeper.Version(4) {
		t.Errorf("version %s", v)
	}
}
