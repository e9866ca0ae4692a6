package view

import (
	"context"
	"sync"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// brokers keeps one connection for questions to the brokers, and replaces it after
// an error.
type brokers struct {
	settings kafka.Settings

	mu     sync.Mutex
	admin  *kafka.Admin
	closed bool
}

// ask runs a question over the connection. An error closes it, so that the next
// question gets a new one.
func (b *brokers) ask(ctx context.Context, question func(*kafka.Admin) error) error {
	a, err := b.get(ctx)
	if err != nil {
		return err
	}
	if err := question(a); err != nil {
		switch kafka.Classify(err).Kind {
		case kafka.KindMissing, kafka.KindChanged, kafka.KindDenied: // an answer
		default:
			b.drop(a)
		}
		return err
	}
	return nil
}

func (b *brokers) get(ctx context.Context) (*kafka.Admin, error) {
	b.mu.Lock()
	a := b.admin
	b.mu.Unlock()
	if a != nil {
		return a, nil
	}
	a, err := b.settings.OpenAdmin(ctx)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || b.admin != nil { // somebody was faster
		go func() { _ = a.Close() }()
		if b.admin == nil {
			return nil, context.Canceled
		}
		return b.admin, nil
	}
	b.admin = a
	return a, nil
}

func (b *brokers) drop(a *kafka.Admin) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.admin == a {
		b.admin = nil
		go func() { _ = a.Close() }() // its calls under way fail; a dead one may take its time
	}
}

func (b *brokers) close() {
	b.mu.Lock()
	a := b.admin
	b.admin, b.closed = nil, true
	b.mu.Unlock()
	if a != nil {
		_ = a.Close()
	}
}
