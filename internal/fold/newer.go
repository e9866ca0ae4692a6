package fold

import (
	"maps"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper/codec"
)

// noteFormat keeps up with what lies in the table in a newer format. A stale record
// says nothing about it, and neither does a fence that is not the highest.
func (f *Fold) noteFormat(r codec.Record, counts bool) {
	key := r.Key()
	if u, ok := r.(codec.Unknown); ok && u.Newer {
		_, row := codec.RowKey(key)
		_, slot := codec.SlotKey(key)
		switch {
		case row || slot || key == codec.KeyCommit || key == codec.KeyHeartbeat:
			if _, known := f.newer[key]; !known {
				f.newer[key] = false // what was said of an owner stays said
			}
		case strings.HasPrefix(key, "#"):
			// A fence that can't be read, or a kind of record that is not known here.
			f.newer[key] = true
		}
		return
	}
	if fence, ok := r.(*codec.Fence); ok && fence != f.fence {
		return
	}
	_, gone := r.(codec.Tombstone)
	switch {
	case codec.FormatOf(r) > codec.Format && counts:
		f.newer[key] = true
	case counts, gone && strings.HasPrefix(key, "#"):
		delete(f.newer, key)
	}
}

// Newer gives the keys, sorted, of which the last record is of a newer format than
// this program's. It is read as far as it is known, or not at all.
func (f *Fold) Newer() []string { return slices.Sorted(maps.Keys(f.newer)) }

// NewerOwner gives a key that says that a newer program owns the catalog, or has, and
// "" when none does. An owner of this program must not go on from that, since what a
// field means may have changed. A record that can't be read and lies on the catalog's
// own keys does not say so, as no owner writes one without its fence: it is healed.
func (f *Fold) NewerOwner() string {
	for _, key := range f.Newer() {
		if f.newer[key] {
			return key
		}
	}
	return ""
}
