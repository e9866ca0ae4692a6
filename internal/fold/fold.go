package fold

import (
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Fold is the table as far as it was read. Make one with New. It is not safe for
// concurrent use, and what it gives out is shared and must not be changed.
type Fold struct {
	// next is the offset after the last record that was added.
	next int64
	// collecting holds from a gap until end was reached. gap numbers the gaps, and
	// asked says that end was asked for after the last one.
	collecting bool
	asked      bool
	gap        int
	end        int64
	// since is the version that was whole before the last gap, if resumed.
	since   viewkeeper.Version
	resumed bool
	certain int64

	// epoch is the highest of all fences, fence and fenceAt the one that has it.
	epoch     viewkeeper.Epoch
	epochBase viewkeeper.Epoch // the highest of all fences and counted commit rows
	fence     *codec.Fence
	fenceAt   int64
	fenceLost bool

	commit     *codec.Commit
	commitMark mark
	rows       map[string]*row     // by table key
	held       map[string]*row     // those with held records
	ring       map[int]*slot       // by slot
	spoiled    map[string]struct{} // keys that may need healing
	purged     map[string]struct{} // keys whose rows can be forgotten
	heartbeat  *codec.Heartbeat

	// newer holds the keys of which the last record is of a newer format. True says that
	// it may be an owner's: it counts, or can't be read and is no part of the catalog.
	newer map[string]bool

	changed map[string]struct{}
	commits []*codec.Commit
	counts  Counts
}

// Counts counts the records that counted for nothing. Stale are those of a former
// owner, and old copies of the present one's.
type Counts struct {
	Stale      int64
	Tombstones int64
	Unknown    int64
	Newer      int64 // those of Unknown that look like a newer program's
}

// mark is where the last record that counts, and the last thing that spoils it,
// lie for one key. Offsets are kept + 1, so that the zero mark is of a key that
// nothing was seen of.
type mark struct{ counted, spoiled int64 }

func (m mark) needsHealing() bool { return m.spoiled > m.counted }

// row is one name's records.
type row struct {
	mark
	// visible is the row that is shown, from a record or from a commit row.
	visible *viewkeeper.Row
	// recorded is the highest version among the counted row records; the content
	// of a commit row is not one.
	recorded    viewkeeper.Version
	hasRecorded bool
	// held are counted records above the commit row's version.
	held []viewkeeper.Row
	// purged says that visible is a drop whose record compaction will take.
	purged bool
}

// New makes a fold that has read nothing. It collects, as after any gap.
func New() *Fold {
	return &Fold{
		collecting: true,
		rows:       map[string]*row{},
		held:       map[string]*row{},
		ring:       map[int]*slot{},
		spoiled:    map[string]struct{}{},
		newer:      map[string]bool{},
		purged:     map[string]struct{}{},
		changed:    map[string]struct{}{},
	}
}

// Add takes the next record of the log and reports whether it counts; a fence
// always does. A record below Next was read before and is left out.
func (f *Fold) Add(offset int64, r codec.Record) bool {
	if offset < f.next {
		return false
	}
	if offset > f.next {
		if !f.collecting {
			f.Resume()
		}
		f.collecting, f.asked = true, false
		f.gap++
	}
	f.next = offset + 1
	counts := f.add(offset, r)
	f.noteFormat(r, counts)
	f.settle()
	f.ascertain()
	return counts
}

func (f *Fold) add(offset int64, r codec.Record) bool {
	switch r := r.(type) {
	case codec.Row:
		return f.addRow(offset, r)
	case *codec.Commit:
		return f.addCommit(offset, r)
	case *codec.Fence:
		f.addFence(offset, r)
		return true
	case *codec.IDs:
		return f.addIDs(offset, r)
	case *codec.Heartbeat:
		if f.stale(r.Epoch) {
			return false // the next one overwrites it, there is nothing to heal
		}
		f.heartbeat = r
		return true
	case codec.Purge:
		return f.addPurge(offset, r)
	case codec.Tombstone:
		f.counts.Tombstones++
		f.lose(offset, r.TableKey)
	case codec.Unknown:
		f.counts.Unknown++
		if r.Newer {
			f.counts.Newer++
		}
		// Rubbish, a stranger's or a newer program's: compaction takes the good one under
		// it. Where a newer program owns, nobody heals (see Newer).
		f.lose(offset, r.TableKey)
	}
	return false
}

// stale is rule 2. Epoch 0 is no owner's and never counts.
func (f *Fold) stale(epoch viewkeeper.Epoch) bool {
	if epoch == 0 || epoch < f.epoch {
		f.counts.Stale++
		return true
	}
	return false
}

// addFence is rule 1. A fence with a lower epoch than one before it, which an
// owner writes that does not know of a newer epoch base, changes nothing.
func (f *Fold) addFence(offset int64, r *codec.Fence) {
	f.epochBase = max(f.epochBase, r.EpochBase)
	if epoch := FenceEpoch(r, offset); epoch > f.epoch {
		if f.fence != nil {
			delete(f.newer, f.fence.Key()) // that owner is no more
		}
		f.epoch, f.fence, f.fenceAt, f.fenceLost = epoch, r, offset, false
	}
}

// FenceEpoch gives the epoch of the owner that wrote a fence.
func FenceEpoch(r *codec.Fence, offset int64) viewkeeper.Epoch {
	return r.EpochBase + viewkeeper.Epoch(offset) + 1
}

func (f *Fold) addCommit(offset int64, r *codec.Commit) bool {
	if f.stale(r.Epoch) {
		f.commitMark.spoiled = offset + 1
		f.spoiled[codec.KeyCommit] = struct{}{}
		// Its rows may follow, now or when nobody looks.
		for _, named := range r.Rows {
			f.spoilRow(offset, named.Name.String())
		}
		for _, id := range r.IDs {
			f.spoilSlot(offset, codec.Slot(id.Version))
		}
		return false
	}
	f.epochBase = max(f.epochBase, r.EpochBase)
	if c := f.commit; c != nil && less(r.Epoch, r.Version, c.Epoch, c.Version) {
		// An old copy, written again by a stranger: compaction would keep that.
		f.counts.Stale++
		f.commitMark.spoiled = offset + 1
		f.spoiled[codec.KeyCommit] = struct{}{}
		return false
	}
	f.commitMark.counted = offset + 1
	f.commit = r
	if f.collecting {
		f.commits = f.commits[:0] // those before are in the decisions topic
	}
	f.commits = append(f.commits, r)
	for _, content := range r.Rows {
		content.Epoch = r.Epoch
		f.show(content.Name.String(), f.row(content.Name.String()), content)
	}
	for _, id := range r.IDs {
		f.slot(codec.Slot(id.Version)).add(id)
	}
	for key, row := range f.held {
		kept := row.held[:0]
		for _, h := range row.held {
			if h.Version <= r.Version {
				f.show(key, row, h)
			} else {
				kept = append(kept, h)
			}
		}
		if row.held = kept; len(kept) == 0 {
			delete(f.held, key)
		}
	}
	return true
}

func (f *Fold) addRow(offset int64, r codec.Row) bool {
	key := r.Key()
	if f.stale(r.Epoch) {
		f.spoilRow(offset, key)
		return false
	}
	row := f.row(key)
	if row.above(r.Row) {
		f.counts.Stale++ // an old copy, as of a commit row
		f.spoilRow(offset, key)
		return false
	}
	row.counted = offset + 1
	if !row.hasRecorded || r.Version > row.recorded {
		row.recorded, row.hasRecorded = r.Version, true
	}
	if r.Version > f.Version() {
		row.held = append(row.held, r.Row)
		f.held[key] = row
		return true
	}
	f.show(key, row, r.Row)
	return true
}

// show makes r the visible row of key if it is not below the one that is there.
func (f *Fold) show(key string, row *row, r viewkeeper.Row) {
	was := row.visible
	if was != nil && less(r.Epoch, r.Version, was.Epoch, was.Version) {
		return
	}
	row.visible, row.purged = &r, false
	if !sameRow(was, &r) {
		f.changed[key] = struct{}{}
	}
}

// above reports whether a row that counts and was seen before comes after r.
func (r *row) above(other viewkeeper.Row) bool {
	if v := r.visible; v != nil && less(other.Epoch, other.Version, v.Epoch, v.Version) {
		return true
	}
	for _, h := range r.held {
		if less(other.Epoch, other.Version, h.Epoch, h.Version) {
			return true
		}
	}
	return false
}

// sameRow reports whether two rows say the same, whoever wrote them. A drop row of
// a name that was never seen says nothing.
func sameRow(a, b *viewkeeper.Row) bool {
	if a == nil {
		return !b.Live()
	}
	if a.Version != b.Version || a.Live() != b.Live() {
		return false
	}
	if !a.Live() || a.Definition == b.Definition {
		return true
	}
	x, y := *a.Definition, *b.Definition
	sameComment := (x.Comment == nil) == (y.Comment == nil) && (x.Comment == nil || *x.Comment == *y.Comment)
	x.Comment, y.Comment = nil, nil
	return sameComment && x == y
}

// less orders by (epoch, version).
func less(e1 viewkeeper.Epoch, v1 viewkeeper.Version, e2 viewkeeper.Epoch, v2 viewkeeper.Version) bool {
	return e1 < e2 || e1 == e2 && v1 < v2
}

func (f *Fold) row(key string) *row {
	r := f.rows[key]
	if r == nil {
		r = &row{}
		f.rows[key] = r
	}
	return r
}

// settle ends collecting once the end was reached.
func (f *Fold) settle() {
	if f.collecting && f.asked && f.next >= f.end && !f.Outdated() {
		f.collecting = false
	}
}

// ascertain moves on what is certain: what comes after a gap is not, as a fence may
// have been in it.
func (f *Fold) ascertain() {
	if !f.collecting {
		f.certain = f.next
	}
}
