package processor

import (
	"context"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// sweeps says how often the nodes topic is swept, and how old a record has to be.
type sweeps struct{ every, age time.Duration }

// sweepNodes takes the records of nodes that are long gone out of the nodes topic, at
// the take-over and from time to time. A node that comes back writes its record again
// within seconds. What fails is tried again the next time; nothing depends on it.
func (l *life) sweepNodes(o *owner) {
	tick := time.NewTicker(l.sweeps.every)
	defer tick.Stop()
	for {
		gone, err := l.oldNodes(o.ctx)
		switch {
		case err != nil:
			l.log.Info("looking for old nodes failed", "error", err)
		case len(gone) > 0:
			l.log.Info("old nodes are taken out of the nodes topic", "count", len(gone))
			select {
			case o.sweep <- gone:
			case <-o.ctx.Done():
			}
		}
		select {
		case <-tick.C:
		case <-o.ctx.Done():
			return
		}
	}
}

// oldNodes gives a tombstone for each node whose last record is too old.
func (l *life) oldNodes(ctx context.Context) ([]*sarama.ProducerMessage, error) {
	end, err := l.admin.ReadableEnd(ctx, l.topics.Nodes())
	if err != nil || end == 0 {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	last := map[string]time.Time{} // zero for one that is gone already
	done := false
	err = l.settings.Tail(ctx, l.topics.Nodes(), kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		last[string(m.Key)] = m.Timestamp
		if m.Value == nil {
			last[string(m.Key)] = time.Time{}
		}
		if m.Offset >= end-1 {
			done = true
			cancel()
		}
		return nil
	})
	if err != nil || !done {
		return nil, err
	}
	var gone []*sarama.ProducerMessage
	for key, at := range last {
		if !at.IsZero() && l.now().Sub(at) > l.sweeps.age {
			gone = append(gone, &sarama.ProducerMessage{Topic: l.topics.Nodes(), Key: sarama.StringEncoder(key)})
		}
	}
	return gone, nil
}
