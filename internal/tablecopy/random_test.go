package tablecopy

import (
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

var seedFlag = flag.Uint64("seed", 0, "repeats one run of the random test; 0 runs all")

// Three routes to one answer, over random tables: owners that fence, complete, heal and
// commit, that stop and write late, strangers' rubbish and tombstones, compaction in
// between. A follower that writes a copy now and then and starts again from it, at any
// point, shows at each version what one shows that has followed everything, and what
// one sees that reads the compacted table from its beginning. What it shows of the copy
// alone is what was shown when that was written.
func TestAFollowerThatStartsFromItsCopy(t *testing.T) {
	runs := uint64(400)
	if testing.Short() {
		runs = 100
	}
	first := uint64(1)
	if *seedFlag != 0 {
		first, runs = *seedFlag, 1
	}
	restarts, alone := 0, 0
	for seed := first; seed < first+runs; seed++ {
		w := &world{rng: rand.New(rand.NewPCG(seed, 5)), seen: map[viewkeeper.Version]string{}}
		if err := w.run(150); err != nil {
			t.Fatalf("%v\nagain with: go test ./internal/tablecopy -run TestAFollowerThatStartsFromItsCopy -seed %d\n%s", err, seed, w)
		}
		restarts += w.restarts
		alone += w.alone
	}
	t.Logf("%d starts from a copy, %d shown without the table", restarts, alone)
	if *seedFlag == 0 && (restarts < 100 || alone < 100) {
		t.Error("hardly any copy was used")
	}
}

type logged struct {
	offset int64
	record codec.Record
}

// world is a table, those who write to it and those who read it.
type world struct {
	rng      *rand.Rand
	next     int64
	all, log []logged // every record ever written, and what compaction has left
	owners   []*writer
	nonce    int
	always   *fold.Fold // has followed everything
	copying  *follower
	seen     map[viewkeeper.Version]string // what was shown at a version

	restarts, alone int
}

// writer is an owner as far as it got, as in the model of internal/fold.
type writer struct {
	epoch   viewkeeper.Epoch
	fold    *fold.Fold
	todo    []codec.Record
	version viewkeeper.Version
	ready   bool
}

// follower is a node with its copy.
type follower struct {
	fold  *fold.Fold
	kept  *Selection
	store *Store
	stor  storage.Storage
	// shown is what was shown when the copy was written last.
	shown string
	epoch viewkeeper.Epoch
}

func (w *world) run(steps int) (err error) {
	w.always = fold.New()
	w.copying = &follower{fold: fold.New(), kept: NewSelection(), stor: storage.NewMemStorage()}
	w.takeOver()
	for range steps {
		switch n := w.rng.IntN(24); {
		case n == 0 && len(w.owners) < 3:
			w.takeOver()
		case n < 3:
			w.compact()
		case n == 3 && len(w.owners) > 1: // one ends, whatever it still had to write
			i := w.rng.IntN(len(w.owners))
			w.owners = slices.Delete(w.owners, i, i+1)
		case n == 4:
			w.strange()
		case n < 9:
			err = w.follow()
		case n < 11:
			err = w.save()
		case n == 11:
			err = w.restart()
		default:
			i := w.rng.IntN(len(w.owners))
			if !w.step(w.owners[i]) {
				w.owners = slices.Delete(w.owners, i, i+1)
				if len(w.owners) == 0 {
					w.takeOver()
				}
			}
		}
		if err != nil {
			return err
		}
	}
	w.owners = nil
	last := w.takeOver()
	for !last.ready || len(last.todo) > 0 {
		w.step(last)
	}
	w.read(w.always)
	want := picture(w.always)
	fresh := fold.New()
	w.read(fresh)
	if got := picture(fresh); got != want {
		return fmt.Errorf("who reads from the beginning sees\n%s\nand who followed\n%s", got, want)
	}
	for range 2 {
		w.readFor(w.copying, len(w.all))
		if got := picture(w.copying.fold); got != want || w.copying.fold.Collecting() {
			return fmt.Errorf("who started from its copy sees\n%s\nand who followed\n%s", got, want)
		}
		if err := w.save(); err != nil {
			return err
		}
		if err := w.restart(); err != nil {
			return err
		}
	}
	return nil
}

func (w *world) write(r codec.Record) int64 {
	// Now and then a marker, or what else takes an offset and is no record.
	if w.rng.IntN(40) == 0 {
		w.next++
	}
	e := logged{w.next, r}
	w.next++
	w.all, w.log = append(w.all, e), append(w.log, e)
	w.always.Add(e.offset, e.record)
	gap, _ := w.always.NeedEnd()
	w.always.EndIs(gap, w.next)
	if w.always.Version() > 0 {
		w.seen[w.always.Version()] = picture(w.always)
	}
	return e.offset
}

// read brings a fold to the end of the table as it is now.
func (w *world) read(f *fold.Fold) {
	for _, e := range w.log {
		f.Add(e.offset, e.record)
	}
	gap, _ := f.NeedEnd()
	f.EndIs(gap, w.end())
}

// end is the one that can be read to.
func (w *world) end() int64 { return w.log[len(w.log)-1].offset + 1 }

// readFor gives a follower some records.
func (w *world) readFor(n *follower, count int) {
	if gap, need := n.fold.NeedEnd(); need {
		n.fold.EndIs(gap, w.end())
	}
	for _, e := range w.log {
		if e.offset < n.fold.Next() {
			continue
		}
		if count--; count < 0 {
			break
		}
		_, value := codec.EncodeRecord(e.record)
		counts := n.fold.Add(e.offset, e.record)
		n.kept.Add(e.offset, e.record, value, counts)
	}
	if gap, need := n.fold.NeedEnd(); need {
		n.fold.EndIs(gap, w.end())
	}
}

func (w *world) follow() error {
	w.readFor(w.copying, 1+w.rng.IntN(4))
	return w.show(w.copying.fold)
}

// show holds what a follower shows against what another one showed at that version.
func (w *world) show(f *fold.Fold) error {
	if f.Collecting() || f.Version() == 0 {
		return nil
	}
	got := picture(f)
	if was, ok := w.seen[f.Version()]; ok && was != got {
		return fmt.Errorf("at offset %d is shown\n%s\nand before was\n%s", f.Next()-1, got, was)
	}
	w.seen[f.Version()] = got
	return nil
}

// save writes the copy as a node does.
func (w *world) save() (err error) {
	n := w.copying
	if n.fold.Collecting() || n.fold.Held() > 0 || n.fold.Next() == 0 {
		return nil
	}
	if n.store == nil {
		if n.store, err = create("memory", func() (storage.Storage, error) { return n.stor, nil }, small()); err != nil {
			return err
		}
	}
	m := at(n.fold.Next() - 1)
	m.Version = n.fold.Version()
	failed := w.rng.IntN(8) == 0
	if batch := n.kept.Take(); !failed {
		err = n.store.Write(m, batch)
		n.shown, n.epoch = picture(n.fold), n.fold.Epoch()
	}
	n.kept.Done(!failed)
	return err
}

// restart makes the follower anew, of its copy if it has one.
func (w *world) restart() error {
	n := w.copying
	if n.store == nil || !n.store.whole {
		return nil
	}
	if err := n.store.Close(); err != nil {
		return err
	}
	var m Meta
	var records []Record
	var err error
	if n.store, m, records, err = open("memory", func() (storage.Storage, error) { return n.stor, nil }, small()); err != nil {
		return err
	}
	n.fold, n.kept = fold.New(), NewSelection()
	of := map[string]int{}
	for _, r := range records {
		if of[r.Key]++; of[r.Key] > 2 {
			return fmt.Errorf("the copy has a third record of %s, at %d", r.Key, r.Offset)
		}
		rec := codec.DecodeRecord(r.Key, r.Value)
		n.kept.Loaded(r.Offset, rec, n.fold.Add(r.Offset, rec))
	}
	if was := n.epoch; n.fold.Epoch() != was {
		return fmt.Errorf("the copy has epoch %d, and it was written with %d", n.fold.Epoch(), was)
	}
	if n.fold.Next() != m.Offset+1 || n.fold.Version() != m.Version || n.kept.Changed() {
		return fmt.Errorf("the copy says that it ends at %d with version %d, and ends before %d with %d, changed %v", m.Offset, m.Version, n.fold.Next(), n.fold.Version(), n.kept.Changed())
	}
	w.restarts++
	if w.rng.IntN(2) == 0 { // Kafka is away
		gap, _ := n.fold.NeedEnd()
		n.fold.EndIs(gap, n.fold.Next())
		w.alone++
		if got := picture(n.fold); got != n.shown || n.fold.Collecting() {
			return fmt.Errorf("of the copy is shown\n%s\nand when it was written\n%s", got, n.shown)
		}
	}
	return w.show(n.fold)
}

// strange writes what nobody should: rubbish and tombstones, over keys that are there
// too. Owners heal them.
func (w *world) strange() {
	key := []string{"main.a", "main.b", "main.x", codec.KeyCommit, codec.KeyHeartbeat, "#ids/0000", "rubbish", ""}[w.rng.IntN(8)]
	if w.rng.IntN(2) == 0 {
		w.write(codec.Tombstone{TableKey: key})
		return
	}
	w.write(codec.DecodeRecord(key, []byte("rubbish")))
}

func (w *world) takeOver() *writer {
	o := &writer{fold: fold.New()}
	if len(w.log) > 0 {
		w.read(o.fold)
	}
	w.nonce++
	fence := &codec.Fence{Nonce: fmt.Sprint(w.nonce), EpochBase: o.fold.EpochBase()}
	o.epoch = fold.FenceEpoch(fence, w.write(fence))
	w.owners = append(w.owners, o)
	return o
}

// step lets one owner do one thing, and reports whether it still believes to be one.
func (w *world) step(o *writer) bool {
	if len(o.todo) > 0 {
		w.write(o.todo[0])
		o.todo = o.todo[1:]
		return true
	}
	if !o.ready || w.rng.IntN(4) == 0 {
		w.read(o.fold)
		if o.fold.Epoch() != o.epoch {
			return false
		}
		if !o.ready {
			o.ready, o.version = true, o.fold.Version()
			o.todo = o.fold.Completion(o.epoch)
		}
		o.todo = append(o.todo, o.fold.Heal(o.epoch)...)
		return true
	}
	if w.rng.IntN(4) == 0 {
		w.write(&codec.Heartbeat{Version: o.version, Epoch: o.epoch, Owner: fmt.Sprint(o.epoch)})
		return true
	}
	commit := &codec.Commit{Epoch: o.epoch}
	for range 1 + w.rng.IntN(3) {
		o.version++
		commit.IDs = append(commit.IDs, codec.ID{ID: fmt.Sprintf("s%d", o.version), Version: o.version})
		name := viewkeeper.MakeName("", string(rune('a'+w.rng.IntN(4))))
		r := viewkeeper.Row{Name: name, Version: o.version, Epoch: o.epoch}
		if w.rng.IntN(3) > 0 {
			r.Definition = &viewkeeper.Definition{Name: name, Kind: viewkeeper.KindView, SQL: fmt.Sprintf("%d by %d", o.version, o.epoch), ID: o.version}
		}
		commit.Rows = slices.DeleteFunc(commit.Rows, func(in viewkeeper.Row) bool { return in.Name == name })
		commit.Rows = append(commit.Rows, r)
	}
	commit.Version = o.version
	w.write(commit)
	for _, r := range commit.Rows {
		o.todo = append(o.todo, codec.Row{Row: r})
	}
	w.rng.Shuffle(len(o.todo), func(i, j int) { o.todo[i], o.todo[j] = o.todo[j], o.todo[i] })
	return true
}

// compact keeps the last record of each key in a prefix that holds nothing which is
// not healed: the lag is longer than healing takes.
func (w *world) compact() {
	limit := w.rng.Int64N(w.next + 1)
	full := fold.New()
	for _, e := range w.all {
		full.Add(e.offset, e.record)
	}
	open := map[string]bool{}
	for _, r := range append(full.Heal(1), full.Completion(1)...) {
		open[r.Key()] = true
	}
	// Of a key that is open, nothing is taken.
	last := map[string]int64{}
	for _, e := range w.log {
		if e.offset < limit {
			last[e.record.Key()] = e.offset
		}
	}
	w.log = slices.DeleteFunc(slices.Clone(w.log), func(e logged) bool {
		key := e.record.Key()
		return e.offset < limit && !open[key] && last[key] != e.offset
	})
}

// picture says what a fold shows.
func picture(f *fold.Fold) string {
	var out []string
	for _, r := range f.Rows() {
		switch {
		case r.Live():
			out = append(out, fmt.Sprintf("%s v=%d %s", r.Name, r.Version, r.Definition.SQL))
		case r.Version > 0:
			out = append(out, fmt.Sprintf("%s v=%d drop", r.Name, r.Version))
		}
	}
	return fmt.Sprintf("version %d: %s", f.Version(), strings.Join(out, "; "))
}

func (w *world) String() string {
	var b strings.Builder
	left := map[int64]bool{}
	for _, e := range w.log {
		left[e.offset] = true
	}
	for _, e := range w.all {
		mark := "x"
		if left[e.offset] {
			mark = " "
		}
		fmt.Fprintf(&b, "%s %3d %T %s\n", mark, e.offset, e.record, e.record.Key())
	}
	fmt.Fprintln(&b, "copied to", w.copying.fold.Next(), slices.Sorted(maps.Keys(w.seen)))
	return b.String()
}

// small makes LevelDB write tables often.
func small() *opt.Options {
	o := options(false)
	o.WriteBuffer, o.CompactionTableSize = 4<<10, 4<<10
	return o
}
