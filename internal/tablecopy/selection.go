package tablecopy

import (
	"bytes"
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Selection chooses what a copy holds of a table that is read record by record: for
// every key the last record, and the one that counts most, which is the last that
// counts unless it is below another by the order of (epoch, version); and every fence.
// It keeps the records that no copy has yet, and of the others only where they are.
//
// It is not safe for concurrent use.
type Selection struct {
	keys   map[string]*kept
	put    map[int64]Record
	delete map[int64]struct{}
	// flown is the highest offset that may be in a copy: a record above it that is no
	// longer wanted needs no deleting.
	flown int64
	// flight is what Take gave out and Done has not ended.
	flight *Batch
}

// kept says where the records of one key are; -1 where there is none.
type kept struct {
	last, counted int64
	epoch         viewkeeper.Epoch
	version       viewkeeper.Version
}

// NewSelection has nothing yet.
func NewSelection() *Selection {
	return &Selection{keys: map[string]*kept{}, put: map[int64]Record{}, delete: map[int64]struct{}{}, flown: -1}
}

// Add takes the next record of the table; counts is what the fold said of it. The
// value is copied.
func (s *Selection) Add(offset int64, r codec.Record, value []byte, counts bool) {
	s.put[offset] = Record{offset, r.Key(), bytes.Clone(value)}
	s.choose(offset, r, counts)
}

// Loaded takes a record that a copy has already.
func (s *Selection) Loaded(offset int64, r codec.Record, counts bool) {
	s.flown = max(s.flown, offset)
	s.choose(offset, r, counts)
}

func (s *Selection) choose(offset int64, r codec.Record, counts bool) {
	if _, ok := r.(*codec.Fence); ok {
		return // each makes an epoch, whatever lies over it
	}
	k := s.keys[r.Key()]
	if k == nil {
		k = &kept{last: -1, counted: -1}
		s.keys[r.Key()] = k
	}
	before := *k
	k.last = offset
	epoch, version := order(r)
	if counts && !(k.counted >= 0 && (epoch < k.epoch || epoch == k.epoch && version < k.version)) {
		k.counted, k.epoch, k.version = offset, epoch, version
	}
	for _, o := range []int64{before.last, before.counted} {
		if o >= 0 && o != k.last && o != k.counted {
			s.drop(o)
		}
	}
}

// order is what the fold orders counted records of one key by.
func order(r codec.Record) (viewkeeper.Epoch, viewkeeper.Version) {
	switch r := r.(type) {
	case codec.Row:
		return r.Epoch, r.Version
	case *codec.Commit:
		return r.Epoch, r.Version
	case *codec.IDs:
		return r.Epoch, r.Version
	case codec.Purge:
		return r.Epoch, r.Version
	}
	return 0, 0 // heartbeats: the last
}

func (s *Selection) drop(offset int64) {
	delete(s.put, offset)
	if offset <= s.flown {
		s.delete[offset] = struct{}{}
	}
}

// Changed reports whether a copy would be written otherwise than it is.
func (s *Selection) Changed() bool { return len(s.put) > 0 || len(s.delete) > 0 }

// Take gives what changed since it last did. Done ends it.
func (s *Selection) Take() Batch {
	b := Batch{Put: slices.Collect(maps.Values(s.put)), Delete: slices.Sorted(maps.Keys(s.delete))}
	for offset := range s.put {
		s.flown = max(s.flown, offset)
	}
	s.put, s.delete = map[int64]Record{}, map[int64]struct{}{}
	s.flight = &b
	return b
}

// Done says whether what Take gave out is written. If it is not, or nobody knows,
// the next Take gives it out again with what came since.
func (s *Selection) Done(written bool) {
	b := s.flight
	s.flight = nil
	if written || b == nil {
		return
	}
	for _, r := range b.Put {
		if _, dropped := s.delete[r.Offset]; !dropped {
			s.put[r.Offset] = r
		}
	}
	for _, offset := range b.Delete {
		s.delete[offset] = struct{}{}
	}
}
