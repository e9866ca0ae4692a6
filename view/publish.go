package view

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// publishStatus writes the node's status to the nodes topic: at once when something
// changed after a quiet time, else at most every publishMin (in a large fleet more
// seldom) and at least every publishMax. When ctx ends it takes the record away, so that nobody waits for this
// node. It returns when a write fails; the supervisor calls it again.
func (n *Node) publishStatus(ctx context.Context) error {
	config := n.settings.Sarama()
	// A write must end soon, since nothing can interrupt it and the stop waits for it.
	config.Net.DialTimeout, config.Net.ReadTimeout, config.Net.WriteTimeout = n.time.ping, n.time.ping, n.time.ping
	config.Producer.Timeout = n.time.ping * 2 / 3
	config.Producer.Retry.Max = 1
	p, err := kafka.Bounded(ctx, func() (sarama.SyncProducer, error) {
		return sarama.NewSyncProducer(n.settings.Awake().Brokers, config)
	}, func(p sarama.SyncProducer) { _ = p.Close() })
	if err != nil {
		return err
	}
	defer p.Close()
	// A status that a producer has given up may still arrive after later ones of the
	// next producer. It is overwritten within publishMax.
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return n.leave(p)
		case <-timer.C:
		case <-n.publish:
		}
		value, err := json.Marshal(n.Status())
		if err != nil {
			return err
		}
		if err := n.send(p, sarama.ByteEncoder(value)); err != nil {
			if ctx.Err() != nil {
				return nil
			}
			return err
		}
		n.published()
		timer.Reset(n.time.publishMax)
		// The least time between two: what changes in it goes out together after it.
		pause := time.NewTimer(min(n.fleet.publishPause(n.time.publishMin, time.Now()), n.time.publishMax))
		select {
		case <-ctx.Done():
		case <-pause.C:
		}
		pause.Stop()
	}
}

// published notes that a record was taken.
func (n *Node) published() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if p := &n.parts.publish; p.works.IsZero() {
		p.works, p.err, p.since = time.Now(), nil, time.Time{}
	}
}

func (n *Node) send(p sarama.SyncProducer, value sarama.Encoder) error {
	_, _, err := p.SendMessage(&sarama.ProducerMessage{
		Topic: n.topics.Nodes(), Key: sarama.StringEncoder(n.cfg.NodeID), Value: value,
	})
	if err != nil {
		return fmt.Errorf("writing to the topic %s: %w", n.topics.Nodes(), err)
	}
	return nil
}

func (n *Node) leave(p sarama.SyncProducer) error {
	if err := n.send(p, nil); err != nil {
		n.log.Debug("taking the node's record away", "error", err)
	}
	return nil
}
