package fold

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// The model plays owners over a log by the rules: they fence, complete, heal and
// commit; they stop and wake up at every step, several at once; compaction comes in
// between, as far as the lag lets it. Whoever then reads the compacted log, from the
// start or going on from any earlier point, must see what the whole log says.
func TestFollowersOfACompactedLogAgree(t *testing.T) {
	runs := 1500
	if testing.Short() {
		runs = 300
	}
	for seed := range uint64(runs) {
		m := &model{rng: rand.New(rand.NewPCG(seed, 3)), seen: map[viewkeeper.Version]string{}}
		if err := m.run(60 + m.rng.IntN(120)); err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, m)
		}
	}
}

type entry struct {
	offset int64
	record codec.Record
}

type model struct {
	rng    *rand.Rand
	all    []entry // every record ever written
	log    []entry // what compaction has left
	owners []*owner
	nonce  int
	nodes  []*node
	seen   map[viewkeeper.Version]string // what a node showed at a version
}

// node is a follower that reads a little at a time.
type node struct {
	f     *Fold
	began int64
}

// owner is an owner as far as it got: what it still has to write, and what it
// believes.
type owner struct {
	epoch   viewkeeper.Epoch
	fold    *Fold
	todo    []codec.Record
	version viewkeeper.Version
	ready   bool
}

func (m *model) run(steps int) error {
	m.takeOver()
	for range steps {
		switch n := m.rng.IntN(20); {
		case n == 0 && len(m.owners) < 3:
			m.takeOver()
		case n == 1:
			m.compact(m.rng.IntN(len(m.all) + 1))
		case n == 2:
			m.nodes = append(m.nodes, &node{New(), int64(len(m.all))})
		case n == 3 && len(m.owners) > 1: // one stops, whatever it still had to write
			i := m.rng.IntN(len(m.owners))
			m.owners = slices.Delete(m.owners, i, i+1)
		case n < 8 && len(m.nodes) > 0:
			if err := m.follow(m.nodes[m.rng.IntN(len(m.nodes))]); err != nil {
				return err
			}
		default:
			i := m.rng.IntN(len(m.owners))
			if !m.step(m.owners[i]) {
				m.owners = slices.Delete(m.owners, i, i+1)
				if len(m.owners) == 0 {
					m.takeOver()
				}
			}
		}
	}
	// The last owner ends what it began, so that everything spoiled is healed.
	m.owners = nil
	last := m.takeOver()
	for !last.ready || len(last.todo) > 0 {
		m.step(last)
	}
	// The lag has passed since, for everything that was written.
	m.keepLast(int64(m.rng.IntN(len(m.all) + 1)))
	return m.check()
}

func (m *model) write(r codec.Record) int64 {
	e := entry{int64(len(m.all)), r}
	m.all, m.log = append(m.all, e), append(m.log, e)
	return e.offset
}

// read brings a fold to the end of the log as it is now.
func (m *model) read(f *Fold) {
	for _, e := range m.log {
		f.Add(e.offset, e.record)
	}
	gap, _ := f.NeedEnd()
	f.EndIs(gap, int64(len(m.all)))
}

// follow lets a node read some records, and notes what it shows.
func (m *model) follow(n *node) error {
	if gap, need := n.f.NeedEnd(); need {
		n.f.EndIs(gap, int64(len(m.all)))
	}
	left := 1 + m.rng.IntN(8)
	for _, e := range m.log {
		if e.offset < n.f.Next() {
			continue
		}
		if left--; left < 0 {
			break
		}
		n.f.Add(e.offset, e.record)
		if n.f.Collecting() || n.f.Version() == 0 {
			continue
		}
		got := picture(n.f.Version(), n.f.Rows())
		if was, ok := m.seen[n.f.Version()]; ok && was != got {
			return fmt.Errorf("a node shows at offset %d\n%s\nand another showed\n%s", e.offset, got, was)
		}
		m.seen[n.f.Version()] = got
	}
	return nil
}

func (m *model) takeOver() *owner {
	o := &owner{fold: New()}
	m.read(o.fold) // goka's recovery
	m.nonce++
	fence := &codec.Fence{Nonce: fmt.Sprint(m.nonce), EpochBase: o.fold.EpochBase()}
	o.epoch = FenceEpoch(fence, m.write(fence))
	m.owners = append(m.owners, o)
	return o
}

// step lets one owner do one thing, and reports whether it still believes to be one.
func (m *model) step(o *owner) bool {
	if len(o.todo) > 0 {
		m.write(o.todo[0])
		o.todo = o.todo[1:]
		return true
	}
	if !o.ready || m.rng.IntN(4) == 0 {
		m.read(o.fold)
		if o.fold.Epoch() != o.epoch {
			return false
		}
		if !o.ready {
			o.ready = true
			o.version = o.fold.Version()
			o.todo = o.fold.Completion(o.epoch)
		}
		o.todo = append(o.todo, o.fold.Heal(o.epoch)...)
		return true
	}
	// The next batch needs the acks of the last, not its being read back.
	commit := &codec.Commit{Epoch: o.epoch}
	slots := map[int][]codec.ID{}
	for range 1 + m.rng.IntN(3) {
		o.version++
		id := codec.ID{ID: fmt.Sprintf("s%d", o.version), Version: o.version}
		commit.IDs = append(commit.IDs, id)
		slots[codec.Slot(o.version)] = append(slots[codec.Slot(o.version)], id)
		view := string(rune('a' + m.rng.IntN(4)))
		// What is judged depends on who judges: another epoch decides otherwise.
		r := makeRow(view, o.version, o.epoch, m.rng.IntN(3) == 0, fmt.Sprintf("%s%d-%d", view, o.version, o.epoch))
		commit.Rows = slices.DeleteFunc(commit.Rows, func(in viewkeeper.Row) bool { return in.Name == r.Name })
		commit.Rows = append(commit.Rows, r)
	}
	commit.Version = o.version
	m.write(commit)
	for _, r := range commit.Rows {
		o.todo = append(o.todo, codec.Row{Row: r})
	}
	m.rng.Shuffle(len(o.todo), func(i, j int) { o.todo[i], o.todo[j] = o.todo[j], o.todo[i] })
	return true
}

// compact compacts a prefix of the log. The lag is longer than healing takes: the
// prefix holds nothing spoiled that is not healed.
func (m *model) compact(upTo int) {
	full := New()
	for _, e := range m.all {
		full.Add(e.offset, e.record)
	}
	limit := int64(upTo)
	full.Heal(1)
	for key := range full.spoiled {
		limit = min(limit, firstSpoil(m.all, key))
	}
	m.keepLast(limit)
}

// keepLast keeps the last record of each key below an offset.
func (m *model) keepLast(limit int64) {
	last := map[string]int64{}
	for _, e := range m.log {
		if e.offset < limit {
			last[e.record.Key()] = e.offset
		}
	}
	m.log = slices.DeleteFunc(slices.Clone(m.log), func(e entry) bool {
		return e.offset < limit && last[e.record.Key()] != e.offset
	})
}

// firstSpoil gives the offset of the first record after the last good one of key.
func firstSpoil(log []entry, key string) int64 {
	var epoch viewkeeper.Epoch
	first := int64(0)
	for _, e := range log {
		if f, ok := e.record.(*codec.Fence); ok {
			epoch = max(epoch, FenceEpoch(f, e.offset))
		}
		if e.record.Key() == key && recordEpoch(e.record) >= epoch {
			first = e.offset + 1
		}
	}
	return first
}

func recordEpoch(r codec.Record) viewkeeper.Epoch {
	switch r := r.(type) {
	case codec.Row:
		return r.Epoch
	case *codec.Commit:
		return r.Epoch
	case *codec.IDs:
		return r.Epoch
	}
	return 0
}

// truth is the catalog at each version by the shortest way: the content of the
// commit rows that were not behind a higher fence when they were written, one after
// the other.
func (m *model) truth() (map[viewkeeper.Version]string, viewkeeper.Version, error) {
	var epoch viewkeeper.Epoch
	var version viewkeeper.Version
	rows := map[viewkeeper.Name]viewkeeper.Row{}
	at := map[viewkeeper.Version]string{0: picture(0, nil)}
	decided := viewkeeper.Version(0)
	for _, e := range m.all {
		switch r := e.record.(type) {
		case *codec.Fence:
			epoch = max(epoch, FenceEpoch(r, e.offset))
		case *codec.Commit:
			if r.Epoch < epoch || r.Version == version { // the second: healed
				continue
			}
			for _, id := range r.IDs {
				if decided++; id.Version != decided {
					return nil, 0, fmt.Errorf("offset %d: version %d is decided after %d", e.offset, id.Version, decided-1)
				}
			}
			if version = r.Version; version != decided {
				return nil, 0, fmt.Errorf("offset %d: version %d with %d decided", e.offset, version, decided)
			}
			for _, in := range r.Rows {
				rows[in.Name] = in
			}
			at[version] = picture(version, slices.Collect(maps.Values(rows)))
		}
	}
	return at, version, nil
}

// picture says what a catalog holds, without who wrote the copies.
func picture(version viewkeeper.Version, rows []viewkeeper.Row) string {
	var out []string
	for _, r := range rows {
		if r.Live() {
			out = append(out, fmt.Sprintf("%s v=%d %s", r.Name, r.Version, r.Definition.SQL))
		} else if r.Version > 0 {
			out = append(out, fmt.Sprintf("%s v=%d drop", r.Name, r.Version))
		}
	}
	slices.Sort(out)
	return fmt.Sprintf("version %d: %s", version, strings.Join(out, "; "))
}

func (m *model) check() error {
	truth, version, err := m.truth()
	if err != nil {
		return err
	}
	for v, got := range m.seen {
		if got != truth[v] {
			return fmt.Errorf("a node showed\n%s\nand the log says\n%s", got, truth[v])
		}
	}
	for _, n := range append(m.nodes, &node{f: New()}) {
		m.read(n.f)
		if got := picture(n.f.Version(), n.f.Rows()); got != truth[version] {
			return fmt.Errorf("a follower from %d sees\n%s\nand the log says\n%s", n.began, got, truth[version])
		}
		if n.f.Collecting() || n.f.Held() > 0 {
			return fmt.Errorf("a follower from %d collects: %v, holds %d", n.began, n.f.Collecting(), n.f.Held())
		}
	}
	return nil
}

func (m *model) String() string {
	var b strings.Builder
	left := map[int64]bool{}
	for _, e := range m.log {
		left[e.offset] = true
	}
	for _, e := range m.all {
		mark := " "
		if !left[e.offset] {
			mark = "x"
		}
		fmt.Fprintf(&b, "%s %3d %s e=%d", mark, e.offset, e.record.Key(), recordEpoch(e.record))
		switch r := e.record.(type) {
		case codec.Row:
			fmt.Fprint(&b, " ", rowText(r.Row))
		case *codec.Commit:
			fmt.Fprintf(&b, " v=%d", r.Version)
			for _, in := range r.Rows {
				fmt.Fprintf(&b, " [%s]", rowText(in))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}
