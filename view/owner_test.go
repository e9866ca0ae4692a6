package view

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/kafka/kafkatest"
)

// owner writes to the table and the decisions as an owner does, without judging.
type owner struct {
	t          *testing.T
	name       string
	topics     kafka.Topics
	producer   sarama.SyncProducer
	topic      string // id of the definitions topic
	epoch      viewkeeper.Epoch
	version    viewkeeper.Version
	baseDigest string
	// noDecisions leaves the decisions topic alone.
	noDecisions bool
	// newer makes it one of the next format, with fields that this program does not know.
	newer bool
	// rows are those that it wrote last, by view; last is its last commit row.
	rows map[string]viewkeeper.Row
	last *codec.Commit
}

func newOwner(t *testing.T, addr string) *owner {
	t.Helper()
	s := settings(t, addr)
	p, err := sarama.NewSyncProducer(s.Brokers, s.Sarama())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	a, err := s.OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	id, err := a.TopicID(t.Context(), topics.Definitions())
	if err != nil {
		t.Fatal(err)
	}
	return &owner{t: t, name: "owner-1", topics: topics, producer: p, topic: id, rows: map[string]viewkeeper.Row{}}
}

func settings(t *testing.T, addr string) kafka.Settings {
	t.Helper()
	s, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: []string{addr}})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// takeOver writes a fence, whose epoch the owner has from then on.
func (o *owner) takeOver() {
	o.t.Helper()
	f := &codec.Fence{Nonce: fmt.Sprintf("%08x", time.Now().UnixNano()), Owner: o.name, At: time.Now()}
	o.epoch = fold.FenceEpoch(f, o.put(f))
}

func (o *owner) put(r codec.Record) int64 {
	o.t.Helper()
	key, value := codec.EncodeRecord(r)
	return o.raw(o.topics.Table(), key, value)
}

// raw writes any bytes; nil is a tombstone.
func (o *owner) raw(topic, key string, value []byte, headers ...codec.Header) int64 {
	o.t.Helper()
	m := &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder(key)}
	if rest, ok := bytes.CutPrefix(value, []byte(`{"format":1,`)); ok && o.newer {
		value = append([]byte(`{"format":2,"later":{"more":[1]},`), rest...)
	}
	if value != nil {
		m.Value = sarama.ByteEncoder(value)
	}
	for _, h := range headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	_, offset, err := o.producer.SendMessage(m)
	if err != nil {
		o.t.Fatal(err)
	}
	return offset
}

func (o *owner) heartbeat() {
	o.t.Helper()
	o.put(&codec.Heartbeat{Version: o.version, Epoch: o.epoch, Owner: o.name, At: time.Now(), BaseDigest: o.baseDigest})
}

// lives writes heartbeats until the call of stop, without a pause: a node under test is
// without an owner after a fraction of a second.
func (o *owner) lives() (stop func()) {
	living, end := context.WithCancel(o.t.Context())
	var beats sync.WaitGroup
	beats.Go(func() {
		for living.Err() == nil {
			o.heartbeat()
		}
	})
	stop = func() { end(); beats.Wait() }
	o.t.Cleanup(stop)
	return stop
}

// change is what one statement does to one name; sql "" drops it.
type change struct{ name, sql string }

// view is a change that creates a plain definition, or replaces it.
func view(name, query string) change {
	return change{name, "CREATE VIEW " + name + " AS " + query}
}

// accept decides one statement: the commit row, the rows, the decision.
func (o *owner) accept(id string, changes ...change) viewkeeper.Decision {
	o.t.Helper()
	d, rows := o.decision(id, changes...)
	o.commit(d, rows)
	for _, r := range rows {
		o.put(codec.Row{Row: r})
		o.rows[r.Name.View] = r
	}
	o.decide(d)
	return d
}

func (o *owner) commit(d viewkeeper.Decision, rows []viewkeeper.Row) {
	o.t.Helper()
	o.last = &codec.Commit{
		Version: d.Version, Epoch: o.epoch, Owner: o.name, At: d.At, BaseDigest: o.baseDigest,
		DefinitionsTopic: o.topic, Decisions: []viewkeeper.Decision{d}, Rows: rows,
	}
	o.put(o.last)
}

func (o *owner) decide(d viewkeeper.Decision) {
	o.t.Helper()
	if !o.noDecisions {
		m := codec.EncodeDecision(d)
		o.raw(o.topics.Decisions(), string(m.Key), m.Value, m.Headers...)
	}
}

// decision makes the next decision; one without changes is a refusal.
func (o *owner) decision(id string, changes ...change) (viewkeeper.Decision, []viewkeeper.Row) {
	o.t.Helper()
	o.version++
	d := viewkeeper.Decision{
		StatementID: id, Version: o.version, Offset: int64(o.version) - 1, Verdict: viewkeeper.Accepted,
		Owner: o.name, Epoch: o.epoch, At: time.Now().UTC(), BaseDigest: o.baseDigest,
	}
	if id == "" {
		d.StatementID = codec.DefaultID(o.topic, d.Offset)
	}
	if len(changes) == 0 {
		d.Verdict, d.Code = viewkeeper.Refused, viewkeeper.CodeSyntax
	}
	var rows []viewkeeper.Row
	for _, c := range changes {
		name, err := viewkeeper.ParseName(c.name)
		if err != nil {
			o.t.Fatal(err)
		}
		r := viewkeeper.Row{Name: name, Version: d.Version, Epoch: o.epoch}
		action := viewkeeper.ActionDropped
		if c.sql != "" {
			action = viewkeeper.ActionCreated
			r.Definition = &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: c.sql, ID: d.Version}
		}
		d.Changed = append(d.Changed, viewkeeper.Change{Name: name, Action: action})
		rows = append(rows, r)
	}
	d.Normalize()
	return d, rows
}

// readTable gives all of the table to a node that does not run.
func readTable(t *testing.T, addr string, n *Node, s *session) {
	t.Helper()
	a, err := settings(t, addr).OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	end, err := a.EndOffset(t.Context(), topics.Table())
	if err != nil {
		t.Fatal(err)
	}
	gap, _ := s.fold.NeedEnd()
	s.fold.EndIs(gap, end)
	err = kafkatest.Tail(t.Context(), settings(t, addr), topics.Table(), kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		n.record(s, m.Offset, codec.DecodeRecord(string(m.Key), m.Value), m.Value)
		if m.Offset == end-1 {
			return errEnough
		}
		return nil
	})
	if err != errEnough {
		t.Fatal(err)
	}
}
