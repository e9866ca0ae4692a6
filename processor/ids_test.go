package processor

import (
	"fmt"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// Of 160,000 statements the last 100,000 ids are known, here and in the table, though
// a transactional producer took two offsets for each; the first ones are forgotten.
func TestIDsAreKnownAndForgotten(t *testing.T) {
	k, r := newKnown(nil), fold.NewRing(nil, nil)
	const last = 320_000
	for v := viewkeeper.Version(2); v <= last; v += 2 {
		id := codec.ID{ID: fmt.Sprint(v), Text: "t", Version: v}
		k.add(id)
		r.Add(id)
	}
	var stored []codec.ID
	for n := range codec.Slots {
		row := r.Row(n, 7)
		for _, id := range row.IDs {
			if codec.Slot(id.Version) != n || row.Epoch != 7 || id.Version > row.Version {
				t.Fatalf("slot %d: %+v", n, row)
			}
		}
		stored = append(stored, row.IDs...)
	}
	again := newKnown(stored)
	for v := viewkeeper.Version(last - 200_000); v <= last; v += 2 {
		id := fmt.Sprint(v)
		if k.ids[id].Version != v || again.ids[id].Version != v {
			t.Fatalf("the id of version %d is forgotten", v)
		}
	}
	if n := codec.Slots * codec.SlotSpan / 2; len(k.ids) > n || len(stored) > n {
		t.Errorf("%d ids are known, %d stored", len(k.ids), len(stored))
	}
	// One that was forgotten and came again is not forgotten with its first time.
	k.add(codec.ID{ID: "x", Version: last + 1})
	k.add(codec.ID{ID: "x", Version: last + 2})
	k.add(codec.ID{ID: "y", Version: last + 1 + codec.Slots*codec.SlotSpan})
	if k.ids["x"].Version != last+2 {
		t.Error("x is forgotten")
	}
}
