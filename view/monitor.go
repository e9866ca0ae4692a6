package view

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/reasons"
)

// quietRestarts is how often a view is made anew over records that do not come: what
// is before the end may not be readable at all.
const quietRestarts = 3

func fatalOf(h *health) []kafka.Problem { return kafka.FatalOnes(h.problems) }

// monitor looks at the brokers and the topics on a timer: goka looks at a topic's
// id only when it loads, and notices a silent broker late or never.
func (n *Node) monitor(ctx context.Context) error {
	t := time.NewTicker(n.time.monitor)
	defer t.Stop()
	settings := time.Now().Add(n.time.settings)
	var restarted time.Time
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-t.C:
		}
		look := time.Now().After(settings)
		if look {
			settings = time.Now().Add(n.time.settings)
		}
		behind, err := n.look(ctx, look)
		if ctx.Err() != nil {
			return nil
		}
		if n.noteLook(behind, err) && time.Since(restarted) > n.time.silent {
			restarted = time.Now()
			n.restartView()
		}
		n.wake.fire()
	}
}

// look asks the brokers how things are. behind says that the table has records that
// were not read yet, which for a moment is how it always is. A
// *kafka.TopicChangedError says that the table is another one.
func (n *Node) look(ctx context.Context, settings bool) (behind bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, n.time.ping)
	defer cancel()
	err = n.brokers.ask(ctx, func(a *kafka.Admin) error {
		if settings {
			if err := n.lookAtSettings(ctx, a); err != nil {
				return err
			}
		}
		found, err := a.Describe(ctx, n.topics.Definitions())
		if err != nil {
			return err
		}
		n.mu.Lock()
		s := n.following
		n.mu.Unlock()
		if s.guard.ID() == "" {
			return nil // its first load is yet to come
		}
		_, end, err := s.guard.Look(ctx, a)
		if err != nil {
			return err
		}
		begin, err := a.BeginOffset(ctx, n.topics.Table())
		if err != nil {
			return err
		}
		n.mu.Lock()
		n.health.definitionsID = found[n.topics.Definitions()].ID
		n.health.begin = begin
		next := s.fold.Next()
		n.mu.Unlock()
		if end <= next {
			return nil
		}
		end, err = a.ReadableEnd(ctx, n.topics.Table())
		behind = end > next
		return err
	})
	return behind, err
}

// noteLook keeps what a look found, and reports whether the view should be made
// anew: its topic is another one, or its broker is silent.
func (n *Node) noteLook(behind bool, err error) (restart bool) {
	now := time.Now()
	var changed *kafka.TopicChangedError
	n.mu.Lock()
	defer n.mu.Unlock()
	h := &n.health
	quiet := h.down.IsZero() && now.Sub(h.lastRecord) > n.time.silent
	switch {
	case errors.As(err, &changed):
		h.pingErr, h.contact = nil, now
		return true
	case err != nil:
		h.pingErr = err
		return now.Sub(h.contact) > n.time.silent && h.down.IsZero()
	}
	h.pingErr, h.contact = nil, now
	if behind && quiet && h.quietRestarts < quietRestarts {
		h.quietRestarts++
		return true
	}
	return false
}

func (n *Node) restartView() {
	n.mu.Lock()
	cancel := n.restart
	n.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// lookAtSettings checks the topics' settings.
func (n *Node) lookAtSettings(ctx context.Context, a *kafka.Admin) error {
	problems, err := a.CheckTopics(ctx, n.topics, kafka.CheckOptions{HiddenFatal: n.cfg.HiddenSettingsFatal})
	if err != nil {
		return err
	}
	n.mu.Lock()
	n.health.problems = problems
	n.mu.Unlock()
	return nil
}

// keepTime wakes those who wait for what only time changes: stale, no owner. It says
// in the log what comes and goes.
func (n *Node) keepTime(ctx context.Context) error {
	t := time.NewTicker(n.time.tick)
	defer t.Stop()
	var last string
	var said reasons.Log
	for {
		select {
		case <-ctx.Done():
			return nil
		case now := <-t.C:
			n.mu.Lock()
			n.health.settle(now, n.time.silent)
			n.mu.Unlock()
			n.settleParts(now)
			_ = n.fleetView(now) // which keeps what was known when
			a := n.assess(now)
			said.Now(n.log, now, a.own())
			if is := sayAll(a); is != last {
				last = is
				n.mu.Lock()
				n.health.changed = now
				n.mu.Unlock()
				n.wake.fire()
				poke(n.publish)
			}
		}
	}
}

// own are the reasons that are this node's and not only the owner's, who says them.
func (a *assessment) own() map[string]string {
	all := maps.Clone(a.reasons)
	for code, detail := range a.degraded {
		if !a.theirs[code] {
			all[code] = detail
		}
	}
	return all
}

func sayAll(a assessment) string {
	s := ""
	for _, m := range []map[string]string{a.reasons, a.degraded} {
		for _, code := range sortedKeys(m) {
			s += code + " "
		}
		s += "/ "
	}
	return s
}
