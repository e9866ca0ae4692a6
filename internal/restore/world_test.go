package restore_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/kafka/kafkatest"
	"github.com/viewkeeper/viewkeeper/internal/restore"
	"github.com/viewkeeper/viewkeeper/processor"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
	"github.com/viewkeeper/viewkeeper/view"
)

// patience is how long a test waits for anything. It is never reached by a good run.
const patience = 4 * time.Minute

// world is a catalog on an embedded broker, with a real owner and a real node.
type world struct {
	t        *testing.T
	ctx      context.Context
	broker   *broker.Broker
	settings kafka.Settings
	topics   *restore.Topics
	emitter  *kafka.Emitter
	log      *slog.Logger
	stopOwn  func()
	node     *view.Node
	owner    *processor.Processor
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{log: slog.New(slog.NewTextHandler(io.Discard, nil)), stopOwn: func() {}}
	w.on(t)
	b, err := broker.StartWith(w.ctx, broker.Options{Addr: "127.0.0.1:0"})
	w.must(err)
	t.Cleanup(func() { _ = b.Close() })
	w.broker = b
	w.settings, err = kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{b.Addr()}})
	w.must(err)
	admin, err := w.settings.OpenAdmin(w.ctx)
	w.must(err)
	t.Cleanup(func() { _ = admin.Close() })
	w.topics = &restore.Topics{Settings: w.settings, Names: kafka.Topics{Catalog: "test"}, Admin: admin}
	w.create()
	w.emitter = w.settings.NewEmitter(w.topics.Names)
	t.Cleanup(func() { _ = w.emitter.Close() })
	return w
}

func (w *world) on(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	w.t, w.ctx = t, ctx
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) create() {
	w.t.Helper()
	_, err := w.topics.Admin.CreateTopics(w.ctx, w.topics.Names)
	w.must(err)
}

func (w *world) base() *registry.Base {
	b, err := registry.NewBase(w.ctx, registrytest.NewModel(registrytest.BaseRelations()...), registry.BaseOptions{Log: w.log})
	w.must(err)
	return b
}

// own starts an owner; the one before must have been stopped.
func (w *world) own() {
	w.t.Helper()
	p, err := processor.New(processor.Config{
		Kafka: w.settings.KafkaSettings, Catalog: w.topics.Names.Catalog, NodeID: "owner", Base: w.base(), Log: w.log,
		Heartbeat: 20 * time.Millisecond, CheckTopics: 50 * time.Millisecond,
	})
	w.must(err)
	w.owner = p
	w.stopOwn = w.background(p.Run)
}

func (w *world) background(run func(context.Context) error) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	stopped := false
	stop = func() {
		if !stopped {
			stopped = true
			cancel()
			<-done
		}
	}
	w.t.Cleanup(stop)
	return stop
}

// blocked waits until the owner refuses to work.
func (w *world) blocked() {
	w.t.Helper()
	s, err := w.owner.WaitStatus(w.ctx, func(s processor.Status) bool { return s.State == processor.StateBlocked })
	if err != nil {
		w.t.Fatalf("%v: %+v", err, s)
	}
}

func (w *world) owns() processor.Status {
	w.t.Helper()
	s, err := w.owner.WaitStatus(w.ctx, func(s processor.Status) bool { return s.State == processor.StateOwner })
	w.must(err)
	return s
}

// follow starts the node.
func (w *world) follow() {
	w.t.Helper()
	n, err := view.New(view.Config{
		Kafka: w.settings.KafkaSettings, Catalog: w.topics.Names.Catalog, NodeID: "n1", HTTP: "n1:80", Base: w.base(), Log: w.log,
	})
	w.must(err)
	w.node = n
	w.background(n.Run)
}

// until waits for the node to say something.
func (w *world) until(what string, ok func(viewkeeper.Status) bool) viewkeeper.Status {
	w.t.Helper()
	for {
		changed := w.node.Changed()
		s := w.node.Status()
		if ok(s) {
			return s
		}
		select {
		case <-changed:
		case <-w.ctx.Done():
			w.t.Fatalf("waiting for %s: %+v", what, s)
		}
	}
}

func (w *world) at(v viewkeeper.Version) viewkeeper.Status {
	w.t.Helper()
	return w.until(fmt.Sprint("version ", v), func(s viewkeeper.Status) bool {
		return s.Ready && s.Version >= v && len(s.Degraded) == 0
	})
}

// say submits a statement and gives its decision.
func (w *world) say(id, text string) viewkeeper.Decision {
	w.t.Helper()
	return w.decided(id, w.emit(id, text))
}

func (w *world) emit(id, text string) int64 {
	w.t.Helper()
	r, err := w.emitter.Emit(w.ctx, viewkeeper.Submission{ID: id, Key: id, SQL: text})
	w.must(err)
	return r.Offset
}

// decided waits for the decision of an id, which came at this offset or before.
func (w *world) decided(id string, offset int64) viewkeeper.Decision {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.ctx)
	defer cancel()
	var found viewkeeper.Decision
	err := kafkatest.Tail(ctx, w.settings, w.topics.Names.Decisions(), kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		if d, err := codec.DecodeDecision(m.Value); err == nil && d.StatementID == id && d.Offset <= offset {
			found = d
			return io.EOF
		}
		return nil
	})
	if !errors.Is(err, io.EOF) {
		s, _ := w.owner.WaitStatus(w.t.Context(), func(processor.Status) bool { return true })
		w.t.Fatalf("%s is not decided: %v %v; the owner is %+v", id, err, w.ctx.Err(), s)
	}
	return found
}

// story fills the catalog with a bit of everything, and gives its version.
func (w *world) story() viewkeeper.Version {
	w.t.Helper()
	var id string
	var offset int64
	for i, text := range []string{
		"CREATE VIEW a AS SELECT a FROM t",
		"CREATE VIEW b AS SELECT a FROM a",
		"CREATE VIEW x AS SELECT nothing FROM a",
		"CREATE OR REPLACE VIEW a AS SELECT a, b FROM t",
		"BEGIN; CREATE VIEW c AS SELECT a FROM b; CREATE VIEW d AS SELECT a FROM c; COMMIT",
		"COMMENT ON VIEW c IS 'a comment'",
		"DROP VIEW d",
		"ALTER VIEW c RENAME TO e",
	} {
		id = fmt.Sprintf("s%d", i)
		offset = w.emit(id, text)
	}
	return w.decided(id, offset).Version
}

// remake deletes a topic and makes it anew, empty.
func (w *world) remake(topic string) {
	w.t.Helper()
	w.must(w.broker.Cluster().DeleteTopic(topic))
	w.create()
}

func (w *world) look() *restore.Known {
	w.t.Helper()
	k, err := w.topics.Look(w.ctx)
	w.must(err)
	return k
}

// write puts a record into a topic past everybody.
func (w *world) write(topic, key string, value []byte) {
	w.t.Helper()
	p, err := sarama.NewSyncProducer(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer p.Close()
	m := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key)}
	if value != nil {
		m.Value = sarama.ByteEncoder(value)
	}
	_, _, err = p.SendMessage(m)
	w.must(err)
}

// source gives the table as it is now as a source of a kind.
func (w *world) source(kind restore.Kind) *restore.Source {
	w.t.Helper()
	if kind == restore.Decided {
		return restore.FromDecisions(w.topics.Names.Decisions())
	}
	t, err := w.topics.Table(w.ctx)
	w.must(err)
	s, err := restore.FromTable(kind, "here", t)
	w.must(err)
	if kind == restore.Export {
		s.IDs = nil // as an export of a node has it
	}
	return s
}

// put carries a plan out.
func (w *world) put(k *restore.Known, p *restore.Plan) error {
	w.t.Helper()
	log, err := w.topics.Log(w.ctx)
	w.must(err)
	defer log.Close()
	_, err = p.Write(w.ctx, k, log, "restore", time.Now().UTC(), kafka.MaxRecordBytes)
	return err
}

// restore plans and writes, and gives the report.
func (w *world) restore(s *restore.Source, overwrite, loss bool) restore.Report {
	w.t.Helper()
	k := w.look()
	p, err := restore.Make(w.ctx, k, s)
	w.must(err)
	w.must(p.Allowed(k, overwrite, loss))
	w.must(w.put(k, p))
	return p.Report
}

// rows are the live ones of the table, with their versions.
func (w *world) rows() map[string]string {
	w.t.Helper()
	t, err := w.topics.Table(w.ctx)
	w.must(err)
	return live(t)
}

func live(t *restore.Table) map[string]string {
	out := map[string]string{}
	for _, r := range t.Fold.Rows() {
		if r.Live() {
			comment := ""
			if r.Definition.Comment != nil {
				comment = *r.Definition.Comment
			}
			out[r.Name.String()] = fmt.Sprint(r.Version, " ", r.Definition.ID, " ", r.Definition.SQL, " ", comment)
		}
	}
	return out
}
