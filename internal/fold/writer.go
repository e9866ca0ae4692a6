package fold

import (
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Decided is what was decided of one record of the definitions topic.
type Decided struct {
	// Version is 0 for a record that was decided before; nothing is written for it.
	Version viewkeeper.Version
	// Decision is nil for a statement that repeats a known one; its version counts
	// all the same.
	Decision *viewkeeper.Decision
	Rows     []viewkeeper.Row
	ID       *codec.ID // nil when the producer gave none
}

// CommitRow gives the commit row of a batch, of which one record at least has a
// version. It goes on from the row before: what that says of the catalog as a whole,
// in fields that a newer program added too, stays.
func CommitRow(before *codec.Commit, batch []Decided) *codec.Commit {
	c := *before
	c.Decisions, c.Rows, c.IDs = nil, nil, nil
	c.Extra = maps.Clone(before.Extra)
	for _, ofTheBatch := range []string{"decisions", "rows", "ids"} {
		delete(c.Extra, ofTheBatch)
	}
	rows := map[viewkeeper.Name]viewkeeper.Row{}
	for _, d := range batch {
		if d.Version == 0 {
			continue
		}
		c.Version = d.Version
		if d.Decision != nil {
			c.Decisions = append(c.Decisions, *d.Decision)
		}
		for _, r := range d.Rows {
			rows[r.Name] = r // the last one of a name counts
		}
		if d.ID != nil {
			c.IDs = append(c.IDs, *d.ID)
		}
	}
	for _, r := range rows {
		r.Epoch = c.Epoch
		c.Rows = append(c.Rows, r)
	}
	slices.SortFunc(c.Rows, func(a, b viewkeeper.Row) int { return a.Name.Compare(b.Name) })
	return &c
}

// Written is what an owner knows of what it has written, and decides from it what
// may be written now.
type Written struct {
	// Last is the offset of its last record in the table, -1 for none; HealedTo is
	// what Last was when it last healed.
	Last, HealedTo int64
	// First says that the table had no commit row that counts, and has none yet that
	// was read back.
	First bool
}

// MayFollow reports whether the rows and decisions of a commit row that is acked may
// be sent. Those of a catalog's first one wait until it is known to count: decisions
// that no counting commit row ever stood for look like those of a table that was
// lost, and would block every owner after this one.
func (w *Written) MayFollow(f *Fold) bool { return !w.First || f.Certain() > w.Last }

// Acked notes the offset of a record of the table.
func (w *Written) Acked(offset int64) { w.Last = max(w.Last, offset) }

// MustHeal reports whether there is something to heal that was not yet.
func (w *Written) MustHeal(f *Fold, epoch viewkeeper.Epoch) bool {
	return f.Next() > w.HealedTo && len(f.Heal(epoch)) > 0
}

// MayHeal reports whether everything of the owner's own was read back. Only then is
// what lies last known for each key: healing from an older state would write an older
// row over a newer one of its own.
func (w *Written) MayHeal(f *Fold) bool { return f.Next() > w.Last && !f.Collecting() }

// Healed notes that what was to be healed is written, and acked.
func (w *Written) Healed() { w.HealedTo = w.Last }

// Ring is the writer's copy of the ring's slots: committed ids only.
type Ring struct {
	slots map[int][]codec.ID
	newer map[int]*codec.IDs
}

// NewRing makes the ring with the known ids, ascending by version, and with what a
// newer program says of slots, which is written back with them.
func NewRing(ids []codec.ID, newer map[int]*codec.IDs) *Ring {
	r := &Ring{slots: map[int][]codec.ID{}, newer: newer}
	for _, id := range ids {
		r.Add(id)
	}
	return r
}

// Add puts an id into its slot; versions only rise. The first of a new round empties
// the slot.
func (r *Ring) Add(id codec.ID) {
	n := codec.Slot(id.Version)
	in := r.slots[n]
	if len(in) > 0 && in[0].Version < codec.SlotStart(id.Version) {
		in = nil
	}
	r.slots[n] = append(in, id)
}

// Row gives a slot as the owner of an epoch writes it. It shares memory with the ring
// until the next Add.
func (r *Ring) Row(n int, epoch viewkeeper.Epoch) *codec.IDs {
	out := &codec.IDs{Slot: n, Epoch: epoch, IDs: r.slots[n]}
	if was := r.newer[n]; was != nil {
		out.Format, out.Extra = was.Format, was.Extra
	}
	if len(out.IDs) > 0 {
		out.Version = out.IDs[len(out.IDs)-1].Version
	}
	return out
}

// Flight gives what follows a commit row into the table once that is acked: its rows,
// and the slots of its ids, which are added to the ring. Its decisions go with them.
func (r *Ring) Flight(c *codec.Commit) []codec.Record {
	var out []codec.Record
	for _, row := range c.Rows {
		out = append(out, codec.Row{Row: row})
	}
	slots := map[int]bool{}
	for _, id := range c.IDs {
		r.Add(id)
		slots[codec.Slot(id.Version)] = true
	}
	for _, n := range slices.Sorted(maps.Keys(slots)) {
		out = append(out, r.Row(n, c.Epoch))
	}
	return out
}
