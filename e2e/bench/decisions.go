package main

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Decisions follows a catalog's decisions topic and notes when each one came.
type Decisions struct {
	mu     sync.Mutex
	seen   map[int64]seen
	news   chan struct{} // closed at each one
	err    error
	cancel context.CancelFunc
	done   chan struct{}
}

type seen struct {
	decision viewkeeper.Decision
	at       time.Time
}

// Decisions begins to follow at the topic's present end.
func (c *Catalog) Decisions(ctx context.Context) (*Decisions, error) {
	settings, err := c.env.kafka()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	d := &Decisions{seen: map[int64]seen{}, news: make(chan struct{}), cancel: cancel, done: make(chan struct{})}
	opened := make(chan struct{})
	go func() {
		defer close(d.done)
		err := settings.TailOpened(ctx, c.Topics.Decisions(), sarama.OffsetNewest, func() { close(opened) }, d.read)
		if err == nil {
			err = errStopped
		}
		d.mu.Lock()
		d.err = err
		close(d.news)
		d.mu.Unlock()
	}()
	select {
	case <-opened:
		return d, nil
	case <-d.done:
		cancel()
		return nil, d.err
	}
}

func (d *Decisions) read(m *sarama.ConsumerMessage) error {
	now := time.Now()
	got, err := codec.DecodeDecision(m.Value)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, ok := d.seen[got.Offset]; !ok {
		d.seen[got.Offset] = seen{got, now}
	}
	close(d.news)
	d.news = make(chan struct{})
	return nil
}

// Wait gives the decision on the statement at an offset, and when it came.
func (d *Decisions) Wait(ctx context.Context, offset int64) (viewkeeper.Decision, time.Time, error) {
	for {
		d.mu.Lock()
		s, ok := d.seen[offset]
		news, err := d.news, d.err
		d.mu.Unlock()
		switch {
		case ok:
			return s.decision, s.at, nil
		case err != nil:
			return viewkeeper.Decision{}, time.Time{}, err
		}
		select {
		case <-news:
		case <-ctx.Done():
			return viewkeeper.Decision{}, time.Time{}, ctx.Err()
		}
	}
}

// Stop ends the following.
func (d *Decisions) Stop() {
	d.cancel()
	<-d.done
}
