package view

import "sync"

// signal wakes all who wait whenever something has changed. Take C first, look,
// then wait on C: a change between the two is not missed.
type signal struct {
	mu sync.Mutex
	c  chan struct{}
}

// C is closed at the next fire.
func (s *signal) C() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c == nil {
		s.c = make(chan struct{})
	}
	return s.c
}

func (s *signal) fire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.c != nil {
		close(s.c)
		s.c = nil
	}
}

// poke makes a channel of one element ready, without waiting.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
