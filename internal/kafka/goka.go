package kafka

import (
	"hash"
	"io"
	"log/slog"
	"sync"
	"time"

	"fmt"

	"github.com/IBM/sarama"
	"github.com/hashicorp/go-multierror"
	"github.com/lovoo/goka"
)

// Hasher assigns keys to partitions for producers, processors and views alike.
// The topics have one partition each; it is here so that nobody picks another.
func Hasher() func() hash.Hash32 { return goka.DefaultHasher() }

// ProducerBuilder makes producers. Wrap it to wait for acks and to stay failed.
func (s Settings) ProducerBuilder() goka.ProducerBuilder {
	return func(brokers []string, clientID string, hasher func() hash.Hash32) (goka.Producer, error) {
		return goka.ProducerBuilderWithConfig(s.Sarama())(s.awake(brokers), clientID, hasher)
	}
}

// ConsumerBuilder makes the consumers that read tables.
func (s Settings) ConsumerBuilder() goka.SaramaConsumerBuilder {
	return func(brokers []string, clientID string) (sarama.Consumer, error) {
		return goka.SaramaConsumerBuilderWithConfig(s.Sarama())(s.awake(brokers), clientID)
	}
}

// ConsumerGroupBuilder makes the processor's group consumer. With an instance id
// a restart within the session time needs no rebalance; "" is a dynamic member.
func (s Settings) ConsumerGroupBuilder(instanceID string) goka.ConsumerGroupBuilder {
	return func(brokers []string, group, clientID string) (sarama.ConsumerGroup, error) {
		return goka.ConsumerGroupBuilderWithConfig(s.group(instanceID))(s.awake(brokers), group, clientID)
	}
}

// TopicManagerBuilder makes topic managers that never create a topic. A non-nil
// guard is asked at every load of its topic's offsets.
func (s Settings) TopicManagerBuilder(guard *Guard) goka.TopicManagerBuilder {
	return func(brokers []string) (goka.TopicManager, error) {
		return newTopicManager(s.with(brokers), guard)
	}
}

func (s Settings) with(brokers []string) Settings {
	s.Brokers = brokers
	return s
}

func (s Settings) awake(brokers []string) []string { return s.with(brokers).Awake().Brokers }

// ProcessorOptions is what every processor starts from. Options that come later
// win, so that the processor wraps the builders it wants wrapped.
func (s Settings) ProcessorOptions(instanceID string, guard *Guard, log *slog.Logger) []goka.ProcessorOption {
	return []goka.ProcessorOption{
		goka.WithClientID(s.ClientID),
		goka.WithNilHandling(goka.NilProcess),
		goka.WithHasher(Hasher()),
		goka.WithProducerBuilder(s.ProducerBuilder()),
		goka.WithConsumerSaramaBuilder(s.ConsumerBuilder()),
		goka.WithConsumerGroupBuilder(s.ConsumerGroupBuilder(instanceID)),
		goka.WithTopicManagerBuilder(s.TopicManagerBuilder(guard)),
		goka.WithBackoffBuilder(shortBackoff),
		goka.WithLogger(Logger(log)),
	}
}

// ViewOptions is what every view starts from. What the view opens is kept in
// clients, for its owner to close after the view's Run has returned.
func (s Settings) ViewOptions(clients *ViewClients, guard *Guard, log *slog.Logger) []goka.ViewOption {
	return []goka.ViewOption{
		goka.WithViewClientID(s.ClientID),
		goka.WithViewHasher(Hasher()),
		goka.WithViewConsumerSaramaBuilder(clients.consumers(s.ConsumerBuilder())),
		goka.WithViewTopicManagerBuilder(clients.managers(s.TopicManagerBuilder(guard))),
		goka.WithViewBackoffBuilder(shortBackoff),
		goka.WithViewLogger(Logger(log)),
	}
}

// shortBackoff is for goka's own retries, which the supervisor makes rare.
func shortBackoff() (goka.Backoff, error) {
	return goka.NewSimpleBackoff(250*time.Millisecond, 5*time.Second), nil
}

// ViewClients keeps the consumers and topic managers that goka opens for a view
// and does not close. The zero value is ready.
type ViewClients struct {
	mu     sync.Mutex
	opened []io.Closer
	closed bool
}

func (v *ViewClients) keep(c io.Closer) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.closed { // the view was given up while it was made
		go func() { _ = c.Close() }()
		return
	}
	v.opened = append(v.opened, c)
}

// Close closes all of them, and whatever comes later at once.
func (v *ViewClients) Close() error {
	v.mu.Lock()
	opened := v.opened
	v.opened, v.closed = nil, true
	v.mu.Unlock()
	var errs *multierror.Error
	for _, c := range opened {
		if err := c.Close(); err != nil {
			errs = multierror.Append(errs, err)
		}
	}
	return errs.ErrorOrNil()
}

func (v *ViewClients) consumers(b goka.SaramaConsumerBuilder) goka.SaramaConsumerBuilder {
	return func(brokers []string, clientID string) (sarama.Consumer, error) {
		c, err := b(brokers, clientID)
		if err == nil {
			v.keep(c)
		}
		return c, err
	}
}

func (v *ViewClients) managers(b goka.TopicManagerBuilder) goka.TopicManagerBuilder {
	return func(brokers []string) (goka.TopicManager, error) {
		m, err := b(brokers)
		if err == nil {
			v.keep(m)
		}
		return m, err
	}
}

// Logger passes goka's messages to log at level debug: they speak of partitions
// and offsets; what a person must know, viewkeeper says itself.
func Logger(log *slog.Logger) goka.Logger {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return gokaLogger{log}
}

type gokaLogger struct{ log *slog.Logger }

func (l gokaLogger) Print(args ...any)   { l.log.Debug(fmt.Sprint(args...), "from", "goka") }
func (l gokaLogger) Println(args ...any) { l.log.Debug(fmt.Sprint(args...), "from", "goka") }
func (l gokaLogger) Printf(f string, args ...any) {
	l.log.Debug(fmt.Sprintf(f, args...), "from", "goka")
}
