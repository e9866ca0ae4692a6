// Package kafkatest is what tests ask brokers with that a loaded machine stops for
// seconds.
package kafkatest

import (
	"context"
	"errors"
	"net"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// Tail is that of [kafka.Settings], and goes on where it was when a broker did not
// answer in time: the time is the product's, a test has that of ctx.
func Tail(ctx context.Context, s kafka.Settings, topic string, from int64, each func(*sarama.ConsumerMessage) error) error {
	for {
		err := s.Tail(ctx, topic, from, func(m *sarama.ConsumerMessage) error {
			from = m.Offset + 1
			return each(m)
		})
		if slow := net.Error(nil); err == nil || ctx.Err() != nil || !errors.As(err, &slow) || !slow.Timeout() {
			return err
		}
	}
}
