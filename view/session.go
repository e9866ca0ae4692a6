package view

import (
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/tablecopy"
)

// session is one table topic as far as it was read. A node has one that it follows
// and one whose content it serves. They are the same, unless another topic came
// under the table's name: then the new one is read from its beginning while the
// old one's content is served, until the new one is accepted.
type session struct {
	guard *kafka.Guard
	store offsets

	// copied says that it began with the node's copy of the table.
	copied bool

	// The rest is guarded by Node.mu.

	fold *fold.Fold
	// kept is what a copy of the table holds of what was read.
	kept *tablecopy.Selection
	// cluster is the id of the cluster that the topic is in, "" until it is known.
	// confirmed says that the brokers are of it, moved that they are of another one.
	cluster   string
	confirmed bool
	moved     error
	// broken says that commit rows may have been missed since the last ones that
	// were taken: the fold has been collecting.
	broken bool
	// began is when the first record was asked for.
	began time.Time
	// damaged says that definitions were missing, or too many, when the end was reached or
	// an owner took over, and still are. whole says that once they were all there, or that a
	// copy was taken for that.
	damaged, whole bool
}

// coldReading is how long a session that began with nothing may take to come to the
// end. Kafka keeps what says that a row was purged for delete.retention.ms, a day by
// default: who takes longer may miss it.
const coldReading = 12 * time.Hour

// outdated reports whether drops may be missing for good (DESIGN.md, rule 9), or what was
// whole is no more, as when a restore gave up what this session had read before it was
// lost: another session must read the table from its beginning. Node.mu is held.
func (s *session) outdated(now time.Time) bool {
	return s.fold.Outdated() || s.damaged && s.whole || !s.fold.Resumed() && now.Sub(s.began) > coldReading
}

// verify compares the definitions with what the commit row sums up. Node.mu is held.
func (s *session) verify() {
	s.damaged = s.fold.Damaged()
	s.whole = s.whole || !s.damaged && !s.fold.Collecting()
}

// newSession begins with nothing read; see copied for one that does not. id is that
// of the topic, or "".
func (n *Node) newSession(id string) *session {
	return &session{guard: kafka.NewGuard(n.topics.Table(), id), fold: fold.New(), kept: tablecopy.NewSelection(), broken: true, began: time.Now()}
}

// inCluster tells the session which cluster its brokers are of. The error is a
// *ClusterChangedError. Node.mu is held.
func (s *session) inCluster(id string) error {
	if s.cluster == "" {
		s.cluster = id
	}
	if id != "" && id != s.cluster {
		s.moved = &ClusterChangedError{Known: s.cluster, Found: id}
	}
	s.confirmed = s.moved == nil
	return s.moved
}

// changed is why the session's topic is no longer the one that it has read, or nil.
func (s *session) changed() error {
	if s.moved != nil {
		return s.moved
	}
	return s.guard.Err()
}

// pending is what the accepted session has and no factory yet.
type pending struct {
	version viewkeeper.Version
	rows    map[viewkeeper.Name]viewkeeper.Row
	// full says that everything is to be loaded, not only rows.
	full bool
	// since is when the first of it came; zero when there is nothing.
	since time.Time
}

func (p *pending) empty() bool { return p.since.IsZero() }

// record takes one record of the table, in the order of the log. It never fails:
// a record that stops a follower would stop it at every start.
func (n *Node) record(s *session, offset int64, rec codec.Record, value []byte) {
	now := time.Now()

	n.mu.Lock()
	wasCollecting, before := s.fold.Collecting(), s.fold.Commit()
	counts := s.fold.Add(offset, rec)
	collecting := s.fold.Collecting()
	s.broken = s.broken || collecting
	if c := s.fold.Commit(); wasCollecting && !collecting || c != before && before != nil && c.Epoch != before.Epoch {
		s.verify()
	}
	if n.copy.dir != "" {
		s.kept.Add(offset, rec, value, counts)
	}
	n.health.contact, n.health.lastRecord, n.health.quietRestarts = now, now, 0
	n.health.reads()
	if _, ok := rec.(*codec.Heartbeat); ok && counts && !wasCollecting {
		// One that was read on the way to the end may be years old.
		n.health.heartbeat = now
	}
	_, ask := s.fold.NeedEnd()
	anew := s.outdated(now)
	build := false
	if s == n.accepted {
		build = n.absorb(s, now)
	} else {
		build = !collecting
	}
	n.mu.Unlock()

	s.guard.Seen(offset)
	n.metrics.record(rec, counts, !wasCollecting)
	if anew {
		n.restartView()
	}
	if ask {
		poke(n.askEnd)
	}
	if build || wasCollecting != collecting {
		poke(n.kick)
	}
	if build || wasCollecting != collecting {
		n.wake.fire()
		poke(n.publish)
		poke(n.copy.due)
	}
}

// absorb takes what became visible in the accepted session: decisions at once,
// rows for the builder. It reports whether there was anything. n.mu is held.
func (n *Node) absorb(s *session, now time.Time) bool {
	u, ok := s.fold.Take()
	if !ok {
		return false
	}
	if s.damaged {
		s.verify()
	}
	if len(u.Commits) > 0 {
		n.decisions.add(u.Commits, s.broken)
		s.broken = false
	}
	p := &n.pending
	if p.empty() {
		p.since = now
	}
	p.version = u.Version
	if p.full {
		return true
	}
	if p.rows == nil {
		p.rows = make(map[viewkeeper.Name]viewkeeper.Row, len(u.Changed))
	}
	for _, r := range u.Changed {
		p.rows[r.Name] = r
	}
	return true
}

// accept makes the followed session the one that is served, if it can be: it has
// reached its end, an owner has written to it, and it is not behind what is served.
// It reports whether it did. n.mu is held.
func (n *Node) accept(now time.Time) bool {
	s := n.following
	if s == n.accepted || s == nil || s.fold.Collecting() {
		return false
	}
	if f, _ := s.fold.Fence(); f == nil {
		return false
	}
	if n.accepted != nil && s.fold.Version() < n.reg.Current().Version() {
		return false
	}
	replaced := n.accepted != nil
	n.accepted, n.acceptedAt = s, now
	n.health.replaced = nil
	n.pending = pending{full: true, since: now, version: s.fold.Version()}
	n.absorb(s, now)
	if replaced {
		n.log.Warn("another table topic is followed from now on", "topic", n.topics.Table(), "id", s.guard.ID(), "version", s.fold.Version())
	}
	return true
}
