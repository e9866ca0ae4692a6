package traps

import (
	"fmt"
	"net/http"
	"slices"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// Kafka's clients know a topic by its name: one that is deleted and made anew leaves
// them reading on, and what lies below the offset that they were at is skipped. Each of
// the four topics is made anew under a running fleet, with nothing in it, with fewer
// records than it had, and with more. What was served goes on being served, nobody
// decides over a catalog that was lost, and whoever starts then says the same.
func TestRecreatedTopics(t *testing.T) {
	t.Parallel()
	contents := []struct {
		name string
		of   func(was []*sarama.ConsumerMessage) []*sarama.ConsumerMessage
	}{
		{"emptied", func([]*sarama.ConsumerMessage) []*sarama.ConsumerMessage { return nil }},
		{"shorter", older},
		{"longer", func(was []*sarama.ConsumerMessage) (out []*sarama.ConsumerMessage) {
			for len(out) < 2*len(was)+20 {
				out = append(out, older(was)...)
			}
			return out
		}},
	}
	for topic, after := range map[string]func(w *world, empty bool){
		"table": afterTable, "definitions": afterDefinitions, "decisions": afterDecisions, "nodes": afterNodes,
	} {
		for _, c := range contents {
			t.Run(topic+" "+c.name, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t)
				n := w.Launch("n", "node")
				w.Launch("owner", "owner")
				for i := range 6 {
					w.emit("accepted", fmt.Sprintf("CREATE VIEW v%d AS SELECT a + %d AS a FROM t", i, i))
					w.decided(n)
				}
				fleet.Eventually(t, "the last offset is committed", func() error {
					offset, _, err := w.admin.Committed(w.ctx, string(w.topics.Group()), w.topics.Definitions())
					if err == nil && offset != 6 {
						err = fmt.Errorf("it is %d", offset)
					}
					return err
				})
				fleet.Eventually(t, "all topics have something", func() error {
					for _, name := range w.topics.All() {
						if len(w.read(name)) < 2 {
							return fmt.Errorf("%s has not", name)
						}
					}
					return nil
				})
				w.remake(w.Topic(topic), c.of(w.read(w.Topic(topic))))
				after(w, c.name == "emptied")
				n.WantRows("SELECT max(a) FROM v5", 6, "7")
				n.WaitStatus("/readyz", http.StatusOK)
			})
		}
	}
}

// older is what a topic had before the last statement, as an old backup would: half of
// it, or of the table all before its commit row.
func older(was []*sarama.ConsumerMessage) []*sarama.ConsumerMessage {
	for i, m := range was {
		if c, ok := codec.DecodeRecord(string(m.Key), m.Value).(*codec.Commit); ok && c.Version == 6 {
			return was[:i]
		}
	}
	return was[:len(was)/2]
}

// remake deletes a topic and makes it anew with these records.
func (w *world) remake(topic string, content []*sarama.ConsumerMessage) {
	w.t.Helper()
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	w.must(a.DeleteTopic(topic))
	fleet.Eventually(w.t, topic+" is gone", func() error {
		found, err := w.admin.Describe(w.ctx, topic)
		if _, there := found[topic]; there && err == nil {
			err = fmt.Errorf("it is there")
		}
		return err
	})
	w.Viewkeeper("topics", "create", "--brokers", w.Tools.Brokers, "--catalog", w.Catalog)
	var messages []*sarama.ProducerMessage
	for _, m := range content {
		out := &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(m.Key)}
		if m.Value != nil {
			out.Value = sarama.ByteEncoder(m.Value)
		}
		for _, h := range m.Headers {
			out.Headers = append(out.Headers, *h)
		}
		messages = append(messages, out)
	}
	w.write(messages...)
}

// degraded waits until a node says a reason.
func (w *world) degraded(n *fleet.Proc, reason string) {
	w.t.Helper()
	fleet.Eventually(w.t, n.Name+" says "+reason, func() error {
		var s viewkeeper.Status
		_, err := n.Try(http.MethodGet, "/v1/status", nil, &s)
		if err == nil && !slices.Contains(s.Degraded, reason) {
			err = fmt.Errorf("it says %v", s.Degraded)
		}
		return err
	})
}

// The table is the truth: nobody owns the catalog until it is put back.
func afterTable(w *world, _ bool) {
	n := w.Procs["n"]
	w.says("owner", viewkeeper.ReasonTopicRecreated)
	w.degraded(n, viewkeeper.ReasonTopicRecreated)
	w.Procs["owner"].Stop()
	w.Launch("other", "owner")
	w.says("other", viewkeeper.ReasonTableBehind)
	w.degraded(n, viewkeeper.ReasonTableBehind) // as the owner says
}

// Offsets would be given a second time: nobody decides until somebody says that it is meant.
func afterDefinitions(w *world, empty bool) {
	n := w.Procs["n"]
	w.says("owner", viewkeeper.ReasonTopicRecreated)
	w.degraded(n, viewkeeper.ReasonTopicRecreated)
	w.Procs["owner"].Kill()
	w.Launch("other", "owner")
	w.says("other", viewkeeper.ReasonTopicRecreated)
	if !empty {
		return
	}
	w.Viewkeeper("topics", "adopt", "--brokers", w.Tools.Brokers, "--catalog", w.Catalog)
	w.log(w.Procs["other"], "took over")
	fleet.Eventually(w.t, "the new owner is seen", func() error {
		if s := n.Status(); s.Owner != "other" || slices.Contains(s.Degraded, viewkeeper.ReasonNoOwner) {
			return fmt.Errorf("the owner is %q, %v", s.Owner, s.Degraded)
		}
		return nil
	})
	d := n.Statement("CREATE VIEW after AS SELECT a FROM v5")
	if d.Version <= 6 {
		w.t.Errorf("version %d comes again", d.Version)
	}
	n.WantRows("SELECT max(a) FROM after", d.Version, "7")
}

// The history is shorter. Statements are decided as before, and nothing that was
// decided is decided again.
func afterDecisions(w *world, _ bool) {
	n := w.Procs["n"]
	d := n.Statement("CREATE VIEW after AS SELECT a FROM v5")
	if d.Version != 7 {
		w.t.Errorf("version %d after 6", d.Version)
	}
	n.Decisions(d.Version)
	fresh := w.Serve("fresh", "node")
	fresh.Decisions(d.Version)
	fleet.SameDigests(w.t, n, fresh)
}

// Who lives says so again within seconds.
func afterNodes(w *world, _ bool) {
	n := w.Procs["n"]
	fresh := w.Serve("fresh", "node")
	fleet.Eventually(w.t, "each sees the other", func() error {
		for _, p := range []*fleet.Proc{n, fresh} {
			var live struct{ Nodes []viewkeeper.Status }
			if _, err := p.Try(http.MethodGet, "/v1/nodes", nil, &live); err != nil {
				return err
			}
			var names []string
			for _, s := range live.Nodes {
				names = append(names, s.Node)
			}
			if slices.Sort(names); !slices.Equal(names, []string{"fresh", "n"}) {
				return fmt.Errorf("%s sees %q", p.Name, names)
			}
		}
		return nil
	})
	if d := n.Statement("CREATE VIEW after AS SELECT a FROM v5"); d.Version != 7 {
		w.t.Errorf("version %d after 6", d.Version)
	}
}
