package view

import (
	"sync"

	"github.com/lovoo/goka"
)

// State is the state of goka's View: that of the partition which is lowest.
type State int

// The states, in goka's order. Idle is also the state between two views.
const (
	Idle State = iota
	Initializing
	Connecting
	CatchUp
	Running
)

// String gives the word that the status has.
func (s State) String() string {
	switch s {
	case Idle:
		return "idle"
	case Initializing:
		return "initializing"
	case Connecting:
		return "connecting"
	case CatchUp:
		return "catch_up"
	case Running:
		return "running"
	}
	return "unknown"
}

func stateOf(s goka.ViewState) State { return State(s) }

// states passes every change of state to the observers.
type states struct {
	mu        sync.Mutex
	now       State
	observers map[chan State]struct{}
}

// observerBuffer is how many states an observer may be behind before it loses the
// oldest of them.
const observerBuffer = 64

func (s *states) set(to State) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now == to {
		return false
	}
	s.now = to
	for c := range s.observers {
		for {
			select {
			case c <- to:
			default:
				select {
				case <-c:
				default:
				}
				continue
			}
			break
		}
	}
	return true
}

func (s *states) get() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *states) observe() (<-chan State, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := make(chan State, observerBuffer)
	c <- s.now
	if s.observers == nil {
		s.observers = map[chan State]struct{}{}
	}
	s.observers[c] = struct{}{}
	return c, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if _, ok := s.observers[c]; ok {
			delete(s.observers, c)
			close(c)
		}
	}
}
