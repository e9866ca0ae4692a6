package fold

import (
	"encoding/json"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// slot is one slot of the ring of known statement ids.
type slot struct {
	mark
	// epoch and version are those of the counted record that the slot was last
	// read from; ids also has what commit rows said since.
	epoch   viewkeeper.Epoch
	version viewkeeper.Version
	record  bool
	ids     []codec.ID // ascending by version
	// What a newer program says of the slot in that record.
	format int
	extra  map[string]json.RawMessage
}

func (f *Fold) slot(n int) *slot {
	s := f.ring[n]
	if s == nil {
		s = &slot{}
		f.ring[n] = s
	}
	return s
}

func (f *Fold) addIDs(offset int64, r *codec.IDs) bool {
	if f.stale(r.Epoch) {
		f.spoilSlot(offset, r.Slot)
		return false
	}
	s := f.slot(r.Slot)
	if s.record && less(r.Epoch, r.Version, s.epoch, s.version) {
		f.counts.Stale++ // an old copy, as of a commit row
		f.spoilSlot(offset, r.Slot)
		return false
	}
	s.counted = offset + 1
	later := s.ids
	s.ids = nil
	if wellFormed(r) {
		s.ids = slices.Clip(r.IDs)
	} else {
		for _, id := range r.IDs {
			if codec.Slot(id.Version) == r.Slot {
				s.add(id)
			}
		}
	}
	for _, id := range later {
		if id.Version > r.Version {
			s.add(id)
		}
	}
	s.epoch, s.version, s.record = r.Epoch, r.Version, true
	s.format, s.extra = r.Format, r.Extra
	return true
}

// wellFormed reports whether a slot's row is as owners write it: ids of this slot, of
// one round, ascending.
func wellFormed(r *codec.IDs) bool {
	for i, id := range r.IDs {
		if codec.Slot(id.Version) != r.Slot || codec.SlotStart(id.Version) != codec.SlotStart(r.IDs[0].Version) ||
			i > 0 && id.Version <= r.IDs[i-1].Version {
			return false
		}
	}
	return true
}

// add puts an id in its place, and forgets those of the slot's earlier round.
func (s *slot) add(id codec.ID) {
	at, found := slices.BinarySearchFunc(s.ids, id.Version, func(in codec.ID, v viewkeeper.Version) int {
		return int(int64(in.Version) - int64(v))
	})
	if found {
		s.ids[at] = id
		return
	}
	if n := len(s.ids); n > 0 && id.Version < codec.SlotStart(s.ids[n-1].Version) {
		return
	}
	// A new slice each time: what Heal and Completion gave out is not written over.
	s.ids = slices.Insert(slices.Clip(s.ids), at, id)
	start := codec.SlotStart(id.Version)
	if s.ids[0].Version < start {
		first, _ := slices.BinarySearchFunc(s.ids, start, func(in codec.ID, v viewkeeper.Version) int {
			return int(int64(in.Version) - int64(v))
		})
		s.ids = s.ids[first:]
	}
}

func (s *slot) row(n int, epoch viewkeeper.Epoch) *codec.IDs {
	r := &codec.IDs{Slot: n, Epoch: epoch, IDs: s.ids, Format: s.format, Extra: s.extra}
	if len(s.ids) > 0 {
		r.Version = s.ids[len(s.ids)-1].Version
	}
	return r
}

// SlotRow gives the row of the slot that a version belongs to, as an owner of this
// epoch writes it.
func (f *Fold) SlotRow(n int, epoch viewkeeper.Epoch) *codec.IDs { return f.slot(n).row(n, epoch) }

// IDs calls yield with every known statement id, in no order.
func (f *Fold) IDs(yield func(codec.ID) bool) {
	for _, s := range f.ring {
		for _, id := range s.ids {
			if !yield(id) {
				return
			}
		}
	}
}
