package processor

import (
	"slices"

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
