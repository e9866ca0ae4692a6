package view

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// The owner is upgraded first, and writes a format that this node does not know. The
// node goes on: it serves what it knows of it, says so, and is as before when the
// catalog is written again in its own format.
func TestANewerOwnerIsFollowed(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	cfg := config(t, b.Addr(), "n1")
	cfg.DataDir = t.TempDir()
	n := run(t, cfg, fast())
	n.ready()

	o.newer, o.name = true, "owner-2"
	o.takeOver()
	o.heartbeat()
	o.accept("upgraded", view("w", "SELECT b FROM v"), view("x", "SELECT a FROM t"))
	n.version(2)
	n.has("main.v", "main.w!", "main.x")
	n.degraded(viewkeeper.ReasonUnknownRecords, true)
	if d := n.decided("upgraded", 1); d.Verdict != viewkeeper.Accepted || d.Owner != "owner-2" {
		t.Errorf("%+v", d)
	}
	if s := n.Status(); !s.Ready {
		t.Errorf("%+v", s)
	}
	// One that starts now sees the same.
	fresh := run(t, config(t, b.Addr(), "n2"), fast())
	fresh.ready()
	fresh.has("main.v", "main.w!", "main.x")
	fresh.degraded(viewkeeper.ReasonUnknownRecords, true)
	if fresh.Status().Digest != n.Status().Digest {
		t.Error("the digests differ")
	}

	// Put back in this program's format.
	o.newer = false
	o.takeOver()
	for _, r := range o.rows {
		r.Epoch = o.epoch
		o.put(codec.Row{Row: r})
	}
	o.heartbeat()
	o.accept("", view("x", "SELECT b FROM t"))
	n.version(3)
	n.degraded(viewkeeper.ReasonUnknownRecords, false)
	fresh.degraded(viewkeeper.ReasonUnknownRecords, false)
}

// Neither what is not a record nor what a newer program says of itself takes anything
// from those who read the decisions and the nodes.
func TestPoisonBesideTheTable(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.raw(topics.Decisions(), "x", []byte("rubbish"))
	o.raw(topics.Decisions(), "x", nil)
	o.raw(topics.Decisions(), "", []byte(`{"format":1}`))
	o.accept("first", view("v", "SELECT a FROM t"))
	o.raw(topics.Decisions(), "x", []byte(`{"format":9,"statement_id":"x","version":"nine"}`))
	o.raw(topics.Nodes(), "n8", []byte{0xff, 0})
	o.raw(topics.Nodes(), "", []byte("{}"))
	o.raw(topics.Definitions(), "n8", []byte{0xff, 0})
	cfg := config(t, b.Addr(), "n1")
	cfg.DataDir = t.TempDir()
	n := run(t, cfg, fast())
	n.ready()

	status, err := json.Marshal(viewkeeper.Status{Node: "n9", Version: 1, Ready: true, Degraded: []string{"SOME_NEW_CODE"}})
	if err != nil {
		t.Fatal(err)
	}
	o.raw(topics.Nodes(), "n9", slices.Concat([]byte(`{"format":2,"load":{"cpu":0.5},`), status[1:]))
	n.sees("n1", "n9")
	o.newer = true
	o.accept("second", view("w", "SELECT a FROM t"))
	n.decided("second", 1)
	n.until("the history", func() bool {
		page, err := n.Decisions(t.Context(), DecisionQuery{Limit: 10})
		return err == nil && len(page.Decisions) == 2 && page.Decisions[1].StatementID == "second" && page.CompleteFrom == 0
	})
}

// What was accepted is not judged again. A node whose engine knows less than the owner's
// has the same catalog, and says which definitions do not build there; what drops them
// works, and replaying all of it too.
func TestNodesWithDifferentEnginesHaveOneCatalog(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"), view("w", "SELECT b FROM t"), view("x", "SELECT b FROM w"))
	o.accept("", view("odd", "SELECT a b FROM FROM")) // by a rule of today it would not even parse
	less := config(t, b.Addr(), "n2")
	less.Base = base(t, registrytest.NewModel(registrytest.Relation("main.t", "a", "INTEGER")))
	n1, n2 := run(t, config(t, b.Addr(), "n1"), fast()), run(t, less, fast())
	n1.ready()
	n2.ready()
	n1.version(2)
	n2.version(2)
	n1.has("main.odd!", "main.v", "main.w", "main.x")
	n2.has("main.odd!", "main.v", "main.w!", "main.x!")
	n2.degraded(viewkeeper.ReasonBroken, true)
	s1, s2 := n1.Status(), n2.Status()
	if s1.Version != s2.Version || s1.Digest != s2.Digest || s1.BuildDigest == s2.BuildDigest || s1.Broken != 1 || s2.Broken != 3 {
		t.Errorf("%+v\n%+v", s1, s2)
	}
	o.accept("", change{"odd", ""}, change{"x", ""})
	n1.version(3)
	n2.version(3)
	n1.has("main.v", "main.w")
	n2.has("main.v", "main.w!")
	fresh := run(t, config(t, b.Addr(), "n3"), fast())
	fresh.ready()
	fresh.has("main.v", "main.w")
	if fresh.Status().Digest != n2.Status().Digest {
		t.Error("the digests differ")
	}
}
