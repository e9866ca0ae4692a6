package fold

import (
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Live sums up the definitions of a catalog as they change. The log's rules say which
// records count, and nothing of those that are gone: rubbish over a row that nobody
// healed before compaction came leaves no trace of the row. The sum in the commit row
// misses it.
type Live struct {
	hashes map[viewkeeper.Name]uint64
	sum    uint64
}

// NewLive begins with these rows.
func NewLive(rows []viewkeeper.Row) *Live {
	l := &Live{hashes: make(map[viewkeeper.Name]uint64, len(rows))}
	for _, r := range rows {
		l.Put(r)
	}
	return l
}

// Put takes a row in place of its name's last.
func (l *Live) Put(r viewkeeper.Row) {
	l.sum -= l.hashes[r.Name]
	if !r.Live() {
		delete(l.hashes, r.Name)
		return
	}
	h := codec.HashRow(r)
	l.hashes[r.Name] = h
	l.sum += h
}

// At gives the sum for a commit row of this version.
func (l *Live) At(v viewkeeper.Version) *codec.LiveSum {
	return &codec.LiveSum{Version: v, Sum: fmt.Sprintf("%016x", l.sum)}
}

// Damaged reports that the definitions that are shown are not those that the commit row
// sums up: one is missing, or is another. It says nothing while the fold collects, and
// when the commit row has no sum. It costs a hash for each definition.
func (f *Fold) Damaged() bool {
	c := f.commit
	if f.collecting || c == nil || c.Live == nil || c.Live.Version != c.Version {
		return false
	}
	sum := uint64(0)
	for _, r := range f.rows {
		if r.visible != nil {
			sum += codec.HashRow(*r.visible)
		}
	}
	return c.Live.Sum != fmt.Sprintf("%016x", sum)
}
