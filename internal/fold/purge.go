package fold

import (
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// addPurge is rule 9: a purge is a drop row that is not kept. It is ordered like any
// row; one that does not count lies over a row like a stranger's tombstone.
func (f *Fold) addPurge(offset int64, r codec.Purge) bool {
	key := r.Key()
	if f.stale(r.Epoch) {
		f.lose(offset, key)
		return false
	}
	row := f.row(key)
	drop := viewkeeper.Row{Name: r.Name, Version: r.Version, Epoch: r.Epoch}
	if row.above(drop) {
		f.counts.Stale++ // an old copy
		f.lose(offset, key)
		return false
	}
	row.counted = offset + 1
	row.recorded, row.hasRecorded = max(row.recorded, r.Version), true
	f.show(key, row, drop)
	row.purged = true
	f.purged[key] = struct{}{}
	f.forget()
	return true
}

// forget lets go of what is purged, once Take has told of it.
func (f *Fold) forget() {
	for key := range f.purged {
		row := f.rows[key]
		if row == nil || !row.purged {
			delete(f.purged, key)
			continue
		}
		if _, untold := f.changed[key]; untold {
			continue
		}
		delete(f.purged, key)
		if !row.needsHealing() && len(row.held) == 0 {
			delete(f.rows, key)
			delete(f.spoiled, key)
		}
	}
}

// Resume tells a fold that what it has read is whole, and may be long ago: it goes on
// from the version that it has. It does so itself at a gap; who gives it a copy of the
// table, or waits between recovering the table and reading on, tells it.
func (f *Fold) Resume() { f.since, f.resumed = f.Version(), true }

// Resumed reports whether it goes on from a version that was whole, and did not begin
// with nothing.
func (f *Fold) Resumed() bool { return f.resumed || !f.collecting }

// Outdated reports whether drops may be missing that were purged while the fold was not
// reading: it never gets out of collecting, and a new one must read the table from its
// beginning.
func (f *Fold) Outdated() bool {
	return f.collecting && f.resumed && f.commit != nil && f.commit.PurgedThrough > f.since
}

// Purge gives what an owner of this epoch may purge: the drop rows whose last record
// lies below an offset, and the commit row that has to be written, and acked, before
// them. Records below that offset must be older than it takes to compact what they lie
// over. There is nothing while something is to be healed, and nothing of what the commit
// row names: completion would write it again. At most so many are given.
func (f *Fold) Purge(epoch viewkeeper.Epoch, below int64, most int) (*codec.Commit, []codec.Record) {
	if f.collecting || f.commit == nil || len(f.Heal(epoch)) > 0 {
		return nil, nil
	}
	named := map[string]bool{}
	for _, r := range f.commit.Rows {
		named[r.Name.String()] = true
	}
	c := f.commit.WithEpoch(epoch)
	var out []codec.Record
	for _, key := range slices.Sorted(maps.Keys(f.rows)) {
		r := f.rows[key]
		if v := r.visible; v == nil || v.Live() || !r.hasRecorded || r.purged || named[key] || len(r.held) > 0 || r.counted > below || len(out) == most {
			continue
		}
		c.PurgedThrough = max(c.PurgedThrough, r.visible.Version)
		out = append(out, codec.Purge{Name: r.visible.Name, Version: r.visible.Version, Epoch: epoch})
	}
	if len(out) == 0 {
		return nil, nil
	}
	return c, out
}
