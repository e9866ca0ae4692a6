package view

import (
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
