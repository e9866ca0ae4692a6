package kafka

import (
	"errors"
	"testing"

	"github.com/IBM/sarama"
	"github.com/lovoo/goka"
)

// consumer and manager tell when they are closed.
type consumer struct {
	sarama.Consumer
	closed chan struct{}
}

func (c consumer) Close() error { close(c.closed); return errors.New("of the consumer") }

type manager struct {
	goka.TopicManager
	closed chan struct{}
}

func (m manager) Close() error { close(m.closed); return errors.New("of the manager") }

// TestViewClientsAreClosed: what goka opens for a view and leaves open is closed with
// the view, and what it opens after that at once.
func TestViewClientsAreClosed(t *testing.T) {
	var opened []chan struct{}
	closed := func() chan struct{} {
		opened = append(opened, make(chan struct{}))
		return opened[len(opened)-1]
	}
	v := &ViewClients{}
	consumers := v.consumers(func([]string, string) (sarama.Consumer, error) { return consumer{closed: closed()}, nil })
	managers := v.managers(func([]string) (goka.TopicManager, error) { return manager{closed: closed()}, nil })
	open := func() {
		t.Helper()
		for range 2 {
			if _, err := consumers(nil, ""); err != nil {
				t.Fatal(err)
			}
			if _, err := managers(nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	open()
	for _, c := range opened {
		select {
		case <-c:
			t.Fatal("one is closed while the view works")
		default:
		}
	}
	if err := v.Close(); err == nil {
		t.Error("the errors of closing are lost")
	}
	open()
	if err := v.Close(); err != nil {
		t.Errorf("they are closed twice: %v", err)
	}
	for _, c := range opened {
		<-c
	}
}
