package fold

import (
	"encoding/binary"
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper/codec"
)

// Clone gives a fold that goes on from here on its own.
func (f *Fold) Clone() *Fold {
	c := *f
	c.rows = make(map[string]*row, len(f.rows))
	for key, r := range f.rows {
		again := *r
		again.held = slices.Clone(r.held)
		c.rows[key] = &again
	}
	c.held = make(map[string]*row, len(f.held))
	for key := range f.held {
		c.held[key] = c.rows[key]
	}
	c.ring = make(map[int]*slot, len(f.ring))
	for n, s := range f.ring {
		again := *s
		c.ring[n] = &again
	}
	c.newer, c.purged = maps.Clone(f.newer), maps.Clone(f.purged)
	c.spoiled, c.changed, c.commits = maps.Clone(f.spoiled), maps.Clone(f.changed), slices.Clone(f.commits)
	return &c
}

// AppendState appends what the fold's answers, now and later, depend on, so that two
// folds with the same bytes can't be told apart. [Fold.Counts], the heartbeat and
// where exactly a mark lies are left out. It is for the model checker.
func (f *Fold) AppendState(b []byte) []byte {
	b = binary.AppendVarint(b, f.next)
	b = appendBool(b, f.collecting, f.asked, f.fenceLost, f.fence != nil, f.commit != nil, f.commitMark.needsHealing())
	b = binary.AppendVarint(b, int64(f.gap))
	b = binary.AppendVarint(b, f.certain-f.next)
	if f.collecting && f.resumed {
		b = binary.AppendUvarint(b, uint64(f.since)+1)
	}
	if f.collecting && f.asked {
		b = binary.AppendVarint(b, f.end)
	}
	b = binary.AppendUvarint(b, uint64(f.epoch))
	b = binary.AppendUvarint(b, uint64(f.epochBase))
	if f.fence != nil {
		b = appendText(b, f.fence.Nonce)
		b = binary.AppendVarint(b, f.fenceAt)
	}
	if f.commit != nil {
		b = appendRecord(b, f.commit)
	}
	for _, key := range slices.Sorted(maps.Keys(f.rows)) {
		r := f.rows[key]
		_, changed := f.changed[key]
		b = appendText(b, key)
		b = appendBool(b, r.needsHealing(), r.visible != nil, r.hasRecorded, changed, r.purged)
		b = binary.AppendUvarint(b, uint64(r.recorded))
		if r.visible != nil {
			b = appendRecord(b, codec.Row{Row: *r.visible})
		}
		b = binary.AppendUvarint(b, uint64(len(r.held)))
		for _, h := range r.held {
			b = appendRecord(b, codec.Row{Row: h})
		}
	}
	for _, n := range slices.Sorted(maps.Keys(f.ring)) {
		s := f.ring[n]
		b = appendBool(b, s.needsHealing(), s.record)
		b = binary.AppendUvarint(b, uint64(s.version))
		b = appendRecord(b, s.row(n, s.epoch))
	}
	for _, key := range slices.Sorted(maps.Keys(f.newer)) {
		b = appendBool(appendText(b, key), f.newer[key])
	}
	for _, c := range f.commits {
		b = appendRecord(b, c)
	}
	return b
}

func appendRecord(b []byte, r codec.Record) []byte {
	key, value := codec.EncodeRecord(r)
	return appendText(appendText(b, key), string(value))
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

func appendBool(b []byte, flags ...bool) []byte {
	n := byte(0)
	for i, f := range flags {
		if f {
			n |= 1 << i
		}
	}
	return append(b, n)
}
