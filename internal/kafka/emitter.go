package kafka

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Receipt says where a statement went.
type Receipt struct {
	// TopicID is the definitions topic's id; with the offset it is the statement's
	// id when it was given none.
	TopicID string
	Offset  int64
}

// StatementID gives the id that a statement without one of its own has.
func (r Receipt) StatementID() string { return codec.DefaultID(r.TopicID, r.Offset) }

// Emitter writes statements to the definitions topic and tells apart what is
// certainly not written, what is, and what nobody knows.
//
// It does not use an idempotent producer and lets sarama retry nothing. A retry
// hides what became of the attempt before it: after a lost answer the next attempt
// fails with "connection refused", which alone would mean that nothing was written.
// The emitter tries again itself, and only where the first attempt certainly wrote
// nothing. The caller may send what is unknown again: the statement id is there
// for that.
//
// After any failure the producer is replaced, so that a new one asks for the
// leader anew. Emit is safe for use by several goroutines.
type Emitter struct {
	settings Settings
	topic    string

	mu     sync.Mutex
	now    *producerLife // nil when the next Emit has to connect
	closed bool
	lives  sync.WaitGroup // producers not yet closed
}

// producerLife is one producer from its making to its closing. The last user of a
// retired one closes it.
type producerLife struct {
	client   sarama.Client
	producer sarama.SyncProducer
	topicID  string
	asked    time.Time // when topicID was asked for
	users    int       // guarded by Emitter.mu
	retired  bool      // guarded by Emitter.mu
}

// topicIDAge is how long a topic's id is believed without asking again.
const topicIDAge = time.Second

// attempts is how often a statement is tried that was not written, or that does no
// harm when it is written twice.
const attempts = 3

// NewEmitter makes an emitter for a catalog's definitions topic. It connects at
// the first Emit.
func (s Settings) NewEmitter(t Topics) *Emitter {
	return &Emitter{settings: s, topic: t.Definitions()}
}

// Emit writes one statement and waits for all acks. The errors:
//
//   - *TooLargeError: over the limit; nothing was written;
//   - *NotWrittenError: nothing was written, and the chain says why;
//   - *UnknownOutcomeError: it was sent and no answer came (also when ctx ended), or the
//     leader moved.
//
// A statement with an id may be written twice when the leader moves; it is decided once.
func (e *Emitter) Emit(ctx context.Context, s viewkeeper.Submission) (Receipt, error) {
	msg := e.message(s)
	if size := msg.ByteSize(2); size > MaxRecordBytes {
		return Receipt{}, &TooLargeError{Topic: e.topic, Size: size, Limit: MaxRecordBytes}
	}
	wait := newBackoff(firstWait, firstWait*4)
	var maybe *UnknownOutcomeError // of an attempt that may have written it
	for try := 1; ; try++ {
		r, err := e.emitOnce(ctx, msg)
		if err == nil {
			return r, nil
		}
		var not *NotWrittenError
		var unknown *UnknownOutcomeError
		again := false
		switch {
		case errors.As(err, &not):
			again = Classify(not.Err).Retry
		case errors.As(err, &unknown):
			maybe = unknown
			again = leaderMoved(err) && s.ID != ""
		}
		if !again || try == attempts || wait.sleep(ctx) != nil {
			if maybe != nil {
				return Receipt{}, maybe // whatever the last attempt knows of itself
			}
			return Receipt{}, err
		}
		msg = e.message(s) // a message that sarama has had in hand is not used again
	}
}

func (e *Emitter) message(s viewkeeper.Submission) *sarama.ProducerMessage {
	enc := codec.EncodeSubmission(s)
	m := &sarama.ProducerMessage{Topic: e.topic, Key: sarama.ByteEncoder(enc.Key)}
	if enc.Value != nil {
		m.Value = sarama.ByteEncoder(enc.Value)
	}
	for _, h := range enc.Headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	return m
}

func (e *Emitter) emitOnce(ctx context.Context, msg *sarama.ProducerMessage) (Receipt, error) {
	life, err := e.acquire(ctx)
	if err != nil {
		return Receipt{}, &NotWrittenError{e.topic, err}
	}
	type answer struct {
		offset int64
		err    error
	}
	done := make(chan answer, 1)
	go func() {
		_, offset, err := life.producer.SendMessage(msg)
		e.release(life, err != nil)
		done <- answer{offset, err}
	}()
	select {
	case a := <-done:
		if a.err != nil {
			return Receipt{}, e.outcome(msg, a.err)
		}
		return Receipt{TopicID: e.topicIDOf(ctx, life), Offset: a.offset}, nil
	case <-ctx.Done():
		return Receipt{}, &UnknownOutcomeError{e.topic, ctx.Err()}
	}
}

// outcome says what a failed attempt means for the record. Only what is known to
// fail before the request leaves, or to be refused by the leader before it appends,
// counts as not written.
func (e *Emitter) outcome(msg *sarama.ProducerMessage, err error) error {
	var op *net.OpError
	switch {
	case errors.Is(err, sarama.ErrMessageSizeTooLarge):
		return &TooLargeError{Topic: e.topic, Size: msg.ByteSize(2)}
	case errors.As(err, &op) && op.Op == "dial",
		errors.Is(err, sarama.ErrOutOfBrokers), errors.Is(err, sarama.ErrClosedClient),
		errors.Is(err, sarama.ErrNotConnected), errors.Is(err, sarama.ErrShuttingDown),
		errors.Is(err, sarama.ErrBrokerNotAvailable), errors.Is(err, sarama.ErrLeaderNotAvailable),
		errors.Is(err, sarama.ErrUnknownTopicOrPartition),
		errors.Is(err, sarama.ErrNotEnoughReplicas), errors.Is(err, sarama.ErrTopicAuthorizationFailed),
		errors.Is(err, sarama.ErrInvalidTopic), errors.Is(err, sarama.ErrInvalidRecord),
		errors.Is(err, sarama.ErrClusterAuthorizationFailed), errors.Is(err, sarama.ErrPolicyViolation):
		return &NotWrittenError{e.topic, err}
	}
	return &UnknownOutcomeError{e.topic, err}
}

// leaderMoved reports whether a broker answered that it does not lead the partition.
// It says so before it appends, and also while it waits for the other replicas to have
// what it appended: then the next leader may have the record, or not.
func leaderMoved(err error) bool {
	return errors.Is(err, sarama.ErrNotLeaderForPartition) || errors.Is(err, sarama.ErrFencedLeaderEpoch)
}

// acquire gives the present producer, or makes one.
func (e *Emitter) acquire(ctx context.Context) (*producerLife, error) {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil, ErrEmitterClosed
	}
	if life := e.now; life != nil {
		life.users++
		e.mu.Unlock()
		return life, nil
	}
	e.mu.Unlock()

	life, err := Bounded(ctx, e.connect, func(l *producerLife) { l.close() })
	if err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		go life.close()
		return nil, ErrEmitterClosed
	}
	if other := e.now; other != nil { // somebody was faster
		go life.close()
		other.users++
		return other, nil
	}
	e.now, life.users = life, 1
	e.lives.Add(1)
	return life, nil
}

func (e *Emitter) release(life *producerLife, failed bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	life.users--
	if failed && e.now == life {
		e.now, life.retired = nil, true
	}
	if life.retired && life.users == 0 {
		go func() {
			defer e.lives.Done()
			life.close()
		}()
	}
}

func (e *Emitter) connect() (*producerLife, error) {
	c := e.settings.Sarama()
	c.Producer.Idempotent = false
	c.Producer.Retry.Max = 0
	c.Producer.MaxMessageBytes = MaxMessageBytes // the emitter's own check comes first
	client, err := sarama.NewClient(e.settings.Awake().Brokers, c)
	if err != nil {
		return nil, fmt.Errorf("connecting to Kafka at %v: %w", e.settings.Brokers, err)
	}
	life := &producerLife{client: client}
	if err := life.askTopicID(e.topic); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if life.producer, err = sarama.NewSyncProducerFromClient(client); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return life, nil
}

// askTopicID reads the topic's id; a topic that is not there is noticed here,
// before anything is sent.
func (l *producerLife) askTopicID(topic string) error {
	b, err := l.client.Controller()
	if err != nil {
		return err
	}
	meta, err := b.GetMetadata(sarama.NewMetadataRequest(l.client.Config().Version, []string{topic}))
	if err != nil {
		return err
	}
	for _, m := range meta.Topics {
		if m.Name != topic {
			continue
		}
		switch m.Err {
		case sarama.ErrNoError, sarama.ErrLeaderNotAvailable:
			l.topicID, l.asked = m.Uuid.String(), time.Now()
			return nil
		case sarama.ErrUnknownTopicOrPartition:
			return &MissingTopicError{topic}
		}
		return m.Err
	}
	return &MissingTopicError{topic}
}

// topicIDOf asks again when the id is not fresh: the topic may have been made anew
// while the producer was open, and sarama goes by the name.
func (e *Emitter) topicIDOf(ctx context.Context, life *producerLife) string {
	e.mu.Lock()
	id, fresh := life.topicID, time.Since(life.asked) < topicIDAge
	e.mu.Unlock()
	if fresh {
		return id
	}
	probe := &producerLife{client: life.client}
	if _, err := Bounded(ctx, func() (struct{}, error) { return struct{}{}, probe.askTopicID(e.topic) }, nil); err != nil {
		return id
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	life.topicID, life.asked = probe.topicID, probe.asked
	return life.topicID
}

func (l *producerLife) close() {
	if l.producer != nil {
		_ = l.producer.Close()
	}
	_ = l.client.Close()
}

// Close ends the emitter once the statements under way have their answers.
func (e *Emitter) Close() error {
	e.mu.Lock()
	e.closed = true
	if life := e.now; life != nil {
		e.now, life.retired = nil, true
		if life.users == 0 {
			go func() {
				defer e.lives.Done()
				life.close()
			}()
		}
	}
	e.mu.Unlock()
	e.lives.Wait()
	return nil
}
