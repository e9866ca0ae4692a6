package view

import (
	"slices"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// A node that starts over a table that lacks a definition says so, and no longer when
// that is put back.
func TestADefinitionThatIsGoneIsMissed(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	o.accept("", view("w", "SELECT a FROM v"))
	sum := fold.NewLive(nil)
	for _, r := range o.rows {
		sum.Put(r)
	}
	o.last.Live = sum.At(o.version)
	o.put(o.last)
	well := run(t, config(t, b.Addr(), "n1"), fast())
	well.ready()
	well.degraded(viewkeeper.ReasonTableDamaged, false)

	o.raw(topics.Table(), "main.v", nil)
	o.raw(topics.Table(), "main.v", []byte("rubbish"))
	o.raw(topics.Table(), "stranger", []byte("the last batch is not compacted"))
	b.Cluster().Compact()
	n := run(t, config(t, b.Addr(), "n2"), fast())
	n.ready()
	n.has("main.w!")
	n.degraded(viewkeeper.ReasonTableDamaged, true)
	well.has("main.v", "main.w")

	o.put(codec.Row{Row: o.rows["v"]})
	n.until("v", func() bool { return len(n.names()) == 2 })
	n.degraded(viewkeeper.ReasonTableDamaged, false)
	n.has("main.v", "main.w")
}

// A definition was lost for good, and the catalog goes on without it: neither a node that
// ran through it nor one that starts from its copy keeps it.
func TestADefinitionThatWasGivenUpIsKeptByNobody(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	o.accept("", view("w", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, b.Addr(), dir, o)
	runs := run(t, config(t, b.Addr(), "n2"), fast())
	runs.ready()

	o.raw(topics.Table(), "main.v", nil)
	o.heartbeat() // the last batch is never compacted
	b.Cluster().Compact()
	o.takeOver()
	d, rows := o.decision("", view("x", "SELECT a FROM t"))
	sum := fold.NewLive([]viewkeeper.Row{o.rows["w"], rows[0]})
	o.put(&codec.Commit{
		Version: d.Version, Epoch: o.epoch, Owner: o.name, DefinitionsTopic: o.topic,
		Decisions: []viewkeeper.Decision{d}, Rows: rows, Live: sum.At(d.Version),
	})
	o.put(codec.Row{Row: rows[0]})
	o.decide(d)

	for _, n := range []*running{runs, run(t, withCopy(t, b.Addr(), dir), fast())} {
		n.until("the definitions", func() bool { return slices.Equal(n.names(), []string{"main.w", "main.x"}) })
		n.degraded(viewkeeper.ReasonTableDamaged, false)
		n.ready()
	}
}
