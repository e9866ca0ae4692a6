package kafka_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// produces counts the produce requests that a broker gets.
func produces(b *broker.Broker) func() int {
	var mu sync.Mutex
	n := 0
	b.Cluster().ControlKey(int16(kmsg.Produce), func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		mu.Lock()
		n++
		mu.Unlock()
		return nil, nil, false
	})
	return func() int {
		mu.Lock()
		defer mu.Unlock()
		return n
	}
}

func openFlights(t *testing.T, s kafka.Settings) *kafka.Flights {
	t.Helper()
	if _, err := admin(t, s).CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	f, err := s.OpenFlights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

func message(topic, value string) *sarama.ProducerMessage {
	return &sarama.ProducerMessage{Topic: topic, Key: sarama.StringEncoder("key"), Value: sarama.StringEncoder(value),
		Headers: []sarama.RecordHeader{{Key: []byte("h"), Value: []byte(value)}}}
}

// values are all that a topic has.
func values(t *testing.T, s kafka.Settings, topic string) (all []string) {
	t.Helper()
	end, err := admin(t, s).EndOffset(t.Context(), topic)
	if err != nil || end == 0 {
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err = s.Tail(ctx, topic, kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		text := string(m.Value)
		if m.Value == nil {
			text = "none"
		}
		if len(m.Headers) > 0 && len(text) < 100 {
			text += "/" + string(m.Headers[0].Value)
		}
		all = append(all, text)
		if m.Offset >= end-1 {
			cancel()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A flight is one request, whatever topics its records are of.
func TestAFlightIsOneRequest(t *testing.T) {
	b, s := start(t)
	f := openFlights(t, s)
	requests := produces(b)
	for i := range 5 {
		flight := []*sarama.ProducerMessage{message(flights.Table(), fmt.Sprint("row", i)), message(flights.Decisions(), fmt.Sprint("d", i)), message(flights.Table(), fmt.Sprint("ids", i))}
		if err := f.Send(flight); err != nil {
			t.Fatal(err)
		}
		at := int64(i)
		if flight[0].Offset != 2*at || flight[2].Offset != 2*at+1 || flight[1].Offset != at {
			t.Errorf("offsets %d, %d, %d", flight[0].Offset, flight[2].Offset, flight[1].Offset)
		}
	}
	if n := requests(); n != 5 {
		t.Errorf("5 flights took %d requests", n)
	}
	gone := &sarama.ProducerMessage{Topic: flights.Table(), Key: sarama.StringEncoder("key")}
	if err := f.Send([]*sarama.ProducerMessage{gone}); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(values(t, s, flights.Table()), " "); got != "row0/row0 ids0/ids0 row1/row1 ids1/ids1 row2/row2 ids2/ids2 row3/row3 ids3/ids3 row4/row4 ids4/ids4 none" {
		t.Errorf("the table has %s", got)
	}
}

// What is too much for one request goes in several, and a record that is too much for
// the topic is refused as what it is.
func TestALargeFlight(t *testing.T) {
	b, s := start(t)
	f := openFlights(t, s)
	requests := produces(b)
	var flight []*sarama.ProducerMessage
	for range 5 {
		flight = append(flight, &sarama.ProducerMessage{Topic: flights.Table(), Value: sarama.ByteEncoder(bytes.Repeat([]byte("x"), 3<<20))})
	}
	if err := f.Send(flight); err != nil {
		t.Fatal(err)
	}
	if n := requests(); n != 3 {
		t.Errorf("15 MiB took %d requests", n)
	}
	for i, m := range flight {
		if m.Offset != int64(i) {
			t.Errorf("record %d lies at %d", i, m.Offset)
		}
	}
	over := &sarama.ProducerMessage{Topic: flights.Table(), Value: sarama.ByteEncoder(bytes.Repeat([]byte("x"), kafka.MaxMessageBytes+1))}
	if err := f.Send([]*sarama.ProducerMessage{over}); !errors.Is(err, sarama.ErrMessageSizeTooLarge) {
		t.Errorf("over the limit: %v", err)
	}
}

// A leader that refuses for now is asked again; of two topics only the one that was
// refused. Anything else ends it.
func TestAFlightIsRefused(t *testing.T) {
	b, s := start(t)
	f := openFlights(t, s)
	refuseOnce := func(topic string, code int16) {
		b.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			for _, in := range r.(*kmsg.ProduceRequest).Topics {
				if in.Topic != topic {
					return nil, nil, false
				}
			}
			return refuse(r, code), nil, true
		})
	}
	refuseOnce(flights.Table(), kerr.NotLeaderForPartition.Code)
	if err := f.Send([]*sarama.ProducerMessage{message(flights.Table(), "a")}); err != nil {
		t.Fatal(err)
	}
	refuseOnce(flights.Table(), kerr.TopicAuthorizationFailed.Code)
	if err := f.Send([]*sarama.ProducerMessage{message(flights.Table(), "b")}); !errors.Is(err, sarama.ErrTopicAuthorizationFailed) {
		t.Errorf("not allowed: %v", err)
	}
	if got := strings.Join(values(t, s, flights.Table()), " "); got != "a/a" {
		t.Errorf("the table has %s", got)
	}
}

// A batch of which the answer is lost is sent again, and written once.
func TestAFlightWhoseAnswerIsLost(t *testing.T) {
	b, direct := start(t)
	proxy, err := kafkaproxy.Start(t.Context(), []string{b.Addr()})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Close()
	f := openFlights(t, settings(t, proxy.Brokers()))
	lost := 0
	proxy.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
		if r.Key == int16(kmsg.Produce) && lost < 2 {
			lost++
			return kafkaproxy.LoseAnswer
		}
		return kafkaproxy.Pass
	})
	for i := range 3 {
		flight := []*sarama.ProducerMessage{message(flights.Table(), fmt.Sprint("row", i)), message(flights.Decisions(), fmt.Sprint("d", i))}
		if err := f.Send(flight); err != nil {
			t.Fatal(err)
		}
		for _, m := range flight {
			if m.Offset != int64(i) && m.Offset != kafka.OffsetUnknown {
				t.Errorf("%s lies at %d", m.Value, m.Offset)
			}
		}
	}
	if lost != 2 {
		t.Fatalf("%d answers were lost", lost)
	}
	if got := strings.Join(values(t, direct, flights.Table()), " "); got != "row0/row0 row1/row1 row2/row2" {
		t.Errorf("the table has %s", got)
	}
	if got := strings.Join(values(t, direct, flights.Decisions()), " "); got != "d0/d0 d1/d1 d2/d2" {
		t.Errorf("the decisions are %s", got)
	}
}
