package kafka

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// OffsetUnknown is the offset of a record that the broker says it had already.
const OffsetUnknown = -1

// Flights writes records in flights: all of a flight goes out at once, and Send returns
// when all of it is acked by all replicas.
//
// sarama's own producer sends the first record of a flight as soon as it has it, and
// the others when that is acked: two requests, one after the other, and a dozen passes
// from goroutine to goroutine. Here a flight is one request to each broker that leads
// one of its topics.
//
// It is idempotent as sarama's is. Each topic's batches are numbered, one is under way
// at a time, and one of which the answer was lost is sent again with its number, so that
// it is written once. The topics have one partition each. Send and Close are safe for
// concurrent use.
type Flights struct {
	client sarama.Client
	id     int64
	epoch  int16

	closing   chan struct{} // closed when no attempt is to follow the one under way
	closeOnce sync.Once

	mu        sync.Mutex // held while a flight is under way
	sequences map[string]int32
}

// OpenFlights connects, and gets the number of an idempotent producer.
func (s Settings) OpenFlights() (*Flights, error) {
	client, err := sarama.NewClient(s.Awake().Brokers, s.Sarama())
	if err != nil {
		return nil, fmt.Errorf("opening a producer: %w", err)
	}
	f := &Flights{client: client, closing: make(chan struct{}), sequences: map[string]int32{}}
	if err := f.begin(); err != nil {
		return nil, errors.Join(fmt.Errorf("opening a producer: %w", err), client.Close())
	}
	return f, nil
}

func (f *Flights) begin() error {
	b := f.client.LeastLoadedBroker()
	if b == nil {
		return sarama.ErrOutOfBrokers
	}
	_ = b.Open(f.client.Config()) // an error says that it is open
	res, err := b.InitProducerID(&sarama.InitProducerIDRequest{Version: 4, ProducerID: -1, ProducerEpoch: -1})
	switch {
	case err != nil:
		return err
	case res.Err != sarama.ErrNoError:
		return res.Err
	}
	f.id, f.epoch = res.ProducerID, res.ProducerEpoch
	return nil
}

// Close waits for the attempt under way, and closes the connections.
func (f *Flights) Close() error {
	f.closeOnce.Do(func() { close(f.closing) })
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.client.Close()
}

// Send writes the records in one flight, those of one topic in their order, and sets
// the offset of each. What does not fit into one request goes in several, one after the
// other. An error means that it is not known which of them are written, and that the
// producer must not be used again.
func (f *Flights) Send(messages []*sarama.ProducerMessage) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(messages) > 0 {
		n := fitting(messages)
		batches, err := f.batches(messages[:n])
		if err == nil {
			err = f.write(batches)
		}
		if err != nil {
			return err
		}
		messages = messages[n:]
	}
	return nil
}

// fitting is how many of the messages go in one request: one at least.
func fitting(messages []*sarama.ProducerMessage) int {
	size := 0
	for i, m := range messages {
		if size += m.ByteSize(2); size > MaxRecordBytes && i > 0 {
			return i
		}
	}
	return len(messages)
}

// batch is the records of one topic in a request.
type batch struct {
	topic    string
	messages []*sarama.ProducerMessage
	records  *sarama.RecordBatch
}

func (f *Flights) batches(messages []*sarama.ProducerMessage) (out []*batch, err error) {
	now := time.Now().Truncate(time.Millisecond)
	of := map[string]*batch{}
	for _, m := range messages {
		b := of[m.Topic]
		if b == nil {
			b = &batch{topic: m.Topic, records: &sarama.RecordBatch{
				Version: 2, FirstTimestamp: now, MaxTimestamp: now, ProducerID: f.id, ProducerEpoch: f.epoch, FirstSequence: f.sequences[m.Topic],
			}}
			of[m.Topic] = b
			out = append(out, b)
		}
		r := &sarama.Record{OffsetDelta: int64(len(b.messages))}
		if m.Key != nil {
			if r.Key, err = m.Key.Encode(); err != nil {
				return nil, err
			}
		}
		if m.Value != nil {
			if r.Value, err = m.Value.Encode(); err != nil {
				return nil, err
			}
		}
		for i := range m.Headers {
			r.Headers = append(r.Headers, &m.Headers[i])
		}
		m.Offset = OffsetUnknown
		b.messages = append(b.messages, m)
		b.records.Records = append(b.records.Records, r)
		b.records.LastOffsetDelta = int32(r.OffsetDelta)
	}
	for _, b := range out {
		// Kafka's numbers go round from the highest to 0.
		f.sequences[b.topic] = int32((int64(b.records.FirstSequence) + int64(len(b.messages))) & math.MaxInt32)
	}
	return out, nil
}

// write sends batches until all are acked, or one can't be.
func (f *Flights) write(batches []*batch) error {
	config := f.client.Config().Producer
	for try := 0; ; try++ {
		left, err := f.attempt(batches)
		if len(left) == 0 {
			return nil
		}
		if try == config.Retry.Max || !passing(err) {
			return fmt.Errorf("writing %d of %d batches failed, the first to topic %s: %w", len(left), len(batches), left[0].topic, err)
		}
		select {
		case <-time.After(config.Retry.Backoff):
		case <-f.closing:
			return fmt.Errorf("writing to topic %s was given up: %w", left[0].topic, err)
		}
		var topics []string
		for _, b := range left {
			topics = append(topics, b.topic)
		}
		// What it can't find out, the next attempt fails by.
		_ = f.client.RefreshMetadata(topics...)
		batches = left
	}
}

// attempt sends each leader its batches in one request, and gives those that are not
// acked with the first reason.
func (f *Flights) attempt(batches []*batch) (left []*batch, err error) {
	of := map[*sarama.Broker][]*batch{}
	for _, b := range batches {
		leader, failed := f.client.Leader(b.topic, 0)
		if failed != nil {
			left, err = append(left, b), errors.Join(err, failed)
			continue
		}
		of[leader] = append(of[leader], b)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	for leader, its := range of {
		send := func() {
			for b, failed := range f.produce(leader, its) {
				mu.Lock()
				left, err = append(left, b), errors.Join(err, failed)
				mu.Unlock()
			}
		}
		if len(of) == 1 {
			send()
		} else {
			group.Go(send)
		}
	}
	group.Wait()
	return left, err
}

// produce sends one request, and gives what is not acked and why.
func (f *Flights) produce(leader *sarama.Broker, batches []*batch) map[*batch]error {
	config := f.client.Config().Producer
	req := &sarama.ProduceRequest{Version: 7, RequiredAcks: config.RequiredAcks, Timeout: int32(config.Timeout / time.Millisecond)}
	for _, b := range batches {
		req.AddBatch(b.topic, 0, b.records)
	}
	failed := map[*batch]error{}
	res, err := leader.Produce(req)
	if err != nil {
		_ = leader.Close() // what is still to come on it is of no use
		for _, b := range batches {
			failed[b] = err
		}
		return failed
	}
	for _, b := range batches {
		block := res.GetBlock(b.topic, 0)
		switch {
		case block == nil:
			failed[b] = sarama.ErrIncompleteResponse
		case block.Err == sarama.ErrDuplicateSequenceNumber:
			// It has been written, nobody says where.
		case block.Err != sarama.ErrNoError:
			failed[b] = block.Err
		default:
			for i, m := range b.messages {
				m.Offset = block.Offset + int64(i)
			}
		}
	}
	return failed
}

// passing reports whether an attempt that failed so may succeed at another time: what a
// leader says that moves, or a connection that broke. A batch that may have been written
// by then is known by its number.
func passing(err error) bool {
	var code sarama.KError
	if !errors.As(err, &code) {
		return !errors.As(err, new(sarama.PacketEncodingError))
	}
	switch code {
	case sarama.ErrInvalidMessage, sarama.ErrUnknownTopicOrPartition, sarama.ErrLeaderNotAvailable, sarama.ErrNotLeaderForPartition,
		sarama.ErrRequestTimedOut, sarama.ErrNotEnoughReplicas, sarama.ErrNotEnoughReplicasAfterAppend, sarama.ErrKafkaStorageError:
		return true
	}
	return false
}
