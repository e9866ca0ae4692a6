package fold

import (
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Next gives the offset that comes after what was read.
func (f *Fold) Next() int64 { return f.next }

// NeedEnd reports whether the log's end is to be asked for now, and for which gap.
func (f *Fold) NeedEnd() (gap int, need bool) { return f.gap, f.collecting && !f.asked }

// EndIs tells the end offset (that of the record after the last) which was asked
// for after NeedEnd named this gap. If another gap was seen in the meantime the
// answer is too old and is left out.
func (f *Fold) EndIs(gap int, end int64) {
	if gap != f.gap || !f.collecting || f.asked {
		return
	}
	f.asked, f.end = true, end
	f.settle()
	f.ascertain()
}

// Collecting reports whether the fold must not be shown yet: from the start, or a
// gap, until the end that was asked for after it.
func (f *Fold) Collecting() bool { return f.collecting }

// End gives the offset that collecting ends at, when it is known.
func (f *Fold) End() (int64, bool) { return f.end, f.collecting && f.asked }

// Epoch gives the epoch of the highest fence, 0 when there is none.
func (f *Fold) Epoch() viewkeeper.Epoch { return f.epoch }

// EpochBase gives the base for a new fence: the highest that any fence or counted
// commit row has.
func (f *Fold) EpochBase() viewkeeper.Epoch { return f.epochBase }

// Fence gives the highest fence and its offset, or nil.
func (f *Fold) Fence() (*codec.Fence, int64) { return f.fence, f.fenceAt }

// FenceLost reports whether something lies over the highest fence's key. Its owner
// must write a new one, since compaction will take it.
func (f *Fold) FenceLost() bool { return f.fenceLost }

// Commit gives the counting commit row, or nil.
func (f *Fold) Commit() *codec.Commit { return f.commit }

// Version gives the catalog's version: that of the counting commit row, or 0.
func (f *Fold) Version() viewkeeper.Version {
	if f.commit == nil {
		return 0
	}
	return f.commit.Version
}

// Heartbeat gives the last one that counts, or nil.
func (f *Fold) Heartbeat() *codec.Heartbeat { return f.heartbeat }

// Counts tells what counted for nothing.
func (f *Fold) Counts() Counts { return f.counts }

// Held gives the number of names with a row above the commit row's version.
func (f *Fold) Held() int { return len(f.held) }

// Row gives the visible row of a name.
func (f *Fold) Row(name viewkeeper.Name) (viewkeeper.Row, bool) {
	if r := f.rows[name.String()]; r != nil && r.visible != nil {
		return *r.visible, true
	}
	return viewkeeper.Row{}, false
}

// Rows gives all visible rows, drops included, sorted by name.
func (f *Fold) Rows() []viewkeeper.Row {
	out := make([]viewkeeper.Row, 0, len(f.rows))
	for _, r := range f.rows {
		if r.visible != nil {
			out = append(out, *r.visible)
		}
	}
	slices.SortFunc(out, func(a, b viewkeeper.Row) int { return a.Name.Compare(b.Name) })
	return out
}

// Update is what became visible since the last one.
type Update struct {
	// Version is the catalog's version now.
	Version viewkeeper.Version
	// Changed are the rows that say something else than before, as they are now,
	// sorted by name.
	Changed []viewkeeper.Row
	// Commits are the counting commit rows since, oldest first; while collecting
	// only the last is kept. Their decisions stand for the decisions topic's.
	Commits []*codec.Commit
}

// Take gives what became visible since it last did, and false when that is
// nothing. While collecting it always is.
func (f *Fold) Take() (Update, bool) {
	if f.collecting || len(f.changed) == 0 && len(f.commits) == 0 {
		return Update{}, false
	}
	u := Update{Version: f.Version(), Commits: f.commits}
	for key := range f.changed {
		u.Changed = append(u.Changed, *f.rows[key].visible)
	}
	slices.SortFunc(u.Changed, func(a, b viewkeeper.Row) int { return a.Name.Compare(b.Name) })
	clear(f.changed)
	f.commits = nil
	f.forget()
	return u, true
}
