package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/hashicorp/go-multierror"
)

// FromOldest as an offset for Tail is the topic's first record.
const FromOldest = sarama.OffsetOldest

// Tail gives each record of a topic to read, from an offset on and then as they
// come, until ctx ends, read fails, or the broker is lost. It returns the reason,
// nil for ctx. An offset that the topic does not have is a *TopicChangedError.
func (s Settings) Tail(ctx context.Context, topic string, from int64, read func(*sarama.ConsumerMessage) error) error {
	return s.TailOpened(ctx, topic, from, func() {}, read)
}

// TailOpened is Tail that says when the topic's leader has answered, and reading
// begins.
func (s Settings) TailOpened(ctx context.Context, topic string, from int64, opened func(), read func(*sarama.ConsumerMessage) error) error {
	return s.TailGathered(ctx, topic, from, opened, nil, read)
}

// MostGather is the longest time that TailGathered lets records gather.
const MostGather = 250 * time.Millisecond

// TailGathered is TailOpened for a topic that may have many records a second, and whose
// reader need not have each at once: whenever it has read all that there is, it lets
// records gather on the broker for a while before it asks for more. The first record
// after a quiet time comes at once; a busy topic costs a few requests a second instead
// of one for each record. gather is asked each time how long; 0 is not at all.
func (s Settings) TailGathered(ctx context.Context, topic string, from int64, opened func(), gather func() time.Duration, read func(*sarama.ConsumerMessage) error) (err error) {
	config := s.Sarama()
	// A record ends the broker's wait at once; a longer one spares idle requests.
	config.Consumer.MaxWaitTime = 250 * time.Millisecond
	if gather != nil {
		// Else sarama would go on asking for the records that are to gather. The pause is
		// shorter than Consumer.MaxProcessingTime, after which it takes a reader for stuck.
		config.ChannelBufferSize = 0
	}
	c, err := Bounded(ctx, func() (sarama.Consumer, error) {
		return sarama.NewConsumer(s.Awake().Brokers, config)
	}, func(c sarama.Consumer) { _ = c.Close() })
	if err != nil {
		return tailError(ctx, topic, err)
	}
	defer func() {
		if cerr := c.Close(); cerr != nil && err == nil && ctx.Err() == nil {
			err = cerr
		}
	}()
	pc, err := Bounded(ctx, func() (sarama.PartitionConsumer, error) {
		return c.ConsumePartition(topic, 0, from)
	}, func(pc sarama.PartitionConsumer) { _ = pc.Close() })
	if err != nil {
		return tailError(ctx, topic, err)
	}
	defer func() {
		if cerr := pc.Close(); cerr != nil && err == nil && ctx.Err() == nil {
			err = tailError(ctx, topic, cerr)
		}
	}()
	opened()
	for {
		select {
		case <-ctx.Done():
			return nil
		case m, ok := <-pc.Messages():
			if !ok {
				return tailError(ctx, topic, errors.New("the consumer ended"))
			}
			if err := read(m); err != nil {
				return err
			}
			if gather != nil && m.Offset+1 >= pc.HighWaterMarkOffset() && !pause(ctx, min(gather(), MostGather)) {
				return nil
			}
		case e, ok := <-pc.Errors():
			if ok {
				return tailError(ctx, topic, e.Err)
			}
		}
	}
}

// pause waits, and reports false when ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func tailError(ctx context.Context, topic string, err error) error {
	var list *multierror.Error
	var lists sarama.ConsumerErrors
	switch {
	case ctx.Err() != nil:
		return nil
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return &MissingTopicError{topic}
	case errors.As(err, &lists) && len(lists) > 0:
		err = lists[0].Err
	case errors.As(err, &list) && list.Len() > 0:
		err = list.Errors[0]
	}
	return fmt.Errorf("reading the topic %s: %w", topic, err)
}
