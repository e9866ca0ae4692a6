package processor

import (
	"maps"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// State is what a processor does now.
type State string

// The states. A processor goes from starting to standby or claiming, from claiming
// to owner or blocked, and from anywhere back to starting or to stopped.
const (
	StateStarting State = "starting" // connecting, joining the group
	StateStandby  State = "standby"  // another process of the group has the partition
	StateClaiming State = "claiming" // the partition is ours; checks, fence, completion
	StateOwner    State = "owner"    // statements are judged here
	StateBlocked  State = "blocked"  // not to be owned as the topics are; see Reasons
	StateStopped  State = "stopped"  // Run has returned, or was not called
)

// Status is what a processor says of itself.
type Status struct {
	State State
	// Since is when State was entered.
	Since time.Time
	// Epoch is this process's when it is the owner, else 0. Version is the last that
	// it committed.
	Epoch   viewkeeper.Epoch
	Version viewkeeper.Version
	// Reasons are codes of the root package with a sentence each: why it is blocked,
	// or what is wrong with an owner's input.
	Reasons map[string]string
	// Err is why the last life ended, "" before the first has.
	Err string
}

// board is the status under its lock.
type board struct {
	now func() time.Time

	mu       sync.Mutex
	status   Status
	standing map[string]string // reasons that do not end with a life
	changed  chan struct{}     // closed at the next change
}

func newBoard(now func() time.Time) *board {
	return &board{now: now, status: Status{State: StateStopped, Since: now()}, changed: make(chan struct{})}
}

func (b *board) get() (Status, <-chan struct{}) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.status
	s.Reasons = maps.Clone(b.standing)
	if s.Reasons == nil {
		s.Reasons = map[string]string{}
	}
	maps.Copy(s.Reasons, b.status.Reasons)
	return s, b.changed
}

func (b *board) update(change func(*Status)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	was := b.status.State
	change(&b.status)
	if b.status.State != was {
		b.status.Since = b.now()
	}
	if b.status.State != StateOwner {
		b.status.Epoch = 0
	}
	close(b.changed)
	b.changed = make(chan struct{})
}

func (b *board) state(s State) {
	b.update(func(st *Status) { st.State = s })
}

// joined shows that a session has begun, with the partition or without. A blocked
// process stays so until it has taken over.
func (b *board) joined(claims bool) {
	b.update(func(s *Status) {
		switch {
		case !claims:
			s.State, s.Reasons = StateStandby, nil
		case s.State != StateBlocked:
			s.State = StateClaiming
		}
	})
}

// failing shows that the owner has failed, before its life has ended: a broker that
// says nothing can hold that up for minutes.
func (b *board) failing(err error) {
	code, detail := reasonOf(err)
	if code == "" {
		return
	}
	b.update(func(s *Status) {
		if s.State == StateOwner {
			s.State, s.Reasons = StateStarting, map[string]string{code: detail}
		}
	})
}

// ended shows why a life ended.
func (b *board) ended(err error) {
	code, detail := reasonOf(err)
	b.update(func(s *Status) {
		s.State, s.Reasons = StateStarting, nil
		if err != nil {
			s.Err = err.Error()
		}
		if code != "" {
			s.Reasons = map[string]string{code: detail}
			if code != viewkeeper.ReasonKafkaAway && code != viewkeeper.ReasonFailing {
				s.State = StateBlocked
			}
		}
	})
}

// reason sets a reason of this life, or with "" removes it.
func (b *board) reason(code, detail string) {
	b.update(func(st *Status) { st.Reasons = with(st.Reasons, code, detail) })
}

// stand sets a reason that lasts whatever becomes of lives, or with "" removes it.
func (b *board) stand(code, detail string) {
	b.update(func(*Status) { b.standing = with(b.standing, code, detail) })
}

// with is reasons with another one, or without it. A new map each time: heartbeats
// keep the old one.
func with(reasons map[string]string, code, detail string) map[string]string {
	next := map[string]string{}
	maps.Copy(next, reasons)
	next[code] = detail
	if detail == "" {
		delete(next, code)
	}
	return next
}
