package processor

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/kafka/kafkatest"
	"github.com/viewkeeper/viewkeeper/internal/testlog"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// patience is how long a test waits for anything. It is never reached by a good run.
const patience = 4 * time.Minute

// world is a broker with a catalog's topics, and what a test does to them.
type world struct {
	t        *testing.T
	ctx      context.Context
	broker   *broker.Broker
	settings kafka.Settings
	topics   kafka.Topics
	admin    *kafka.Admin
	emitter  *kafka.Emitter
	log      *slog.Logger
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{topics: kafka.Topics{Catalog: "test"}}
	w.enter(t)
	var err error
	w.broker, err = broker.StartWith(w.ctx, broker.Options{Addr: "127.0.0.1:0"})
	w.must(err)
	t.Cleanup(func() { _ = w.broker.Close() })
	w.settings, err = kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{w.broker.Addr()}})
	w.must(err)
	w.admin, err = w.settings.OpenAdmin(w.ctx)
	w.must(err)
	t.Cleanup(func() { _ = w.admin.Close() })
	return w.catalog(t, "test")
}

func (w *world) enter(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w.t, w.ctx, w.log = t, ctx, slog.New(slog.NewTextHandler(testlog.New(t), nil))
}

// catalog gives the same world with another catalog, for a test inside the test.
func (w *world) catalog(t *testing.T, name string) *world {
	t.Helper()
	c := *w
	c.enter(t)
	c.topics = kafka.Topics{Catalog: name}
	_, err := c.admin.CreateTopics(c.ctx, c.topics)
	c.must(err)
	c.emitter = c.settings.NewEmitter(c.topics)
	t.Cleanup(func() { _ = c.emitter.Close() })
	return &c
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// member is a running processor.
type member struct {
	*Processor
	w      *world
	cancel context.CancelFunc
	ended  chan struct{}
	err    error
}

// start runs a processor; change may replace what tests replace.
func (w *world) start(node string, change func(*Processor)) *member {
	w.t.Helper()
	base, err := registry.NewBase(w.ctx, registrytest.NewModel(registrytest.BaseRelations()...), registry.BaseOptions{Log: w.log})
	w.must(err)
	p, err := New(Config{
		Kafka: w.settings.KafkaSettings, Catalog: w.topics.Catalog, NodeID: node, Base: base,
		Log: w.log, Heartbeat: 20 * time.Millisecond, CheckTopics: 50 * time.Millisecond,
	})
	w.must(err)
	if change != nil {
		change(p)
	}
	ctx, cancel := context.WithCancel(w.ctx)
	m := &member{Processor: p, w: w, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(m.ended)
		m.err = p.Run(ctx)
	}()
	w.t.Cleanup(m.stop)
	return m
}

// stop ends a processor and waits for it.
func (m *member) stop() {
	m.cancel()
	<-m.ended
}

func (m *member) waitFor(what string, ok func(Status) bool) Status {
	m.w.t.Helper()
	s, err := m.WaitStatus(m.w.ctx, ok)
	if err != nil {
		m.w.t.Fatalf("waiting for %s: %v; the status is %+v", what, err, s)
	}
	return s
}

func (m *member) waitOwner() Status {
	m.w.t.Helper()
	return m.waitFor("ownership", func(s Status) bool { return s.State == StateOwner })
}

func (m *member) waitReason(code string) Status {
	m.w.t.Helper()
	return m.waitFor("the reason "+code, func(s Status) bool { return s.Reasons[code] != "" })
}

// emit writes a statement and gives its offset.
func (w *world) emit(s viewkeeper.Submission) int64 {
	w.t.Helper()
	r, err := w.emitter.Emit(w.ctx, s)
	w.must(err)
	return r.Offset
}

// sql is a statement about one name.
func sql(key, text string) viewkeeper.Submission {
	return viewkeeper.Submission{Key: key, SQL: text}
}

// create is a statement that is accepted: a view over the base.
func create(view string, n int) viewkeeper.Submission {
	return sql("main."+view, fmt.Sprintf("CREATE OR REPLACE VIEW %s AS SELECT %d AS n, a FROM t", view, n))
}

// decision is a record of the decisions topic.
type decision struct {
	viewkeeper.Decision
	at int64
}

// decisions reads the decisions topic until ok says that it is enough.
func (w *world) decisions(what string, ok func([]decision) bool) []decision {
	w.t.Helper()
	var all []decision
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	if ok(nil) {
		return nil
	}
	err := kafkatest.Tail(ctx, w.settings, w.topics.Decisions(), kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		d, err := codec.DecodeDecision(m.Value)
		if err != nil {
			return err
		}
		if string(m.Key) != d.StatementID {
			return fmt.Errorf("key %q on the decision of %q", m.Key, d.StatementID)
		}
		for _, h := range m.Headers {
			if string(h.Key) == codec.HeaderOffset && string(h.Value) != strconv.FormatInt(d.Offset, 10) {
				return fmt.Errorf("offset header %s", h.Value)
			}
		}
		all = append(all, decision{d, m.Offset})
		if ok(all) {
			cancel()
		}
		return nil
	})
	w.must(err)
	if w.ctx.Err() != nil {
		w.t.Fatalf("waiting for %s: only %d decisions", what, len(all))
	}
	return all
}

// byOffset keeps one decision for each offset, that of the highest epoch.
func byOffset(all []decision) map[int64]viewkeeper.Decision {
	out := map[int64]viewkeeper.Decision{}
	for _, d := range all {
		if was, ok := out[d.Offset]; !ok || d.Epoch >= was.Epoch {
			out[d.Offset] = d.Decision
		}
	}
	return out
}

// decided waits until the statement at an offset is decided, and gives the decision.
func (w *world) decided(offset int64) viewkeeper.Decision {
	w.t.Helper()
	all := w.decisions(fmt.Sprintf("the decision of offset %d", offset), func(all []decision) bool {
		return len(all) > 0 && all[len(all)-1].Offset >= offset
	})
	return byOffset(all)[offset]
}

// read reads a topic to its present end, and gives that.
func (w *world) read(topic string, each func(*sarama.ConsumerMessage)) int64 {
	w.t.Helper()
	end, err := w.admin.EndOffset(w.ctx, topic)
	w.must(err)
	if end == 0 {
		return 0
	}
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	w.must(kafkatest.Tail(ctx, w.settings, topic, kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		each(m)
		if m.Offset >= end-1 {
			cancel()
		}
		return nil
	}))
	if w.ctx.Err() != nil {
		w.t.Fatalf("reading %s: %v", topic, w.ctx.Err())
	}
	return end
}

// table reads the table to its present end, as a node does.
func (w *world) table() *fold.Fold {
	w.t.Helper()
	f := fold.New()
	end := w.read(w.topics.Table(), func(m *sarama.ConsumerMessage) {
		f.Add(m.Offset, codec.DecodeTable(string(m.Key), m.Value, tableHeaders(m)))
	})
	gap, _ := f.NeedEnd()
	f.EndIs(gap, end)
	return f
}

// write puts a record into the table past all owners, as a zombie or a stranger does.
func (w *world) write(messages ...*sarama.ProducerMessage) {
	w.t.Helper()
	p, err := sarama.NewSyncProducer(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer p.Close()
	w.must(p.SendMessages(messages))
}

// faults wraps a processor's sink.
type faults struct {
	sink
	// before is asked about each flight, with the number of records sent so far. It
	// gives how many of the flight are sent, and the error that follows, nil for all.
	before func(sent int, flight []*sarama.ProducerMessage) (int, error)

	mu   *sync.Mutex
	sent *int
}

func (f faults) send(messages []*sarama.ProducerMessage) error {
	f.mu.Lock()
	sent := *f.sent
	f.mu.Unlock()
	n, failure := f.before(sent, messages)
	if failure != nil {
		messages = messages[:n]
	}
	f.mu.Lock()
	*f.sent += len(messages)
	f.mu.Unlock()
	if len(messages) > 0 {
		if err := f.sink.send(messages); err != nil {
			return err
		}
	}
	return failure
}

// withFaults makes the processor's writes go through before.
func withFaults(before func(sent int, flight []*sarama.ProducerMessage) (int, error)) func(*Processor) {
	return func(p *Processor) {
		open, mu, sent := p.openSink, &sync.Mutex{}, 0
		p.openSink = func(s kafka.Settings) (sink, error) {
			inner, err := open(s)
			return faults{inner, before, mu, &sent}, err
		}
	}
}
