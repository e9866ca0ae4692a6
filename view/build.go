package view

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// build is the builder: the one goroutine that changes the factory. It takes all
// that is pending at once, so that what came while it built is built together.
//
// A build that fails for reasons of its own (the engine was lost, not the
// definition is wrong) keeps the last factory, and is done again in full, since
// what it had taken is no longer pending.
func (n *Node) build(ctx context.Context) error {
	again := time.NewTimer(time.Hour)
	again.Stop()
	defer again.Stop()
	backoff := n.time.buildBackoff
	broken := brokenRetry{first: n.time.retryBroken, most: n.time.retryMost, timer: time.NewTimer(time.Hour)}
	broken.timer.Stop()
	defer broken.timer.Stop()
	for {
		retry := false
		select {
		case <-ctx.Done():
			return nil
		case <-n.kick:
		case <-again.C:
		case <-broken.timer.C:
			retry = true
		}
		p, rows := n.takePending()
		reapply := n.reapply.Swap(false)
		var err error
		began := time.Now()
		switch {
		case !p.empty() && p.full:
			err = n.reg.Reload(ctx, p.version, rows)
			n.metrics.built("reload", began, err)
		case !p.empty():
			err = n.reg.Advance(ctx, p.version, rows)
			n.metrics.built("advance", began, err)
		case retry:
			err = n.reg.Retry(ctx)
			n.metrics.built("retry", began, err)
		case !reapply:
			n.maybeReady()
			continue
		}
		if reapply && err == nil {
			began := time.Now()
			err = n.reg.Reapply(ctx)
			n.metrics.built("reapply", began, err)
		}
		if ctx.Err() != nil {
			return nil
		}
		n.built(p, err)
		if err != nil {
			if reapply {
				n.reapply.Store(true)
			}
			n.log.Debug("a factory could not be built; the last one is served", "version", p.version, "error", err, "again", backoff)
			again.Reset(backoff)
			backoff = min(backoff*2, 20*n.time.buildBackoff)
			continue
		}
		backoff = n.time.buildBackoff
		broken.after(len(n.reg.FailedDefinitions()), retry)
	}
}

// takePending takes what is to be built, in the form that the registry wants it.
func (n *Node) takePending() (pending, []viewkeeper.Row) {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.accept(now)
	p := n.pending
	if p.empty() {
		return p, nil
	}
	if p.full && n.accepted.fold.Collecting() {
		// What the fold has now is no catalog. The end of collecting kicks again.
		return pending{}, nil
	}
	n.pending = pending{}
	n.building = p.since
	if p.full {
		return p, n.accepted.fold.Rows()
	}
	return p, slices.SortedFunc(maps.Values(p.rows), func(a, b viewkeeper.Row) int { return a.Name.Compare(b.Name) })
}

// built notes how a build ended and tells all who wait.
func (n *Node) built(p pending, err error) {
	n.mu.Lock()
	n.building = time.Time{}
	n.health.buildErr = err
	if err != nil && !p.empty() {
		n.pending.full, n.pending.rows = true, nil
		n.pending.version = max(n.pending.version, p.version)
		n.pending.since = p.since
	}
	n.mu.Unlock()
	n.maybeReady()
	n.wake.fire()
	poke(n.publish)
	poke(n.copy.due)
}

// maybeReady makes the node ready for the first time: goka's view has been running, or
// the node serves its copy; the fold is whole, and its factory is built.
func (n *Node) maybeReady() {
	n.mu.Lock()
	h := &n.health
	follows := h.running && n.accepted == n.following && len(fatalOf(h)) == 0
	now := !h.served && n.accepted != nil && (follows || h.copyServed) &&
		!n.accepted.fold.Collecting() && n.pending.empty() && n.building.IsZero() && h.buildErr == nil &&
		n.reg.Current().Version() >= n.accepted.fold.Version()
	h.served = h.served || now
	n.mu.Unlock()
	if now {
		f := n.reg.Current()
		n.log.Info("ready", "version", f.Version(), "definitions", f.Len(), "broken", len(f.Failures()))
		n.wake.fire()
		poke(n.publish)
	}
}

// brokenRetry says when broken definitions are tried again: soon after they broke,
// then more and more rarely. What they need from outside the catalog may have come.
type brokenRetry struct {
	first, most, wait time.Duration
	count             int
	timer             *time.Timer
}

func (r *brokenRetry) after(count int, retried bool) {
	switch {
	case count == 0:
		r.timer.Stop()
	case retried && count == r.count:
		r.wait = min(r.wait*2, r.most)
		r.timer.Reset(r.wait)
	case count != r.count || retried:
		r.wait = r.first
		r.timer.Reset(r.wait)
	}
	r.count = count
}
