// Package traps shows that the traps of Kafka's client libraries, of Kafka itself and
// of group commit are not to be met here: docs/traps.md. What can be shown on the
// embedded broker is shown beside the code; here are those that a real broker decides.
package traps

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/kafka/kafkatest"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// TestMain lets more tests run at a time than there are cores: most of each is waiting
// for a session to time out.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "6"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(m.Run())
}

// world is a fleet, and what a test does to its topics past all owners.
type world struct {
	*fleet.Fleet
	t        *testing.T
	ctx      context.Context
	settings kafka.Settings
	topics   kafka.Topics
	admin    *kafka.Admin
	emitter  *kafka.Emitter
	sent     []statement
}

// statement is one that was sent, with what is to become of it.
type statement struct {
	id, sql string
	want    string // the verdict, with the code of a refusal
	offset  int64
}

func newWorld(t *testing.T) *world {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*fleet.Patience)
	t.Cleanup(cancel)
	w := &world{Fleet: fleet.New(t), t: t, ctx: ctx}
	w.topics = kafka.Topics{Catalog: w.Catalog}
	var err error
	w.settings, err = kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: strings.Split(w.Tools.Brokers, ",")})
	w.must(err)
	w.admin, err = w.settings.OpenAdmin(ctx)
	w.must(err)
	t.Cleanup(func() { _ = w.admin.Close() })
	w.emitter = w.settings.NewEmitter(w.topics)
	t.Cleanup(func() { _ = w.emitter.Close() })
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// proxy stands before the brokers for the processes that are started with it.
func (w *world) proxy() *kafkaproxy.Proxy {
	w.t.Helper()
	p, err := kafkaproxy.Start(context.Background(), w.settings.Brokers)
	w.must(err)
	w.t.Cleanup(p.Close)
	return p
}

// via starts a process whose brokers are those of a proxy.
func (w *world) via(p *kafkaproxy.Proxy, name, roles string, extra ...string) *fleet.Proc {
	w.t.Helper()
	w.Brokers = p.Brokers()
	defer func() { w.Brokers = w.Tools.Brokers }()
	return w.Launch(name, roles, extra...)
}

// emit writes a statement with an id of its own, past every node, and does not wait for
// its decision. want is the verdict, as "accepted" or "refused BIND".
func (w *world) emit(want, sql string) statement {
	w.t.Helper()
	s := statement{id: fmt.Sprintf("s%d", len(w.sent)), sql: sql, want: want}
	r, err := w.emitter.Emit(w.ctx, viewkeeper.Submission{Key: "any-" + s.id, ID: s.id, SQL: sql})
	w.must(err)
	s.offset = r.Offset
	w.sent = append(w.sent, s)
	return s
}

// last is the version after all that was sent.
func (w *world) last() viewkeeper.Version {
	return viewkeeper.Version(w.sent[len(w.sent)-1].offset + 1)
}

// decided waits until a node shows the version of the last statement.
func (w *world) decided(node *fleet.Proc) {
	w.t.Helper()
	w.version(node, w.last())
}

func (w *world) version(node *fleet.Proc, v viewkeeper.Version) {
	w.t.Helper()
	fleet.Eventually(w.t, fmt.Sprintf("%s at version %d", node.Name, v), func() error {
		var s viewkeeper.Status
		if _, err := node.Try("GET", "/v1/status", nil, &s); err != nil {
			return err
		}
		if s.Version < v {
			return fmt.Errorf("it is at %d, owner %s, %v %v", s.Version, s.Owner, s.ReadyReasons, s.Degraded)
		}
		return nil
	})
}

// owner waits until a node says that another process than those named is the owner.
func (w *world) owner(node *fleet.Proc, not ...string) string {
	w.t.Helper()
	var owner string
	fleet.Eventually(w.t, fmt.Sprintf("an owner that is none of %q", not), func() error {
		var s viewkeeper.Status
		if _, err := node.Try("GET", "/v1/status", nil, &s); err != nil {
			return err
		}
		if owner = s.Owner; owner == "" {
			return fmt.Errorf("there is none: %v", s.Degraded)
		}
		for _, n := range not {
			if owner == n {
				return fmt.Errorf("it is %s", owner)
			}
		}
		return nil
	})
	return owner
}

// read gives the records of a topic up to its present end.
func (w *world) read(topic string) (all []*sarama.ConsumerMessage) {
	w.t.Helper()
	end, err := w.admin.EndOffset(w.ctx, topic)
	w.must(err)
	if end == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.must(kafkatest.Tail(ctx, w.settings, topic, kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		all = append(all, m)
		if m.Offset >= end-1 {
			cancel()
		}
		return nil
	}))
	w.must(w.ctx.Err())
	return all
}

// foldOf reads records as a follower does that sees them all.
func foldOf(records []*sarama.ConsumerMessage) *fold.Fold {
	f := fold.New()
	for _, m := range records {
		f.Add(m.Offset, codec.DecodeRecord(string(m.Key), m.Value))
	}
	gap, _ := f.NeedEnd()
	f.EndIs(gap, f.Next())
	return f
}

// table reads the table.
func (w *world) table() *fold.Fold {
	w.t.Helper()
	return foldOf(w.read(w.topics.Table()))
}

// compacted keeps the last record of each key.
func compacted(records []*sarama.ConsumerMessage) (out []*sarama.ConsumerMessage) {
	last := map[string]int64{}
	for _, m := range records {
		last[string(m.Key)] = m.Offset
	}
	for _, m := range records {
		if last[string(m.Key)] == m.Offset {
			out = append(out, m)
		}
	}
	return out
}

// write puts records into topics past all owners.
func (w *world) write(messages ...*sarama.ProducerMessage) {
	w.t.Helper()
	p, err := sarama.NewSyncProducer(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer p.Close()
	w.must(p.SendMessages(messages))
}

// compact has the broker take all but the last record of each key out of the table, as
// it does by itself when the compaction lag has passed.
func (w *world) compact() {
	w.t.Helper()
	table := w.topics.Table()
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	set := func(operation sarama.IncrementalAlterConfigsOperation, lag, segment, dirty string) {
		w.t.Helper()
		entry := func(value string) sarama.IncrementalAlterConfigsEntry {
			return sarama.IncrementalAlterConfigsEntry{Operation: operation, Value: &value}
		}
		w.must(a.IncrementalAlterConfig(sarama.TopicResource, table, map[string]sarama.IncrementalAlterConfigsEntry{
			"min.compaction.lag.ms": entry(lag), "segment.ms": entry(segment), "min.cleanable.dirty.ratio": entry(dirty),
		}, false))
	}
	was, err := a.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: table, ConfigNames: []string{"min.compaction.lag.ms", "segment.ms", "min.cleanable.dirty.ratio"}})
	w.must(err)
	before := map[string]string{}
	for _, c := range was {
		before[c.Name] = c.Value
	}
	end, err := w.admin.EndOffset(w.ctx, table)
	w.must(err)
	set(sarama.IncrementalAlterConfigsOperationSet, "0", "200", "0.001")
	fleet.Eventually(w.t, "the table is compacted", func() error {
		seen := map[string]bool{}
		for _, m := range w.read(table) {
			if m.Offset >= end {
				break
			}
			if seen[string(m.Key)] {
				return fmt.Errorf("there are several records of %s", m.Key)
			}
			seen[string(m.Key)] = true
		}
		return nil
	})
	set(sarama.IncrementalAlterConfigsOperationSet, before["min.compaction.lag.ms"], before["segment.ms"], before["min.cleanable.dirty.ratio"])
}

// verify holds what every story ends with: each statement has one decision, the right
// one, on every node; all nodes have the same rows; the table needs no healing, and says
// the same when compaction has taken all but the last record of each key.
func (w *world) verify(nodes ...*fleet.Proc) {
	w.t.Helper()
	for _, n := range nodes {
		w.decided(n)
		var got map[int64]string
		// The history of a node that is new fills up in the background.
		fleet.Eventually(w.t, n.Name+" has every decision", func() error {
			got = map[int64]string{}
			for _, d := range n.Decisions(w.last()) {
				if was, twice := got[d.Offset]; twice {
					w.t.Errorf("%s shows two decisions of offset %d: %s, and %s %s", n.Name, d.Offset, was, d.Verdict, d.Code)
				}
				got[d.Offset] = strings.TrimSpace(fmt.Sprint(d.Verdict, " ", d.Code))
			}
			if len(got) < len(w.sent) {
				return fmt.Errorf("it has %d of %d", len(got), len(w.sent))
			}
			return nil
		})
		for _, s := range w.sent {
			if got[s.offset] != s.want {
				w.t.Errorf("%s: the statement at offset %d is %q, want %q: %s", n.Name, s.offset, got[s.offset], s.want, s.sql)
			}
		}
	}
	fleet.SameDigests(w.t, nodes...)
	var records []*sarama.ConsumerMessage
	fleet.Eventually(w.t, "the table is whole", func() error {
		records = w.read(w.topics.Table())
		f := foldOf(records)
		if h, c := f.Heal(f.Epoch()), f.Completion(f.Epoch()); len(h)+len(c) > 0 {
			return fmt.Errorf("%d records are to be healed, %d to be completed", len(h), len(c))
		}
		if f.Version() != w.last() {
			return fmt.Errorf("it is at version %d, want %d", f.Version(), w.last())
		}
		return nil
	})
	whole, short := foldOf(records), foldOf(compacted(records))
	if all, last := rowsOf(whole), rowsOf(short); all != last || whole.Version() != short.Version() || whole.Epoch() != short.Epoch() {
		w.t.Errorf("the compacted table says something else: version %d epoch %d\n%s\nand the whole one version %d epoch %d\n%s",
			short.Version(), short.Epoch(), last, whole.Version(), whole.Epoch(), all)
	}
	// The decisions topic: whatever was written for one offset, the highest epoch counts,
	// and it is the one that the nodes show.
	type counted struct {
		epoch   viewkeeper.Epoch
		verdict string
	}
	best := map[int64]counted{}
	for _, m := range w.read(w.topics.Decisions()) {
		if d, err := codec.DecodeDecision(m.Value); err == nil && d.Epoch >= best[d.Offset].epoch {
			best[d.Offset] = counted{d.Epoch, strings.TrimSpace(fmt.Sprint(d.Verdict, " ", d.Code))}
		}
	}
	for _, s := range w.sent {
		if best[s.offset].verdict != s.want {
			w.t.Errorf("the decisions topic says %+v of offset %d, want %q", best[s.offset], s.offset, s.want)
		}
	}
}

// rowsOf is what a table says, without who said it.
func rowsOf(f *fold.Fold) string {
	var b strings.Builder
	for _, r := range f.Rows() {
		if r.Live() {
			fmt.Fprintf(&b, "%s %d %s\n", r.Name, r.Version, r.Definition.SQL)
		}
	}
	return b.String()
}
