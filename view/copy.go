package view

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/tablecopy"
)

// tableCopy is the node's own copy of the table it serves, on disk. It is read once,
// when the node starts, and written in the background: nobody waits for it, and when
// it can't be written the node goes on without it.
//
// What is on disk is always of one session, at an offset at which that session's fold
// could be shown. A session that began with nothing has in its selection all that a
// copy needs until the first one is written; from then on only what changed since the
// last step. That is why a copy that is lost while the node runs can't be made again
// from memory: it is made at the next start.
type tableCopy struct {
	dir string // "" when there is none to be kept
	due chan struct{}

	mu    sync.Mutex // taken before Node.mu, if both are
	store *tablecopy.Store
	// of is the session that there is a whole copy of on disk, nil when there is none.
	// last is what that says, and tried what a write that failed would have made of it.
	of          *session
	last, tried tablecopy.Meta
	// lost is the session whose copy was lost: it gets no other one.
	lost *session
	// unread says that there may be a copy, which could not be opened.
	unread bool
}

func newTableCopy(dataDir string) *tableCopy {
	c := &tableCopy{due: make(chan struct{}, 1)}
	if dataDir != "" {
		c.dir = tablecopy.Dir(dataDir)
	}
	return c
}

// loadCopy makes the session that the node goes on from of its copy, if there is one
// that can be used. Nothing must follow meanwhile.
func (n *Node) loadCopy() {
	c := n.copy
	if c.dir == "" {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	n.loadCopyLocked()
}

// loadCopyLocked is loadCopy with c.mu held.
func (n *Node) loadCopyLocked() {
	c := n.copy
	began := time.Now()
	store, meta, records, err := tablecopy.Open(c.dir)
	c.unread = false
	var s *session
	if err == nil {
		if s, err = n.copied(meta, records); err != nil {
			_ = store.Close()
		}
	}
	var unusable *tablecopy.UnusableError
	switch {
	case errors.Is(err, tablecopy.ErrNone):
		return
	case errors.As(err, &unusable):
		n.metrics.copyDiscards.Inc()
		n.log.Warn("the node's copy of the table can't be used; it is thrown away, and the table is read anew from Kafka", "why", unusable.Why, "dir", c.dir)
		if err := tablecopy.Remove(c.dir); err != nil {
			n.copyIs(err)
		}
		return
	case err != nil:
		c.unread = true
		n.copyIs(err)
		return
	}
	n.copyIs(nil)
	c.store, c.of, c.last = store, s, meta
	n.metrics.copyLoaded.Set(float64(len(records)))
	n.metrics.copyNext.Set(float64(meta.Offset + 1))

	now := time.Now()
	n.mu.Lock()
	n.following = s
	n.health.contact = now.Add(-n.copyAge(meta.At, now))
	n.health.down, n.health.lastRecord = n.health.contact, now
	n.mu.Unlock()
	n.log.Info("read the node's copy of the table", "version", meta.Version, "offset", meta.Offset, "records", len(records),
		"current_at", meta.At.UTC(), "took", now.Sub(began))
}

// copyAge is how long ago the copy was current. Only the wall clock can tell. One that
// has gone back behind that time can't: the copy is then too old to be ready with.
func (n *Node) copyAge(at, now time.Time) time.Duration {
	age := now.Round(0).Sub(at.Round(0))
	if age >= 0 {
		return age
	}
	n.log.Warn("the clock shows a time before the one at which the node's copy of the table was current; its age is not known, and it counts as too old", "clock", now.UTC(), "current_at", at.UTC())
	return max(n.cfg.MaxStale, DefaultMaxStale) + time.Second
}

// copied makes a session of a copy. It collects, as one that has read up to there
// and does not know the end.
//
// One that was away for longer than drops are kept can't go on from there. What tells
// is the same as for a session that has only lost its broker: the version that its fold
// had before it read on.
func (n *Node) copied(meta tablecopy.Meta, records []tablecopy.Record) (*session, error) {
	s := n.newSession(meta.Topic)
	s.cluster, s.copied, s.whole = meta.Cluster, true, true
	for i, rec := range decoded(records) {
		s.kept.Loaded(records[i].Offset, rec, s.fold.Add(records[i].Offset, rec))
	}
	if s.fold.Next() != meta.Offset+1 || s.fold.Version() != meta.Version {
		return nil, &tablecopy.UnusableError{Dir: n.copy.dir, Why: fmt.Sprintf(
			"it says that it ends at offset %d with version %d, and what it holds ends at offset %d with version %d",
			meta.Offset, meta.Version, s.fold.Next()-1, s.fold.Version())}
	}
	s.fold.Resume()
	s.guard.Seen(meta.Offset)
	return s, s.store.SetOffset(meta.Offset)
}

// decoded decodes records on all cores: of a start from a copy it is the longest part
// that has no order.
func decoded(records []tablecopy.Record) []codec.Record {
	out := make([]codec.Record, len(records))
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			for i := w; i < len(records); i += workers {
				out[i] = codec.DecodeRecord(records[i].Key, records[i].Value)
			}
		})
	}
	wg.Wait()
	return out
}

// serveCopy makes the node serve its copy as it is, because the table can't be
// followed. It does nothing when the node serves already, or has no copy.
func (n *Node) serveCopy(why error) {
	c := n.copy
	c.mu.Lock()
	defer c.mu.Unlock()
	n.mu.Lock()
	again := c.unread && n.accepted == nil && n.following.fold.Next() == 0
	n.mu.Unlock()
	if again { // as when the process that it replaces has ended at last
		n.loadCopyLocked()
	}
	n.mu.Lock()
	s := n.following
	as := n.accepted == nil && s.copied
	gap, need := s.fold.NeedEnd()
	readOn := s.fold.Next() != c.last.Offset+1 || !need
	n.mu.Unlock()
	if !as {
		return
	}
	serve := s
	if readOn {
		// Up to where nobody knows what is whole. The copy is still as it was: it is
		// written only of what is served.
		if c.store == nil {
			return // the node stops
		}
		meta, records, err := c.store.Read()
		if err == nil {
			serve, err = n.copied(meta, records)
		}
		if err != nil {
			n.log.Warn("the node's copy of the table can't be read again", "error", err)
			return
		}
		gap, _ = serve.fold.NeedEnd()
	}
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.accepted != nil || n.following != s {
		return
	}
	s = serve
	n.following, c.of = s, s
	s.fold.EndIs(gap, s.fold.Next())
	n.health.copyServed = n.accept(now)
	n.log.Warn("the table can't be followed; what the node's own copy of it holds is served", "error", why,
		"version", s.fold.Version(), "age", now.Sub(n.health.contact).Round(time.Second))
	poke(n.kick)
}

// keepCopy writes the copy until ctx ends, and once more then.
func (n *Node) keepCopy(ctx context.Context) error {
	c := n.copy
	if c.dir == "" {
		return nil
	}
	defer c.close()
	every := time.NewTicker(n.time.copyEvery)
	defer every.Stop()
	pause := time.NewTimer(time.Hour)
	pause.Stop()
	defer pause.Stop()
	paused := false
	wait, notBefore := n.time.copyRetry, time.Time{}
	for {
		select {
		case <-ctx.Done():
			n.writeCopy(time.Now())
			return nil
		case <-c.due:
			if !paused { // what comes together is written together
				paused = true
				pause.Reset(n.time.copyPause)
			}
			continue
		case <-pause.C:
			paused = false
		case <-every.C:
		}
		now := time.Now()
		if now.Before(notBefore) {
			continue
		}
		if n.writeCopy(now) {
			wait = n.time.copyRetry
			continue
		}
		notBefore = now.Add(wait)
		wait = min(wait*2, 60*n.time.copyRetry)
	}
}

// writeCopy takes the copy to where the accepted session is. It reports whether the
// copy is as it should be.
func (n *Node) writeCopy(now time.Time) (ok bool) {
	c := n.copy
	c.mu.Lock()
	defer c.mu.Unlock()
	n.mu.Lock()
	s := n.accepted
	if s == nil || s == c.lost || s.cluster == "" || s.fold.Collecting() || s.fold.Held() > 0 {
		// Rows that are held above the commit row come from nobody who keeps the rules;
		// what is shown without them is on disk.
		n.mu.Unlock()
		return true
	}
	meta := tablecopy.Meta{Cluster: s.cluster, Topic: s.guard.ID(), Offset: s.fold.Next() - 1, Version: s.fold.Version(), At: c.last.At}
	if s == n.following {
		meta.At = n.currentAt(now)
	}
	current := meta.At.Sub(c.last.At)
	if c.of == s && c.store != nil && !s.kept.Changed() && current >= 0 && current < n.time.copyEvery {
		n.mu.Unlock()
		return true
	}
	batch := s.kept.Take()
	n.mu.Unlock()

	err := c.open(s)
	if err == nil {
		c.tried = meta
		err = c.store.Write(meta, batch)
	}
	if err == nil {
		c.of, c.last = s, meta
		n.metrics.copyNext.Set(float64(meta.Offset + 1))
	} else if c.store != nil {
		_ = c.store.Close()
		c.store = nil
	}
	n.mu.Lock()
	s.kept.Done(err == nil)
	n.mu.Unlock()
	n.copyIs(err)
	return err == nil
}

// open makes the store ready for a step of the session's copy: the one that is open,
// one that a failed write has closed, or a new one.
func (c *tableCopy) open(s *session) error {
	if c.of == s && c.store != nil {
		return nil
	}
	if c.of != s {
		return c.create()
	}
	store, m, _, err := tablecopy.Open(c.dir)
	if err != nil {
		if errors.As(err, new(*tablecopy.UnusableError)) || errors.Is(err, tablecopy.ErrNone) {
			c.lost = s
			err = fmt.Errorf("%w; the next start of this node makes a new one", err)
		}
		return err
	}
	if m.Topic != c.last.Topic || m.Offset != c.last.Offset && m.Offset != c.tried.Offset {
		// An earlier one: what lies between is no longer in memory.
		c.lost = s
		return errors.Join(fmt.Errorf("the copy of the table in %s is not the one that was written last; the next start of this node goes on from it", c.dir), store.Close())
	}
	c.store, c.last = store, m
	return nil
}

// create begins a new copy. One of another table is kept beside it.
func (c *tableCopy) create() (err error) {
	if c.store != nil {
		err = c.store.Close()
		c.store = nil
		if c.of != nil && err == nil {
			_, err = tablecopy.SetAside(c.dir)
		}
		if err != nil {
			return err
		}
	}
	c.of = nil
	c.store, err = tablecopy.Create(c.dir)
	return err
}

func (c *tableCopy) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.store != nil {
		_ = c.store.Close()
		c.store = nil
	}
}

// currentAt is when what is followed was last known to be all that there is, by the
// wall clock as it is now. n.mu is held.
func (n *Node) currentAt(now time.Time) time.Time {
	at := n.health.contact
	if since := n.staleSince(now); !since.IsZero() && since.Before(at) {
		at = since
	}
	return now.Round(0).Add(-now.Sub(at))
}

// copyIs notes how the last write of the copy ended; the reason COPY_FAILED says it.
func (n *Node) copyIs(err error) {
	if err != nil {
		n.metrics.copyFailures.Inc()
	}
	n.mu.Lock()
	changed := (err == nil) != (n.health.copyErr == nil)
	n.health.copyErr = err
	n.mu.Unlock()
	if changed {
		n.wake.fire()
		poke(n.publish)
	}
}
