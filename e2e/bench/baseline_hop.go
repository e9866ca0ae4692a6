package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// Hop is the bare hop: one record is produced, consumed, produced again to another
// topic by who consumed it, and consumed there. Topics, client and settings are those
// of a catalog, acks are from all replicas, and nothing is looked at or decided: it is
// what Kafka alone takes for the way of a statement.
type Hop struct {
	first, second string
	producer      sarama.SyncProducer
	arrived       chan time.Time
	ended         chan error
	cancel        context.CancelFunc
	value         sarama.ByteEncoder
}

// NewHop makes two topics and who carries records from one to the other. The records
// have as many bytes as a usual statement.
func (e *Env) NewHop(ctx context.Context) (*Hop, error) {
	settings, err := e.kafka()
	if err != nil {
		return nil, err
	}
	topics := kafka.Topics{Catalog: e.newName("hop")}
	if err := e.admin(ctx, func(a *kafka.Admin) error {
		_, err := a.CreateTopics(ctx, topics)
		return err
	}); err != nil {
		return nil, err
	}
	// The first producer is set as the emitter's, the second as the owner's.
	config := settings.Sarama()
	config.Producer.Idempotent = false
	first, err := sarama.NewSyncProducer(settings.Brokers, config)
	if err != nil {
		return nil, err
	}
	second, err := sarama.NewSyncProducer(settings.Brokers, settings.Sarama())
	if err != nil {
		return nil, errors.Join(err, first.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	h := &Hop{first: topics.Definitions(), second: topics.Table(), producer: first, arrived: make(chan time.Time, 1),
		ended: make(chan error, 2), cancel: cancel, value: make([]byte, 400)}
	ready := make(chan struct{}, 2)
	tail := func(topic string, read func(*sarama.ConsumerMessage) error, end func() error) {
		err := settings.TailOpened(ctx, topic, kafka.FromOldest, func() { ready <- struct{}{} }, read)
		h.ended <- errors.Join(err, end())
	}
	go tail(h.first, func(m *sarama.ConsumerMessage) error {
		_, _, err := second.SendMessage(&sarama.ProducerMessage{Topic: h.second, Key: sarama.ByteEncoder(m.Key), Value: sarama.ByteEncoder(m.Value)})
		return err
	}, second.Close)
	go tail(h.second, func(*sarama.ConsumerMessage) error {
		h.arrived <- time.Now()
		return nil
	}, func() error { return nil })
	for range 2 {
		select {
		case <-ready:
		case err := <-h.ended:
			h.ended <- nil
			return nil, errors.Join(fmt.Errorf("the bare hop: %w", err), h.Close())
		}
	}
	return h, nil
}

// Take sends one record and gives the time until it came out.
func (h *Hop) Take(ctx context.Context) (time.Duration, error) {
	began := time.Now()
	if _, _, err := h.producer.SendMessage(&sarama.ProducerMessage{Topic: h.first, Key: sarama.StringEncoder("hop"), Value: h.value}); err != nil {
		return 0, err
	}
	select {
	case at := <-h.arrived:
		return at.Sub(began), nil
	case err := <-h.ended:
		h.ended <- nil
		return 0, fmt.Errorf("the bare hop: %w", err)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// Close ends it.
func (h *Hop) Close() error {
	h.cancel()
	return errors.Join(<-h.ended, <-h.ended, h.producer.Close())
}
