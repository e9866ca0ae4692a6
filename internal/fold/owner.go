package fold

import (
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Input is what the brokers say of the topics beside the table when an owner claims
// the catalog.
type Input struct {
	// TopicID is that of the definitions topic, Begin and End are its offsets.
	TopicID    string
	Begin, End int64
	// Committed is the group's offset, -1 for none.
	Committed int64
	// DecisionsEnd is the end of the decisions topic.
	DecisionsEnd int64
	// TableBegin is the offset that the table begins with.
	TableBegin int64
	// NewerOwner is what Fold.NewerOwner says.
	NewerOwner string
	// Damaged is what Fold.Damaged says.
	Damaged bool
}

// Claim says whether a catalog may be owned.
type Claim int

// The outcomes of CheckClaim.
const (
	ClaimGood           Claim = iota
	ClaimTableCommitted       // offsets are committed, and the table has no commit row
	ClaimTableDecided         // there are decisions, and the table has no commit row
	ClaimTableBehind          // offsets beyond the commit row are committed
	ClaimOtherTopic           // the commit row is of another definitions topic
	ClaimInputEnd             // the definitions topic ends before what was decided
	ClaimTableTruncated       // the table's first records were deleted
	ClaimNewerOwner           // a newer program owns, or has, see Fold.NewerOwner
	ClaimTableDamaged         // definitions are missing, see Fold.Damaged
)

// CheckClaim is rule 4: judging goes on from the counting commit row, and what the
// brokers say is only a check. Rows whose records were deleted are not missed by anybody,
// so that a table without its beginning is not gone on from. It gives the next offset to judge.
func CheckClaim(c *codec.Commit, in Input) (next int64, _ Claim) {
	switch {
	case in.TableBegin > 0:
		return 0, ClaimTableTruncated
	case in.NewerOwner != "":
		return 0, ClaimNewerOwner
	case in.Damaged:
		return 0, ClaimTableDamaged
	}
	if c == nil {
		// A first start only where nobody was before.
		switch {
		case in.Committed > 0:
			return 0, ClaimTableCommitted
		case in.DecisionsEnd > 0:
			return 0, ClaimTableDecided
		}
		return 0, ClaimGood
	}
	if c.DefinitionsTopic != in.TopicID {
		return 0, ClaimOtherTopic
	}
	next = int64(c.Version - c.VersionBase)
	if in.Committed > next {
		return next, ClaimTableBehind
	}
	if in.End < next {
		return next, ClaimInputEnd
	}
	return next, ClaimGood
}

// Recovery is what an owner finds in the table behind its fence.
type Recovery struct {
	// Commit is the counting commit row, or nil.
	Commit *codec.Commit
	Rows   []viewkeeper.Row
	// IDs are the known ids up to the commit row. There are none above it, as the
	// commit row comes first; if there were, their statements would be judged once
	// more and must not be taken for their own repetition.
	IDs []codec.ID
	// NewerSlots are the slots' rows of which a newer program says more than is known here.
	NewerSlots map[int]*codec.IDs
	// Completion, Decisions and Healing are what the owner writes, in one flight,
	// before it judges anything: rules 3 and 6.
	Completion []codec.Record
	Decisions  []viewkeeper.Decision
	Healing    []codec.Record
	// LastSign is when an owner last said that it lives, zero for never.
	LastSign time.Time
}

// Recover gives what an owner of this epoch finds. It must have read the table up to
// its fence ([Fold.Claimed]).
func (f *Fold) Recover(epoch viewkeeper.Epoch) Recovery {
	r := Recovery{Commit: f.commit, Rows: f.Rows(), Completion: f.Completion(epoch), Healing: f.Heal(epoch)}
	for id := range f.IDs {
		if id.Version <= f.Version() {
			r.IDs = append(r.IDs, id)
		}
	}
	for n, s := range f.ring {
		if s.extra != nil || s.format > codec.Format {
			if r.NewerSlots == nil {
				r.NewerSlots = map[int]*codec.IDs{}
			}
			r.NewerSlots[n] = s.row(n, epoch)
		}
	}
	if f.commit != nil {
		r.Decisions = f.commit.WithEpoch(epoch).Decisions
	}
	if f.heartbeat != nil {
		r.LastSign = f.heartbeat.At
	}
	return r
}

// Start gives what the first commit row of an owner with this fence goes on from.
func (r *Recovery) Start(fence *codec.Fence, epoch viewkeeper.Epoch) *codec.Commit {
	start := &codec.Commit{EpochBase: fence.EpochBase}
	if r.Commit != nil {
		again := *r.Commit
		start = &again
	}
	start.Epoch = epoch
	return start
}

// Claimed reports whether the table was read up to the fence at this offset, with
// nothing missing.
func (f *Fold) Claimed(fenceAt int64) bool { return f.next > fenceAt && !f.collecting }

// Superseded is rule 1: an owner of this epoch stops when a later fence has come.
func (f *Fold) Superseded(epoch viewkeeper.Epoch) bool { return f.epoch > epoch }

// Certain is rule 5: of records below this offset it is known whether a newer fence
// lies before them. An owner that is not superseded finishes what it wrote there.
func (f *Fold) Certain() int64 { return f.certain }
