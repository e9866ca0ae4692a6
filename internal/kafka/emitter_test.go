package kafka_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

func TestEmitWritesWhatProducersWrite(t *testing.T) {
	_, s := start(t)
	if _, err := admin(t, s).CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	e := s.NewEmitter(flights)
	defer e.Close()
	seven := viewkeeper.Version(7)
	for _, sub := range []viewkeeper.Submission{
		{Key: "main.a", SQL: "CREATE VIEW a AS SELECT 1", ID: "one", Author: "jane", Reason: "because", ExpectVersion: &seven, Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		{Key: "main.a", Tombstone: true},
	} {
		if _, err := e.Emit(t.Context(), sub); err != nil {
			t.Fatal(err)
		}
	}
	first, second := read(t, s, flights.Definitions(), 0), read(t, s, flights.Definitions(), 1)
	got := map[string]string{}
	for _, h := range first.Headers {
		got[string(h.Key)] = string(h.Value)
	}
	for k, v := range map[string]string{"id": "one", "author": "jane", "reason": "because", "expect-version": "7", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		if got[k] != v {
			t.Errorf("header %s is %q", k, got[k])
		}
	}
	if string(first.Key) != "main.a" || string(first.Value) != "CREATE VIEW a AS SELECT 1" {
		t.Errorf("%q %q", first.Key, first.Value)
	}
	if second.Value != nil || len(second.Headers) != 0 {
		t.Errorf("tombstone: %q, %v", second.Value, second.Headers)
	}
}

func read(t *testing.T, s kafka.Settings, topic string, offset int64) *sarama.ConsumerMessage {
	t.Helper()
	c, err := sarama.NewConsumer(s.Brokers, s.Sarama())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	pc, err := c.ConsumePartition(topic, 0, offset)
	if err != nil {
		t.Fatal(err)
	}
	defer pc.Close()
	select {
	case m := <-pc.Messages():
		return m
	case <-t.Context().Done():
	}
	return nil
}

func TestEmitTooLargeIsSaidBeforeAnythingIsWritten(t *testing.T) {
	b, s := start(t)
	a := admin(t, s)
	if _, err := a.CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	e := s.NewEmitter(flights)
	defer e.Close()
	var large *kafka.TooLargeError
	_, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: strings.Repeat("x", kafka.MaxRecordBytes)})
	if !errors.As(err, &large) || large.Limit == 0 {
		t.Errorf("over the emitter's limit: %v", err)
	}
	if _, err = e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: strings.Repeat("x", kafka.MaxRecordBytes-200)}); err != nil {
		t.Errorf("just below the limit: %v", err)
	}
	if err := b.Cluster().DeleteTopic(flights.Definitions()); err != nil {
		t.Fatal(err)
	}
	if err := b.Cluster().CreateTopic(flights.Definitions(), 1, map[string]string{"max.message.bytes": "1000"}); err != nil {
		t.Fatal(err)
	}
	_, err = e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: strings.Repeat("x", 2000)})
	if !errors.As(err, &large) || large.Limit != 0 {
		t.Errorf("over the broker's limit: %v", err)
	}
	if n, err := a.EndOffset(t.Context(), flights.Definitions()); n != 0 || err != nil {
		t.Errorf("end %d, %v", n, err)
	}
}

func TestEmitTellsNotWrittenFromUnknown(t *testing.T) {
	b, s := start(t)
	a := admin(t, s)
	if _, err := a.CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	e := s.NewEmitter(flights)
	defer e.Close()
	if _, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "1"}); err != nil {
		t.Fatal(err)
	}

	// The connection breaks after the request went out: nobody knows.
	b.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		return nil, errors.New("cut"), true
	})
	var unknown *kafka.UnknownOutcomeError
	if _, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "2"}); !errors.As(err, &unknown) {
		t.Errorf("cut: %v", err)
	}

	// The leader refuses, once: the emitter tries again by itself.
	refuseOnce := func(why *kerr.Error) {
		b.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			return refuse(r, why.Code), nil, true
		})
	}
	refuseOnce(kerr.NotEnoughReplicas)
	if r, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "3"}); err != nil || r.Offset != 1 {
		t.Errorf("refused once: %+v, %v", r, err)
	}

	// The leader moves, perhaps after it has appended: without an id it is not known,
	// and a second record would be a second statement. With one it is sent again.
	for _, moved := range []*kerr.Error{kerr.NotLeaderForPartition, kerr.FencedLeaderEpoch} {
		refuseOnce(moved)
		if _, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "moved"}); !errors.As(err, &unknown) {
			t.Errorf("%s, without an id: %v", moved.Message, err)
		}
	}
	refuseOnce(kerr.NotLeaderForPartition)
	if r, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "moved", ID: "id"}); err != nil || r.Offset != 2 {
		t.Errorf("moved once: %+v, %v", r, err)
	}

	// What later attempts know of themselves says nothing of the first.
	refuseOnce(kerr.NotLeaderForPartition)
	for range 2 {
		refuseOnce(kerr.NotEnoughReplicas)
	}
	if _, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "moved", ID: "id2"}); !errors.As(err, &unknown) {
		t.Errorf("moved, then refused: %v", err)
	}

	// The caller gives up while the broker is silent.
	hold, entered := make(chan struct{}), make(chan struct{})
	var once sync.Once
	b.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		once.Do(func() { close(entered) })
		<-hold
		return nil, nil, false
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	go func() { <-entered; cancel() }()
	if _, err := e.Emit(ctx, viewkeeper.Submission{Key: "k", SQL: "4"}); !errors.As(err, &unknown) {
		t.Errorf("given up: %v", err)
	}
	close(hold)

	// No broker at all: certainly not written, with the reason.
	dead := settings(t, "127.0.0.1:1").NewEmitter(flights)
	defer dead.Close()
	var not *kafka.NotWrittenError
	if _, err := dead.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "5"}); !errors.As(err, &not) || kafka.Classify(err).Kind != kafka.KindAway {
		t.Errorf("no broker: %v", err)
	}
	if err := dead.Close(); err != nil {
		t.Error(err)
	}
	if _, err := dead.Emit(t.Context(), viewkeeper.Submission{}); !errors.Is(err, kafka.ErrEmitterClosed) {
		t.Errorf("closed: %v", err)
	}
}

func refuse(req kmsg.Request, code int16) kmsg.Response {
	p := req.(*kmsg.ProduceRequest)
	res := p.ResponseKind().(*kmsg.ProduceResponse)
	for _, topic := range p.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic = topic.Topic
		for _, part := range topic.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition, rp.ErrorCode = part.Partition, code
			rt.Partitions = append(rt.Partitions, rp)
		}
		res.Topics = append(res.Topics, rt)
	}
	return res
}
