package view

import (
	"maps"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// brokenInStatus is how many broken definitions a status names.
const brokenInStatus = 100

// Status is what the node says of itself now. The caller owns the value.
func (n *Node) Status() viewkeeper.Status {
	now := time.Now()
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.assessLocked(now)
	f := n.reg.Current()
	d := n.digestsLocked()
	failures := f.Failures()
	details := a.degraded
	s := viewkeeper.Status{
		Node:              n.cfg.NodeID,
		Catalog:           n.cfg.Catalog,
		HTTP:              n.cfg.HTTP,
		Version:           f.Version(),
		Digest:            d.rows,
		BuildDigest:       d.build,
		ViewState:         n.states.get().String(),
		Ready:             a.ready,
		ReadyReasons:      sortedKeys(a.reasons),
		Degraded:          sortedKeys(a.degraded),
		StaleFor:          a.stale.Seconds(),
		Definitions:       f.Len(),
		Broken:            len(failures),
		BrokenDefinitions: make([]viewkeeper.Name, 0, min(len(failures), brokenInStatus)),
		Engine:            f.Engine().Name,
		BaseDigest:        f.Engine().BaseDigest,
		At:                now.UTC().Truncate(time.Millisecond),
		Instance:          n.fleet.instance,
		Since:             n.health.changed.UTC().Truncate(time.Millisecond),
	}
	for _, failure := range failures[:min(len(failures), brokenInStatus)] {
		s.BrokenDefinitions = append(s.BrokenDefinitions, failure.Name)
	}
	maps.Copy(details, a.reasons)
	if len(details) > 0 {
		s.Details = details
	}
	if n.accepted != nil {
		s.Epoch = n.accepted.fold.Epoch()
		if fence, _ := n.accepted.fold.Fence(); fence != nil {
			s.Owner = fence.Owner
		}
	}
	return s
}

// Ready says whether the node is ready, and if not the codes of the reasons.
func (n *Node) Ready() (bool, []string) {
	a := n.assess(time.Now())
	return a.ready, sortedKeys(a.reasons)
}
