package restore

import (
	"cmp"
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Decisions is the decisions topic, read whole.
type Decisions struct {
	// Begin is its first offset. Above 0, its first records were deleted.
	Begin int64
	// Unreadable counts what is no decision.
	Unreadable int
	// FormerOwners counts the decisions that do not count, see List.
	FormerOwners int

	byVersion map[viewkeeper.Version]viewkeeper.Decision
}

// NewDecisions has read nothing.
func NewDecisions() *Decisions {
	return &Decisions{byVersion: map[viewkeeper.Version]viewkeeper.Decision{}}
}

// Add takes the next record. For one version the highest epoch counts.
func (d *Decisions) Add(value []byte) {
	if value == nil {
		return
	}
	dec, err := codec.DecodeDecision(value)
	switch {
	case err != nil || dec.Epoch == 0:
		d.Unreadable++
	case dec.Epoch >= d.byVersion[dec.Version].Epoch:
		d.byVersion[dec.Version] = dec
	}
}

// List gives the decisions that count, ascending by version. An owner's epoch never
// falls with the versions: a decision below the epoch of an earlier version's is one of
// an owner that had been followed by another, and wrote late.
func (d *Decisions) List() []viewkeeper.Decision {
	all := slices.SortedFunc(maps.Values(d.byVersion), func(a, b viewkeeper.Decision) int { return cmp.Compare(a.Version, b.Version) })
	d.FormerOwners = 0
	epoch := viewkeeper.Epoch(0)
	return slices.DeleteFunc(all, func(dec viewkeeper.Decision) bool {
		if dec.Epoch < epoch {
			d.FormerOwners++
			return true
		}
		epoch = dec.Epoch
		return false
	})
}
