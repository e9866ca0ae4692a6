package kafkaproxy_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

const topic = "words"

// world is three brokers with one topic of three partitions, and a proxy before them.
type world struct {
	t     *testing.T
	real  []string
	proxy *kafkaproxy.Proxy
}

func newWorld(t *testing.T) *world {
	t.Helper()
	// No address given by us: three brokers need three.
	b, err := broker.StartWith(t.Context(), broker.Options{Addr: "127.0.0.1:0", Extra: []kfake.Opt{kfake.NumBrokers(3), kfake.SeedTopics(3, topic)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	w := &world{t: t, real: b.Cluster().ListenAddrs()}
	w.proxy, err = kafkaproxy.Start(context.Background(), w.real[:1])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.proxy.Close)
	return w
}

func (w *world) client(brokers string, opts ...kgo.Opt) *kgo.Client {
	w.t.Helper()
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(strings.Split(brokers, ",")...), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.DisableIdempotentWrite(), kgo.RecordRetries(0), kgo.RequestRetries(0), kgo.MetadataMinAge(10 * time.Millisecond)}, opts...)...)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(c.Close)
	return c
}

func (w *world) within(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), d)
	w.t.Cleanup(cancel)
	return ctx
}

// written gives how many records the brokers themselves have.
func (w *world) written() int {
	w.t.Helper()
	c := w.client(w.real[0])
	req := kmsg.NewPtrListOffsetsRequest()
	rt := kmsg.NewListOffsetsRequestTopic()
	rt.Topic = topic
	for i := range 3 {
		p := kmsg.NewListOffsetsRequestTopicPartition()
		p.Partition, p.Timestamp = int32(i), -1
		rt.Partitions = append(rt.Partitions, p)
	}
	req.Topics = append(req.Topics, rt)
	n := 0
	for _, shard := range c.RequestSharded(w.within(time.Minute), req) {
		if shard.Err != nil {
			w.t.Fatal(shard.Err)
		}
		for _, p := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics[0].Partitions {
			n += int(p.Offset)
		}
	}
	return n
}

func record(p int32, text string) *kgo.Record {
	return &kgo.Record{Partition: p, Key: []byte(text), Value: []byte(text)}
}

// once gives act for the first request of a kind, and Pass for all others; the
// channel is closed when it came.
func once(key kmsg.Key, act kafkaproxy.Action) (func(kafkaproxy.Request) kafkaproxy.Action, <-chan struct{}) {
	came := make(chan struct{})
	done := false
	return func(r kafkaproxy.Request) kafkaproxy.Action {
		if done || r.Key != int16(key) {
			return kafkaproxy.Pass
		}
		done = true
		close(came)
		return act
	}, came
}

func (w *world) wait(what string, c <-chan struct{}) {
	w.t.Helper()
	select {
	case <-c:
	case <-time.After(3 * time.Minute):
		w.t.Fatal(what + " did not come")
	}
}

// A client that begins at the proxy never learns of another address, whatever
// versions it speaks and whatever it asks.
func TestClientsStayHere(t *testing.T) {
	w := newWorld(t)
	for _, version := range []sarama.KafkaVersion{sarama.V1_0_0_0, sarama.V2_1_0_0, sarama.V2_8_0_0, sarama.MaxVersion} {
		t.Run("sarama "+version.String(), func(t *testing.T) {
			c := sarama.NewConfig()
			c.Version = version
			c.Producer.Return.Successes = true
			c.Producer.Partitioner = sarama.NewManualPartitioner
			client, err := sarama.NewClient(strings.Split(w.proxy.Brokers(), ","), c)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := client.Close(); err != nil && !errors.Is(err, sarama.ErrClosedClient) {
					t.Error(err)
				}
			}()
			if len(client.Brokers()) != 3 {
				t.Fatalf("%d brokers, want 3", len(client.Brokers()))
			}
			for _, b := range client.Brokers() {
				if slices.Contains(w.real, b.Addr()) {
					t.Errorf("the client knows the broker's own address %s", b.Addr())
				}
			}
			coordinator, err := client.Coordinator("a group")
			if err != nil {
				t.Fatal(err)
			}
			if slices.Contains(w.real, coordinator.Addr()) {
				t.Errorf("the coordinator is the broker's own address %s", coordinator.Addr())
			}
			producer, err := sarama.NewSyncProducerFromClient(client)
			if err != nil {
				t.Fatal(err)
			}
			before := w.written()
			for p := range int32(3) {
				if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: topic, Partition: p, Value: sarama.StringEncoder("x")}); err != nil {
					t.Fatal(err)
				}
			}
			if n := w.written(); n != before+3 {
				t.Errorf("%d records, want %d", n, before+3)
			}
			if err := producer.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	t.Run("franz-go", func(t *testing.T) {
		c := w.client(w.proxy.Brokers(), kgo.ConsumerGroup("g"), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
		ctx := w.within(time.Minute)
		var want, got []string
		for i := range 9 {
			text := fmt.Sprint("franz-go ", i)
			want = append(want, text)
			if err := c.ProduceSync(ctx, record(int32(i%3), text)).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
		for len(got) < len(want) {
			fetches := c.PollFetches(ctx)
			if err := fetches.Err(); err != nil {
				t.Fatal(err)
			}
			fetches.EachRecord(func(r *kgo.Record) {
				if strings.HasPrefix(string(r.Value), "franz-go") {
					got = append(got, string(r.Value))
				}
			})
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Errorf("read %q, want %q", got, want)
		}
		cluster, err := kmsg.NewPtrDescribeClusterRequest().RequestWith(ctx, c)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range cluster.Brokers {
			if addr := net.JoinHostPort(b.Host, fmt.Sprint(b.Port)); slices.Contains(w.real, addr) {
				t.Errorf("the cluster is described with the broker's own address %s", addr)
			}
		}
	})
}

// Cut fails every call at once, of old and new connections; Heal ends it.
func TestCut(t *testing.T) {
	w := newWorld(t)
	c := w.client(w.proxy.Brokers())
	ctx := w.within(time.Minute)
	if err := c.ProduceSync(ctx, record(0, "before")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.proxy.Cut()
	if err := c.ProduceSync(ctx, record(0, "meanwhile")).FirstErr(); err == nil || ctx.Err() != nil {
		t.Errorf("a write through a cut gave %v", err)
	}
	if err := w.client(w.proxy.Brokers()).Ping(ctx); err == nil || ctx.Err() != nil {
		t.Errorf("a new connection through a cut gave %v", err)
	}
	w.proxy.Heal()
	if err := w.client(w.proxy.Brokers()).ProduceSync(ctx, record(0, "after")).FirstErr(); err != nil {
		t.Error(err)
	}
	if n := w.written(); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// Silence answers nobody: only the caller's deadline ends a call. Heal lets on what
// waited.
func TestSilence(t *testing.T) {
	w := newWorld(t)
	c := w.client(w.proxy.Brokers())
	if err := c.ProduceSync(w.within(time.Minute), record(0, "before")).FirstErr(); err != nil {
		t.Fatal(err)
	}
	w.proxy.Silence()
	answer := make(chan error, 1)
	go func() { answer <- c.ProduceSync(t.Context(), record(0, "meanwhile")).FirstErr() }()
	if err := w.client(w.proxy.Brokers()).Ping(w.within(300 * time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a new connection into the silence gave %v", err)
	}
	select {
	case err := <-answer:
		t.Errorf("the silence answered %v", err)
	default:
	}
	if n := w.written(); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
	w.proxy.Heal()
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if n := w.written(); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// What each action does to a write: whether it is written, and what the writer hears.
func TestActions(t *testing.T) {
	for _, test := range []struct {
		action  kafkaproxy.Action
		written bool // before Heal
		fails   bool
		healed  bool // the writer hears only after Heal
	}{
		{action: kafkaproxy.Pass, written: true},
		{action: kafkaproxy.Refuse, fails: true},
		{action: kafkaproxy.LoseAnswer, written: true, fails: true},
		{action: kafkaproxy.Hold, healed: true},
		{action: kafkaproxy.HoldAnswer, written: true, healed: true},
	} {
		t.Run(fmt.Sprint(test.action), func(t *testing.T) {
			w := newWorld(t)
			c := w.client(w.proxy.Brokers())
			f, came := once(kmsg.Produce, test.action)
			w.proxy.Intercept(f)
			answer := make(chan error, 1)
			go func() { answer <- c.ProduceSync(t.Context(), record(0, "x")).FirstErr() }()
			w.wait("the write", came)
			if test.written {
				for w.written() == 0 { // until it is there
				}
			}
			if test.healed {
				if !test.written && w.written() != 0 {
					t.Error("it is written while it is held")
				}
				select {
				case err := <-answer:
					t.Errorf("the writer heard %v before Heal", err)
				default:
				}
				w.proxy.Heal()
			}
			if err := <-answer; (err != nil) != test.fails {
				t.Errorf("the writer heard %v", err)
			}
			want := 1
			if test.action == kafkaproxy.Refuse {
				want = 0
			}
			if n := w.written(); n != want {
				t.Errorf("%d records, want %d", n, want)
			}
		})
	}
}

// A request that was held is carried out at Heal, although its sender has gone.
func TestHeldWriteComesLate(t *testing.T) {
	w := newWorld(t)
	c := w.client(w.proxy.Brokers())
	f, came := once(kmsg.Produce, kafkaproxy.Hold)
	w.proxy.Intercept(f)
	c.Produce(t.Context(), record(0, "late"), nil)
	w.wait("the write", came)
	c.Close()
	if n := w.written(); n != 0 {
		t.Fatalf("%d records while the only one is held", n)
	}
	w.proxy.Heal()
	ctx := w.within(time.Minute)
	for w.written() == 0 {
		if ctx.Err() != nil {
			t.Fatal("the late write never came")
		}
	}
}

// A produce request tells its topic and its records, however they are compressed.
func TestRecords(t *testing.T) {
	for _, codec := range []kgo.CompressionCodec{kgo.NoCompression(), kgo.GzipCompression(), kgo.SnappyCompression(), kgo.Lz4Compression(), kgo.ZstdCompression()} {
		w := newWorld(t)
		var got []string
		w.proxy.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
			if r.Key != int16(kmsg.Produce) {
				if len(r.Records()) != 0 {
					t.Errorf("%v has records", r)
				}
				return kafkaproxy.Pass
			}
			if names := r.Topics(); !slices.Equal(names, []string{topic}) {
				t.Errorf("%v: topics %q", r, names)
			}
			if r.Client != "a writer" {
				t.Errorf("the client is %q", r.Client)
			}
			for _, rec := range r.Records() {
				if rec.Topic != topic || !bytes.Equal(rec.Key, rec.Value) {
					t.Errorf("record %q = %q of topic %q", rec.Key, rec.Value, rec.Topic)
				}
				got = append(got, string(rec.Key))
			}
			return kafkaproxy.Pass
		})
		c := w.client(w.proxy.Brokers(), kgo.ProducerBatchCompression(codec), kgo.ClientID("a writer"), kgo.ProducerLinger(20*time.Millisecond))
		want := []string{strings.Repeat("a", 500), strings.Repeat("b", 500), ""}
		if err := c.ProduceSync(w.within(time.Minute), record(1, want[0]), record(1, want[1]), record(1, want[2])).FirstErr(); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: records %q", codec, got)
		}
	}
}

// What kmsg does not know goes through as it came, both ways.
func TestUnknownPassesUntouched(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() { // a broker that sends back what it gets, from the correlation id on
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				for {
					var size [4]byte
					if _, err := io.ReadFull(c, size[:]); err != nil {
						return
					}
					frame := make([]byte, binary.BigEndian.Uint32(size[:]))
					if _, err := io.ReadFull(c, frame); err != nil {
						return
					}
					out := frame[min(4, len(frame)):]
					if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(out))), out...)); err != nil {
						return
					}
				}
			}()
		}
	}()
	p, err := kafkaproxy.Start(t.Context(), []string{listener.Addr().String()})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	p.Intercept(func(r kafkaproxy.Request) kafkaproxy.Action {
		if len(r.Topics()) != 0 || len(r.Records()) != 0 {
			t.Errorf("%v has topics or records", r)
		}
		return kafkaproxy.Pass
	})
	c, err := net.Dial("tcp", p.Brokers())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	frame := func(key, version int16, rest string) string {
		b := binary.BigEndian.AppendUint16(nil, uint16(key))
		b = binary.BigEndian.AppendUint16(b, uint16(version))
		return string(b) + "\x00\x00\x00\x07" + rest
	}
	for _, f := range []string{
		frame(9999, 0, "\x00\x02me and more"),                                         // a kind that is not known
		frame(int16(kmsg.Metadata), 999, "\x00\x02me\x00\x00"),                        // a version that is not known
		frame(int16(kmsg.Metadata), 1, "\x00\x02me\xff\xff"),                          // broken
		frame(int16(kmsg.Metadata), 12, "\xff\xff\xff\xff\xff\xff\xff\xff"),           // broken tags
		frame(int16(kmsg.Produce), 9, "\xff\xff\x00\x00\x00\xff\xff\x00\x00\x00\x01"), // broken too
		frame(int16(kmsg.Produce), 3, "\xff\xff"),
		frame(int16(kmsg.Fetch), 13, "\x7f\xff"),
		"", "\x00", "\x00\x03\x00\x01",
	} {
		if _, err := c.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(f))), f...)); err != nil {
			t.Fatal(err)
		}
		want := f[min(4, len(f)):]
		got := make([]byte, 4+len(want))
		if _, err := io.ReadFull(c, got); err != nil {
			t.Fatalf("%q: %v", f, err)
		}
		if string(got[4:]) != want {
			t.Errorf("%q came back as %q", want, got[4:])
		}
	}
}

// Close leaves nothing behind, whatever is held.
func TestCloseWhileAllIsHeld(t *testing.T) {
	w := newWorld(t)
	c := w.client(w.proxy.Brokers())
	f, came := once(kmsg.Produce, kafkaproxy.Hold)
	w.proxy.Intercept(f)
	c.Produce(t.Context(), record(0, "x"), nil)
	w.wait("the write", came)
	w.proxy.Silence()
	w.proxy.Close()
	w.proxy.Close() // again does nothing
	if _, err := net.Dial("tcp", w.proxy.Brokers()); err == nil {
		t.Error("a closed proxy takes connections")
	}
}
