package kafka_test

import (
	"fmt"
	"testing"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"
)

// TestReadableEnd: the markers of transactions, and what was deleted, are no end that a
// reader could wait for.
func TestReadableEnd(t *testing.T) {
	_, s := start(t)
	a := admin(t, s)
	if _, err := a.CreateTopics(t.Context(), flights); err != nil {
		t.Fatal(err)
	}
	topic := flights.Table()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	write := func(c *kgo.Client, n int) {
		t.Helper()
		for i := range n {
			r := &kgo.Record{Topic: topic, Key: fmt.Append(nil, "k", i), Value: []byte("v")}
			if err := c.ProduceSync(t.Context(), r).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Each transaction is a record and a marker.
	transactions := func(n int, how kgo.TransactionEndTry) {
		t.Helper()
		c, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.TransactionalID(t.Name()))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range n {
			if err := c.BeginTransaction(); err != nil {
				t.Fatal(err)
			}
			write(c, 1)
			if err := c.EndTransaction(t.Context(), how); err != nil {
				t.Fatal(err)
			}
		}
	}
	want := func(readable, end int64) {
		t.Helper()
		gotEnd, err := a.EndOffset(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		got, err := a.ReadableEnd(t.Context(), topic)
		if got != readable || gotEnd != end || err != nil {
			t.Errorf("readable up to %d of %d, %v; want %d of %d", got, gotEnd, err, readable, end)
		}
	}
	want(0, 0)
	write(client, 3)
	want(3, 3)
	transactions(1, kgo.TryCommit)
	want(4, 5)
	transactions(1, kgo.TryAbort)
	want(6, 7)
	write(client, 1)
	want(8, 8)
	transactions(1, kgo.TryCommit)
	want(9, 10)
	for _, c := range []struct{ from, below, want int64 }{{0, 10, 3}, {4, 5, 1}, {5, 6, 0}, {6, 7, 1}, {0, 4, 0}, {9, 50, 1}, {3, 3, 0}} {
		if n, err := a.Markers(t.Context(), topic, c.from, c.below); n != c.want || err != nil {
			t.Errorf("%d markers from %d below %d, %v; want %d", n, c.from, c.below, err, c.want)
		}
	}

	deleter, err := sarama.NewClusterAdmin(s.Brokers, s.Sarama())
	if err != nil {
		t.Fatal(err)
	}
	defer deleter.Close()
	if err := deleter.DeleteRecords(topic, map[int32]int64{0: 9}); err != nil {
		t.Fatal(err)
	}
	want(0, 10) // the marker alone is left
	write(client, 1)
	want(11, 11)
	if err := deleter.DeleteRecords(topic, map[int32]int64{0: 11}); err != nil {
		t.Fatal(err)
	}
	want(0, 11)
}
