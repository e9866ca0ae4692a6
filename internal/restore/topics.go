package restore

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// Topics is a catalog's topics in Kafka.
type Topics struct {
	Settings kafka.Settings
	Names    kafka.Topics
	Admin    *kafka.Admin
}

// Look reads what the topics say now.
func (t *Topics) Look(ctx context.Context) (*Known, error) {
	k := &Known{Catalog: t.Names.Catalog, Statements: t.statements}
	var err error
	if k.DefinitionsTopic, k.DefinitionsEnd, err = t.Admin.EndOf(ctx, t.Names.Definitions()); err != nil {
		return nil, err
	}
	k.Committed = -1
	offset, of, ok, err := t.Admin.CommittedWith(ctx, string(t.Names.Group()), t.Names.Definitions())
	if err != nil {
		return nil, err
	}
	if ok && (of == "" || of == k.DefinitionsTopic) {
		k.Committed = offset
	}
	var table, decisions, nodes error
	var all sync.WaitGroup
	all.Go(func() { k.Table, table = t.Table(ctx) })
	all.Go(func() { k.Decisions, decisions = t.decisions(ctx) })
	all.Go(func() { k.Nodes, nodes = t.nodes(ctx) })
	all.Wait()
	for _, err := range []error{table, decisions, nodes} {
		if err != nil {
			return nil, err // one is enough to act on
		}
	}
	return k, nil
}

// Table reads the table.
func (t *Topics) Table(ctx context.Context) (*Table, error) {
	out := NewTable()
	var err error
	if out.Begin, err = t.Admin.BeginOffset(ctx, t.Names.Table()); err != nil {
		return nil, err
	}
	err = t.all(ctx, t.Names.Table(), func(m *sarama.ConsumerMessage) { out.Add(m.Offset, string(m.Key), m.Value, headers(m)) })
	out.ReadTo()
	return out, err
}

func (t *Topics) decisions(ctx context.Context) (*Decisions, error) {
	out := NewDecisions()
	var err error
	if out.Begin, err = t.Admin.BeginOffset(ctx, t.Names.Decisions()); err != nil {
		return nil, err
	}
	return out, t.all(ctx, t.Names.Decisions(), func(m *sarama.ConsumerMessage) { out.Add(m.Value) })
}

// nodes gives the last that each node said of itself, however long ago.
func (t *Topics) nodes(ctx context.Context) ([]viewkeeper.Status, error) {
	last := map[string]viewkeeper.Status{}
	err := t.all(ctx, t.Names.Nodes(), func(m *sarama.ConsumerMessage) {
		var st viewkeeper.Status
		if len(m.Value) == 0 || json.Unmarshal(m.Value, &st) != nil || st.Catalog != t.Names.Catalog {
			delete(last, string(m.Key))
			return
		}
		last[string(m.Key)] = st
	})
	var out []viewkeeper.Status
	for _, st := range last {
		out = append(out, st)
	}
	return out, err
}

// statements is Known.Statements.
func (t *Topics) statements(ctx context.Context, from, to int64) ([]viewkeeper.Submission, error) {
	begin, err := t.Admin.BeginOffset(ctx, t.Names.Definitions())
	if err != nil {
		return nil, err
	}
	id, err := t.Admin.TopicID(ctx, t.Names.Definitions())
	if err != nil {
		return nil, err
	}
	var out []viewkeeper.Submission
	err = t.read(ctx, t.Names.Definitions(), max(from, begin), to, func(m *sarama.ConsumerMessage) {
		msg := codec.Message{Key: m.Key, Value: m.Value, Headers: headers(m), Offset: m.Offset, Time: m.Timestamp}
		out = append(out, codec.DecodeSubmission(id, msg))
	})
	return out, err
}

func headers(m *sarama.ConsumerMessage) (out []codec.Header) {
	for _, h := range m.Headers {
		out = append(out, codec.Header{Key: string(h.Key), Value: h.Value})
	}
	return out
}

// all reads a topic to its present end.
func (t *Topics) all(ctx context.Context, topic string, each func(*sarama.ConsumerMessage)) error {
	end, err := t.Admin.EndOffset(ctx, topic)
	if err != nil {
		return err
	}
	return t.read(ctx, topic, kafka.FromOldest, end, each)
}

// idle is how long nothing may come before a read to an end gives up on it: the last
// offsets may have no records.
const idle = 2 * time.Second

// errRead ends a read that has all.
var errRead = errors.New("read")

// read gives the records from one offset up to before another.
func (t *Topics) read(ctx context.Context, topic string, from, to int64, each func(*sarama.ConsumerMessage)) error {
	if begin, err := t.Admin.BeginOffset(ctx, topic); err != nil || to <= max(from, begin) {
		return err
	}
	quiet, stop := context.WithCancel(ctx)
	defer stop()
	timer := time.AfterFunc(idle, stop)
	defer timer.Stop()
	err := t.Settings.Tail(quiet, topic, from, func(m *sarama.ConsumerMessage) error {
		timer.Reset(idle)
		if m.Offset < to {
			each(m)
		}
		if m.Offset+1 >= to {
			return errRead
		}
		return nil
	})
	if errors.Is(err, errRead) {
		return nil
	}
	return errors.Join(err, ctx.Err())
}

// Log is the table to be written; close it at the end.
func (t *Topics) Log(ctx context.Context) (*TableLog, error) {
	p, err := kafka.Bounded(ctx, func() (sarama.SyncProducer, error) {
		return sarama.NewSyncProducer(t.Settings.Brokers, t.Settings.Sarama())
	}, func(p sarama.SyncProducer) { _ = p.Close() })
	if err != nil {
		return nil, err
	}
	return &TableLog{t, p}, nil
}

// TableLog is the [Log] of a topic in Kafka.
type TableLog struct {
	topics   *Topics
	producer sarama.SyncProducer
}

// Close disconnects.
func (l *TableLog) Close() error { return l.producer.Close() }

// The most records and bytes of them that are under way at once.
const (
	flightRecords = 1000
	flightBytes   = 4 << 20
)

const offsetUnknown = -1

// Write is Log's.
func (l *TableLog) Write(ctx context.Context, records []Record) ([]int64, error) {
	var offsets []int64
	for len(records) > 0 {
		var flight []*sarama.ProducerMessage
		for size := 0; len(records) > 0 && len(flight) < flightRecords && size < flightBytes; records = records[1:] {
			// The offset stays as it is where the broker had the record already, and does not say.
			m := &sarama.ProducerMessage{Topic: l.topics.Names.Table(), Key: sarama.StringEncoder(records[0].Key), Offset: offsetUnknown}
			if records[0].Value != nil {
				m.Value = sarama.ByteEncoder(records[0].Value)
			}
			for _, h := range records[0].Headers {
				m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
			}
			size += len(records[0].Value)
			flight = append(flight, m)
		}
		_, err := kafka.Bounded(ctx, func() (struct{}, error) { return struct{}{}, l.producer.SendMessages(flight) }, nil)
		var failed sarama.ProducerErrors
		if errors.As(err, &failed) && len(failed) > 0 {
			err = failed[0].Err
		}
		if err != nil {
			return nil, err
		}
		for _, m := range flight {
			offsets = append(offsets, m.Offset)
		}
	}
	return offsets, nil
}

// Read is Log's.
func (l *TableLog) Read(ctx context.Context, from, to int64, each func(offset int64, key string, value []byte, headers []codec.Header)) error {
	return l.topics.read(ctx, l.topics.Names.Table(), from, to, func(m *sarama.ConsumerMessage) { each(m.Offset, string(m.Key), m.Value, headers(m)) })
}
