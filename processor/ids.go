package processor

import (
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// known is what the judge knows of statement ids, those of pending statements
// included. It forgets what the ring of the table has forgotten.
type known struct {
	ids map[string]codec.ID
	// order is the ids by version, to forget the oldest.
	order []codec.ID
}

func newKnown(ids []codec.ID) *known {
	slices.SortFunc(ids, func(a, b codec.ID) int { return int(int64(a.Version) - int64(b.Version)) })
	k := &known{ids: make(map[string]codec.ID, len(ids))}
	for _, id := range ids {
		k.add(id)
	}
	return k
}

func (k *known) add(id codec.ID) {
	k.ids[id.ID] = id
	k.order = append(k.order, id)
	const reach = codec.Slots * codec.SlotSpan
	for len(k.order) > 0 && k.order[0].Version+reach <= id.Version {
		if old := k.order[0]; k.ids[old.ID].Version == old.Version {
			delete(k.ids, old.ID)
		}
		k.order = k.order[1:]
	}
}

// ring is the writer's copy of the ring's slots: committed ids only.
type ring struct{ slots map[int][]codec.ID }

func newRing(ids []codec.ID) *ring {
	r := &ring{slots: map[int][]codec.ID{}}
	for _, id := range ids {
		r.add(id)
	}
	return r
}

// add puts an id into its slot; versions only rise. The first of a new round empties
// the slot.
func (r *ring) add(id codec.ID) {
	n := codec.Slot(id.Version)
	in := r.slots[n]
	if len(in) > 0 && in[0].Version < codec.SlotStart(id.Version) {
		in = nil
	}
	r.slots[n] = append(in, id)
}

// row gives a slot as the owner of an epoch writes it. It is encoded before the next add.
func (r *ring) row(n int, epoch viewkeeper.Epoch) *codec.IDs {
	out := &codec.IDs{Slot: n, Epoch: epoch, IDs: r.slots[n]}
	if len(out.IDs) > 0 {
		out.Version = out.IDs[len(out.IDs)-1].Version
	}
	return out
}
