package view

import (
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// purge takes drops out of the table, as an owner does: first the commit row that says
// so. The broker then compacts, as if all of it were old.
func (o *owner) purge(addr string, compact func(), names ...string) {
	o.t.Helper()
	again := *o.last
	for _, name := range names {
		again.PurgedThrough = max(again.PurgedThrough, o.rows[name].Version)
	}
	o.put(&again)
	for _, name := range names {
		p := codec.Purge{Name: o.rows[name].Name, Version: o.rows[name].Version, Epoch: o.epoch}
		o.raw(o.topics.Table(), p.Key(), nil, codec.TableHeaders(p)...)
	}
	s := settings(o.t, addr)
	a, err := sarama.NewClusterAdmin(s.Brokers, s.Sarama())
	if err != nil {
		o.t.Fatal(err)
	}
	defer a.Close()
	none := "0"
	if err := a.IncrementalAlterConfig(sarama.TopicResource, o.topics.Table(), map[string]sarama.IncrementalAlterConfigsEntry{
		"delete.retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &none}}, false); err != nil {
		o.t.Fatal(err)
	}
	o.heartbeat() // the last batch is never compacted
	compact()
}

// A node that was away for longer than drops are kept learns of them all the same: it
// reads the table from its beginning. Until that is whole it serves what it had.
func TestAwayForLongerThanDropsAreKept(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("1", view("kept", "SELECT a FROM t"))
	o.accept("2", view("gone", "SELECT a FROM t"))
	proxy, err := kafkaproxy.Start(t.Context(), []string{b.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	n := run(t, config(t, proxy.Brokers(), "n1"), fast())
	n.ready()
	n.has("main.gone", "main.kept")
	fresh := n.following

	proxy.Cut()
	o.accept("3", change{"gone", ""})
	o.accept("4", view("new", "SELECT b FROM t"))
	o.purge(b.Addr(), b.Cluster().Compact, "gone")
	o.accept("5", view("newer", "SELECT b FROM t"))
	n.has("main.gone", "main.kept")

	seen := n.Current()
	proxy.Heal()
	n.until("version 5", func() bool {
		if f := n.Current(); f != seen {
			seen = f
			if f.Version() == 5 {
				return true
			}
			if got := namesOf(f); len(got) != 2 {
				t.Errorf("version %s was served with %v", f.Version(), got)
			}
		}
		return false
	})
	n.has("main.kept", "main.new", "main.newer")
	n.mu.Lock()
	if n.following == fresh || n.accepted != n.following {
		t.Error("the table was not read anew")
	}
	n.mu.Unlock()
	n.ready()

	// What it follows now goes on: a purge that it sees costs nothing.
	again := n.following
	o.accept("6", change{"new", ""})
	o.accept("7")
	n.version(7)
	o.purge(b.Addr(), b.Cluster().Compact, "new")
	o.accept("8", view("new", "SELECT a FROM t"))
	n.version(8)
	n.has("main.kept", "main.new", "main.newer")
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.following != again || n.accepted != again {
		t.Error("the table was read anew")
	}
}
