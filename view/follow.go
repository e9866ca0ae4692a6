package view

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/lovoo/goka"
	"github.com/lovoo/goka/storage"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// errLeftBehind ends a goka view that a newer one has replaced.
var errLeftBehind = errors.New("this view was left behind")

// follow runs one goka View on the table, from its making to its end. The
// supervisor calls it again.
func (n *Node) follow(ctx context.Context) error {
	s := n.session()
	if err := n.preflight(ctx, s); err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()

	var clients kafka.ViewClients
	defer n.closeClients(&clients)
	options := append(n.settings.ViewOptions(&clients, s.guard, n.log),
		goka.WithViewStorageBuilder(s.store.builder()),
		goka.WithViewCallback(func(u goka.UpdateContext, _ storage.Storage, key string, value []byte) error {
			if ctx.Err() != nil {
				return errLeftBehind
			}
			n.record(s, u.Offset(), codec.DecodeTable(key, value, headers(u.Headers())), value)
			return nil
		}))
	v, err := kafka.Bounded(ctx, func() (*goka.View, error) {
		return goka.NewView(n.settings.Brokers, goka.GroupTable(n.topics.Group()), codec.Raw{}, options...)
	}, nil)
	if err != nil {
		return n.followError(ctx, s, err)
	}

	n.mu.Lock()
	n.restart = cancel
	n.mu.Unlock()
	stop := n.pumpStates(v)
	// A view that hangs on a silent broker is left behind and another one made: it
	// only reads, and what it still reads is not taken.
	err = kafka.Stoppable(ctx, "goka's view", n.time.stop, v.Run)
	cancel()
	stop()
	n.mu.Lock()
	n.restart = nil
	n.mu.Unlock()
	n.setState(Idle)

	var abandoned *kafka.AbandonedError
	if errors.As(err, &abandoned) {
		n.log.Debug("goka's view did not stop; it is left behind", "after", n.time.stop)
		err = nil
	}
	return n.followError(ctx, s, err)
}

func headers(of goka.Headers) []codec.Header {
	out := make([]codec.Header, 0, len(of))
	for key, value := range of {
		out = append(out, codec.Header{Key: key, Value: value})
	}
	return out
}

// session gives the session to follow: the present one, or a new one where its
// topic is no longer the one it knew, or where it may have missed drops.
func (n *Node) session() *session {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.following
	changed := s.changed()
	switch {
	case changed == nil && s.outdated(time.Now()):
		why := "this node was away for longer than drops are kept"
		if s.damaged {
			why = "this node has other definitions than the commit row sums up"
		}
		n.log.Info(why+"; the table is read anew from its beginning", "topic", n.topics.Table(), "version", s.fold.Version())
		n.following = n.newSession(s.guard.ID())
		n.following.cluster, n.following.confirmed = s.cluster, s.confirmed
		return n.following
	case changed == nil:
		return s
	}
	switch {
	case n.accepted != nil:
		n.health.replace(changed, time.Now())
	case s.copied:
		n.metrics.copyDiscards.Inc()
		n.metrics.copyLoaded.Set(0)
		n.log.Warn("the node's copy of the table is of another one; it is thrown away, and the table is read anew from Kafka", "why", changed)
	}
	n.following = n.newSession("")
	return n.following
}

// followError finds out what an attempt that ended with err ran into: goka passes
// errors on as text.
func (n *Node) followError(ctx context.Context, s *session, err error) error {
	if changed := s.guard.Err(); changed != nil {
		return changed
	}
	switch {
	case err == nil && ctx.Err() == nil:
		return errors.New("goka's view ended by itself")
	case err != nil:
		return errors.New(kafka.Sentence(err))
	}
	return nil
}

func (n *Node) closeClients(clients *kafka.ViewClients) {
	ctx, cancel := context.WithTimeout(context.Background(), n.time.stop)
	defer cancel()
	_, err := kafka.Bounded(ctx, func() (struct{}, error) { return struct{}{}, clients.Close() }, nil)
	if err != nil {
		n.log.Debug("closing the view's clients", "error", err)
	}
}

// preflight looks at the topics before a view is made of them. Once something is
// served, wrong settings are reported and no reason to stop following.
func (n *Node) preflight(ctx context.Context, s *session) error {
	ctx, cancel := context.WithTimeout(ctx, n.time.ping)
	defer cancel()
	return n.brokers.ask(ctx, func(a *kafka.Admin) error {
		cluster, _, err := a.Cluster(ctx)
		if err != nil {
			return err
		}
		n.mu.Lock()
		err = s.inCluster(cluster)
		n.mu.Unlock()
		if err != nil {
			return err
		}
		poke(n.askEnd)
		if err := n.lookAtSettings(ctx, a); err != nil {
			return err
		}
		n.mu.Lock()
		fatal, serving := kafka.FatalOnes(n.health.problems), n.accepted != nil
		n.mu.Unlock()
		for _, p := range fatal {
			if p.Missing && (!serving || p.Topic == n.topics.Table()) {
				return &kafka.MissingTopicError{Topic: p.Topic}
			}
		}
		if len(fatal) > 0 && !serving {
			return &kafka.ProblemsError{Problems: fatal}
		}
		begin, err := a.BeginOffset(ctx, n.topics.Table())
		if err != nil {
			return err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.health.begin = begin
		if begin > s.fold.Next() {
			return &TruncatedError{n.topics.Table(), begin}
		}
		return nil
	})
}

// followEnded notes why a view ended.
func (n *Node) followEnded(err error, class kafka.Class, _ time.Duration) {
	n.metrics.restarts.Inc()
	n.mu.Lock()
	h := &n.health
	if h.down.IsZero() {
		h.down = h.contact
	}
	h.downErr, h.downClass, h.upSince = err, class, time.Time{}
	if err == nil {
		h.downErr = errors.New("the view is made anew")
	}
	n.mu.Unlock()
	if n.servesCopyFor(err, class) {
		n.serveCopy(err)
	}
	n.wake.fire()
	poke(n.publish)
}

// servesCopyFor reports whether a node that starts and can't follow, for that reason,
// serves its copy.
func (n *Node) servesCopyFor(err error, class kafka.Class) bool {
	if shrunk(err) || errors.As(err, new(*TruncatedError)) {
		return true // as one that was running when it happened
	}
	switch class.Kind {
	case kafka.KindAway, kafka.KindDenied:
		return !n.cfg.NoStartStale
	case kafka.KindMissing:
		n.mu.Lock()
		defer n.mu.Unlock()
		gone := slices.ContainsFunc(n.health.problems, func(p kafka.Problem) bool { return p.Missing && p.Topic == n.topics.Table() })
		return gone && !n.cfg.NoStartStale
	}
	return false
}

// shrunk reports whether the table is the topic that it was, and has lost its end.
func shrunk(err error) bool {
	var changed *kafka.TopicChangedError
	return errors.As(err, &changed) && changed.Found == changed.Known
}

// pumpStates follows the state of one goka view, which must always be read.
func (n *Node) pumpStates(v *goka.View) (stop func()) {
	obs := v.ObserveStateChanges()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for s := range obs.C() {
			n.setState(stateOf(goka.ViewState(s)))
		}
	}()
	return func() {
		obs.Stop() // closes the channel
		<-ended
	}
}

func (n *Node) setState(to State) {
	if !n.states.set(to) {
		return
	}
	if to == Running {
		n.mu.Lock()
		n.health.follows(time.Now())
		n.mu.Unlock()
		// An empty table gives no record that would ask for its end.
		poke(n.askEnd)
	}
	poke(n.kick)
	poke(n.publish)
	n.wake.fire()
}

// findEnds asks for the table's end whenever the fold wants to know it.
func (n *Node) findEnds(ctx context.Context) error {
	again := time.NewTimer(0)
	defer again.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-n.askEnd:
		case <-again.C:
		}
		if wait := n.findEnd(ctx); wait > 0 {
			again.Reset(wait)
		}
	}
}

// endPause is between two questions for the end while a log with many gaps is read:
// each gap makes the answer before it too old.
const endPause = 10 * time.Millisecond

// findEnd asks once, and says after which time to ask again; 0: not by itself.
func (n *Node) findEnd(ctx context.Context) (again time.Duration) {
	n.mu.Lock()
	s := n.following
	gap, need := s.fold.NeedEnd()
	read, confirmed := s.fold.Next(), s.confirmed
	n.mu.Unlock()
	known := s.guard.ID()
	if !need || known == "" || !confirmed {
		return 0 // a view that has begun to load knows its topic, and asks again
	}
	ctx, cancel := context.WithTimeout(ctx, n.time.ping)
	defer cancel()
	var id string
	var last, end int64
	err := n.brokers.ask(ctx, func(a *kafka.Admin) (err error) {
		if id, last, err = a.EndOf(ctx, n.topics.Table()); err != nil || id != known {
			return err
		}
		if end, err = a.ReadableEnd(ctx, n.topics.Table()); err != nil {
			return err
		}
		id, err = a.TopicID(ctx, n.topics.Table())
		return err
	})
	if err != nil {
		return n.time.restartFirst
	}
	if id != known || last < read {
		return 0 // the end of another topic, or a lost one; the monitor sees to it
	}
	n.mu.Lock()
	s.fold.EndIs(gap, end)
	_, need = s.fold.NeedEnd()
	settled := !s.fold.Collecting()
	if settled {
		s.verify()
	}
	if s == n.accepted && settled {
		n.absorb(s, time.Now())
	}
	anew := s.outdated(time.Now())
	n.mu.Unlock()
	if anew {
		n.restartView()
	}
	if settled {
		poke(n.kick)
		n.wake.fire()
	}
	if need {
		return endPause
	}
	return 0
}
