package kafka

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/rcrowley/go-metrics"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/broker"
)

// TestTailGathers: what comes while a reader lets records gather is read together, all of
// it and in order, and costs no request for each record.
func TestTailGathers(t *testing.T) {
	b, err := broker.Start(t.Context(), "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	settings, err := NewSettings(viewkeeper.KafkaSettings{Brokers: []string{b.Addr()}})
	if err != nil {
		t.Fatal(err)
	}
	topics := Topics{Catalog: "gather"}
	a, err := settings.OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.CreateTopics(t.Context(), topics); err != nil {
		t.Fatal(err)
	}
	producer, err := sarama.NewSyncProducer(settings.Brokers, settings.Sarama())
	if err != nil {
		t.Fatal(err)
	}
	defer producer.Close()
	sent := 0
	send := func() {
		if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topics.Nodes(), Key: sarama.StringEncoder("k"), Value: sarama.StringEncoder(fmt.Sprint(sent))}); err != nil {
			t.Error(err)
		}
		sent++
	}
	const many = 200
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	asked, read := 0, 0
	gather := func() time.Duration {
		if asked++; asked == 1 {
			for range many {
				send()
			}
		}
		return time.Millisecond
	}
	send()
	err = settings.TailGathered(ctx, topics.Nodes(), FromOldest, func() {}, gather, func(m *sarama.ConsumerMessage) error {
		if string(m.Value) != fmt.Sprint(read) {
			t.Errorf("record %s is the one at place %d", m.Value, read)
		}
		if read++; read == many+1 {
			cancel()
		}
		return nil
	})
	if err != nil || read != many+1 {
		t.Fatalf("%d records were read: %v", read, err)
	}
	if asked > 20 {
		t.Errorf("%d records came in %d parts", many, asked)
	}
}

// TestNoMetrics: every kind of metric that sarama asks for is there and keeps nothing, and
// a client works with them.
func TestNoMetrics(t *testing.T) {
	r := Settings{}.Sarama().MetricRegistry
	metrics.GetOrRegisterMeter("m", r).Mark(1)
	metrics.GetOrRegisterCounter("c", r).Inc(1)
	metrics.GetOrRegisterGauge("g", r).Update(1)
	metrics.GetOrRegisterTimer("t", r).Update(1)
	h := r.GetOrRegister("h", func() metrics.Histogram { return metrics.NewHistogram(metrics.NewUniformSample(1)) }).(metrics.Histogram)
	h.Update(1)
	if n := metrics.GetOrRegisterMeter("m", r).Count() + h.Count() + metrics.GetOrRegisterCounter("c", r).Count(); n != 0 {
		t.Errorf("%d was kept", n)
	}
	r.Each(func(name string, _ any) { t.Errorf("%s was kept", name) })
}
