package modelcheck

import (
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// Records and folds are values that never change here: each distinct one is kept once
// and named by a number, so that a state is a few numbers.
type (
	recordID uint16
	foldID   int32
	textID   uint16
)

type interned struct {
	records   []codec.Record
	recordIDs map[string]recordID
	texts     []string
	textIDs   map[string]textID

	folds   []*fold.Fold
	foldIDs map[string]foldID
	// pictures are the catalogs that folds show, "" while they collect.
	pictures []string
	added    map[addition]foldID
	ended    map[ending]foldID
	spoiled  []bool // whether a fold has something to heal
	judged   map[judging]recordID
	flights  map[[2]recordID]rows
	buf      []byte
}

// judging is a batch that an owner decides behind a commit row.
type judging struct {
	last recordID
	who  int
	what string
}

// rows is what follows a commit row into the table, and the ring then.
type rows struct {
	table []recordID
	ring  recordID
}

type addition struct {
	fold   foldID
	record recordID
	offset offset
	owner  bool
}

type ending struct {
	fold foldID
	gap  int
	end  offset
}

func newInterned() *interned {
	in := &interned{recordIDs: map[string]recordID{}, textIDs: map[string]textID{}, foldIDs: map[string]foldID{},
		added: map[addition]foldID{}, ended: map[ending]foldID{},
		judged: map[judging]recordID{}, flights: map[[2]recordID]rows{}}
	in.fold(fold.New()) // 0
	in.text("")         // 0
	in.record(codec.Tombstone{TableKey: "none"})
	return in
}

func (in *interned) record(r codec.Record) recordID {
	key, value := codec.EncodeRecord(r)
	text := key + "\x00" + string(value) + fmt.Sprint(codec.TableHeaders(r))
	id, ok := in.recordIDs[text]
	if !ok {
		id = recordID(len(in.records))
		if int(id) != len(in.records) {
			panic("too many records")
		}
		in.records = append(in.records, r)
		in.recordIDs[text] = id
	}
	return id
}

func (in *interned) text(s string) textID {
	id, ok := in.textIDs[s]
	if !ok {
		id = textID(len(in.texts))
		if int(id) != len(in.texts) {
			panic("too many texts")
		}
		in.texts = append(in.texts, s)
		in.textIDs[s] = id
	}
	return id
}

func (in *interned) fold(f *fold.Fold) foldID {
	in.buf = f.AppendState(in.buf[:0])
	id, ok := in.foldIDs[string(in.buf)]
	if !ok {
		id = foldID(len(in.folds))
		in.folds = append(in.folds, f)
		in.foldIDs[string(in.buf)] = id
		shown := ""
		if !f.Collecting() {
			shown = picture(f.Version(), f.Rows())
		}
		in.pictures = append(in.pictures, shown)
		in.spoiled = append(in.spoiled, len(f.Heal(1)) > 0)
	}
	return id
}

// add reads one more record, as an owner or as a follower.
func (in *interned) add(id foldID, at offset, r recordID, owner bool, without Rules) foldID {
	key := addition{id, r, at, owner}
	next, ok := in.added[key]
	if !ok {
		f := in.folds[id].Clone()
		f.Add(int64(at), as(f, in.records[r], owner, without))
		if owner {
			f.Take() // nobody wants to know
		}
		if without.has(Rule7Collect) && f.Collecting() {
			gap, _ := f.NeedEnd()
			f.EndIs(gap, 0)
		}
		next = in.fold(f)
		in.added[key] = next
	}
	return next
}

// as is the record as a fold without a rule would read it.
func as(f *fold.Fold, r codec.Record, owner bool, without Rules) codec.Record {
	if without.has(Rule2Counting) {
		r = withEpoch(r, f.Epoch())
	}
	switch r := r.(type) {
	case codec.Purge:
		if without.has(Rule9Epoch) && r.Epoch < f.Epoch() {
			was, _ := f.Row(r.Name)
			r.Epoch, r.Version = f.Epoch(), max(r.Version, was.Version) // gone is gone
		}
		return r
	case codec.Row:
		if without.has(Rule4Held) {
			r.Version = min(r.Version, f.Version())
		}
		return r
	case *codec.Commit:
		again := *r
		if without.has(Rule4Content) && !owner || without.has(Rule6Named) && r.Epoch < f.Epoch() {
			again.Rows, again.IDs = nil, nil
		}
		if without.has(Rule9Through) {
			again.PurgedThrough = 0
		}
		return &again
	}
	return r
}

func withEpoch(r codec.Record, least viewkeeper.Epoch) codec.Record {
	switch r := r.(type) {
	case codec.Row:
		r.Epoch = max(r.Epoch, least)
		return r
	case *codec.Commit:
		if r.Epoch < least {
			return r.WithEpoch(least)
		}
	case *codec.IDs:
		again := *r
		again.Epoch = max(r.Epoch, least)
		return &again
	}
	return r
}

func (in *interned) end(id foldID, gap int, end offset) foldID {
	key := ending{id, gap, end}
	next, ok := in.ended[key]
	if !ok {
		f := in.folds[id].Clone()
		f.EndIs(gap, int64(end))
		next = in.fold(f)
		in.ended[key] = next
	}
	return next
}

// resume tells a fold that it may have waited.
func (in *interned) resume(id foldID) foldID {
	f := in.folds[id].Clone()
	f.Resume()
	return in.fold(f)
}

// flight gives what follows a commit row.
func (in *interned) flight(commit, ring recordID) rows {
	key := [2]recordID{commit, ring}
	out, ok := in.flights[key]
	if !ok {
		ids := fold.NewRing(in.records[ring].(*codec.IDs).IDs, nil)
		c := in.records[commit].(*codec.Commit)
		for _, r := range ids.Flight(c) {
			out.table = append(out.table, in.record(r))
		}
		out.ring = in.record(ids.Row(0, c.Epoch))
		in.flights[key] = out
	}
	return out
}

// take gives what became visible.
func (in *interned) take(id foldID) (foldID, fold.Update, bool) {
	if in.folds[id].Collecting() {
		return id, fold.Update{}, false
	}
	f := in.folds[id].Clone()
	u, ok := f.Take()
	if !ok {
		return id, u, false
	}
	return in.fold(f), u, true
}
