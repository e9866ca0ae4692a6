package fold

import (
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Completion is rule 3: the rows and slots of the counting commit row that no
// counted record of their own holds, with the epoch of the owner that is to write
// them. All the commit row's decisions are to be written again besides.
func (f *Fold) Completion(epoch viewkeeper.Epoch) []codec.Record {
	if f.commit == nil {
		return nil
	}
	var out []codec.Record
	for _, r := range f.commit.Rows {
		row := f.row(r.Name.String())
		if row.hasRecorded && row.recorded >= r.Version {
			continue
		}
		r.Epoch = epoch
		out = append(out, codec.Row{Row: r})
	}
	slots := map[int]bool{}
	for _, id := range f.commit.IDs {
		n := codec.Slot(id.Version)
		if s := f.slot(n); !slots[n] && (!s.record || s.version < id.Version) {
			slots[n] = true
			out = append(out, s.row(n, epoch))
		}
	}
	return out
}

// Heal is rule 6: what is to be written again because the last record of its key
// does not count, or because a commit row that does not count names the key. A name
// that has no row gets a drop row of version 0.
func (f *Fold) Heal(epoch viewkeeper.Epoch) []codec.Record {
	var out []codec.Record
	for _, key := range slices.Sorted(maps.Keys(f.spoiled)) {
		if key == codec.KeyCommit {
			switch {
			case !f.commitMark.needsHealing():
				delete(f.spoiled, key)
			case f.commit != nil:
				out = append(out, f.commit.WithEpoch(epoch))
			}
			continue
		}
		if n, ok := codec.SlotKey(key); ok {
			if s := f.slot(n); s.needsHealing() {
				out = append(out, s.row(n, epoch))
			} else {
				delete(f.spoiled, key)
			}
			continue
		}
		row := f.row(key)
		if !row.needsHealing() {
			delete(f.spoiled, key)
			continue
		}
		name, _ := codec.RowKey(key)
		r := viewkeeper.Row{Name: name}
		if row.visible != nil {
			r = *row.visible
		}
		r.Epoch = epoch
		out = append(out, codec.Row{Row: r})
	}
	return out
}

func (f *Fold) spoilRow(offset int64, key string) {
	f.row(key).spoiled = offset + 1
	f.spoiled[key] = struct{}{}
}

func (f *Fold) spoilSlot(offset int64, n int) {
	s := f.slot(n)
	s.spoiled = offset + 1
	f.spoiled[s.row(n, 0).Key()] = struct{}{}
}

// lose notes that a record which says nothing lies over a key, and that compaction
// will take what is under it. Where nothing is there is nothing to heal, and
// strangers' keys are not kept.
func (f *Fold) lose(offset int64, key string) {
	if key == codec.KeyCommit {
		f.commitMark.spoiled = offset + 1
		f.spoiled[key] = struct{}{}
		return
	}
	if f.fence != nil && key == f.fence.Key() {
		f.fenceLost = true
	}
	if n, ok := codec.SlotKey(key); ok {
		if len(f.slot(n).ids) > 0 {
			f.spoilSlot(offset, n)
		}
		return
	}
	if r := f.rows[key]; r != nil && (r.visible != nil || len(r.held) > 0) {
		f.spoilRow(offset, key)
	}
}
