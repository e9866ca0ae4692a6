//go:build !race

// Where a write of its own fails, LevelDB closes a channel that its compaction may be
// sending on, and recovers from the panic: harmless, and a data race to the detector. So
// what makes its writes fail runs without it, see the Makefile.

package tablecopy

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/syndtr/goleveldb/leveldb/storage"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// disk is LevelDB's files with a fault in them: the call that changes something and
// has the number `at` fails, a write after half of it, and so do the `last` ones after
// it, or all.
type disk struct {
	storage.Storage
	dir string

	mu      sync.Mutex
	calls   int
	at      int
	last    int // -1: all
	written map[string]int64
	synced  map[string]int64
}

func (d *disk) fails() bool {
	failed, _ := d.call()
	return failed
}

// call counts a call, and says whether it fails, and whether the story has ended before it.
func (d *disk) call() (failed, ended bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.calls++
	failed = d.at >= 0 && d.calls > d.at && (d.last < 0 || d.calls <= d.at+1+d.last)
	return failed, failed && d.last < 0 && d.calls > d.at+1
}

// reached reports whether the call with the number n was made. LevelDB's own goroutines
// may still be at work on a copy that failed.
func (d *disk) reached(n int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.calls > n
}

func (d *disk) SetMeta(fd storage.FileDesc) error {
	if d.fails() {
		return syscall.ENOSPC
	}
	return d.Storage.SetMeta(fd)
}

func (d *disk) Create(fd storage.FileDesc) (storage.Writer, error) {
	if d.fails() {
		return nil, syscall.ENOSPC
	}
	w, err := d.Storage.Create(fd)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	d.written[fd.String()], d.synced[fd.String()] = 0, 0
	d.mu.Unlock()
	return &diskWriter{w, d, fd.String()}, nil
}

func (d *disk) Remove(fd storage.FileDesc) error {
	if d.fails() {
		return syscall.EIO
	}
	return d.Storage.Remove(fd)
}

func (d *disk) Rename(from, to storage.FileDesc) error {
	if d.fails() {
		return syscall.EIO
	}
	return d.Storage.Rename(from, to)
}

type diskWriter struct {
	storage.Writer
	d    *disk
	name string
}

func (w *diskWriter) Write(p []byte) (int, error) {
	failed, ended := w.d.call()
	if failed {
		if ended {
			return 0, syscall.ENOSPC // after the end nothing is written
		}
		p = p[:len(p)/2]
	}
	n, err := w.Writer.Write(p)
	w.d.mu.Lock()
	w.d.written[w.name] += int64(n)
	w.d.mu.Unlock()
	if failed {
		return n, syscall.ENOSPC
	}
	return n, err
}

func (w *diskWriter) Sync() error {
	if w.d.fails() {
		return syscall.EIO
	}
	w.d.mu.Lock()
	w.d.synced[w.name] = w.d.written[w.name]
	w.d.mu.Unlock()
	return nil // the bytes are in the file; how many a loss of power leaves is said in lose
}

// lose cuts each file somewhere behind what was synced.
func (d *disk) lose(t *testing.T, rng *rand.Rand) {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	for name, size := range d.written {
		path := filepath.Join(d.dir, name)
		if _, err := os.Stat(path); err != nil {
			continue
		}
		left := d.synced[name]
		left += rng.Int64N(size - left + 1)
		if err := os.Truncate(path, left); err != nil {
			t.Fatal(err)
		}
	}
}

// story is a table's records, and where a copy is written of them.
type story struct {
	steps [][]Record
}

func newStory() story {
	var s story
	offset := int64(0)
	for i := range 12 {
		var step []Record
		for range 1 + i%3 {
			key := fmt.Sprintf("main.v%d", offset%4)
			step = append(step, Record{offset, key, []byte(strings.Repeat(fmt.Sprint(offset, " "), 120+int(offset)%5*80))})
			offset++
		}
		s.steps = append(s.steps, step)
	}
	return s
}

func (s story) meta(i int) Meta {
	last := s.steps[i][len(s.steps[i])-1]
	m := at(last.Offset)
	m.Version = viewkeeper.Version(i + 1)
	return m
}

func (s story) add(sel *Selection, i int) {
	for _, r := range s.steps[i] {
		name, _ := codec.RowKey(r.Key)
		sel.Add(r.Offset, codec.Row{Row: viewkeeper.Row{Name: name, Version: viewkeeper.Version(r.Offset), Epoch: 1}}, r.Value, true)
	}
}

// states are what a copy holds after each step, by version.
func (s story) states() map[viewkeeper.Version]string {
	out := map[viewkeeper.Version]string{}
	last := map[string]Record{}
	for i, step := range s.steps {
		for _, r := range step {
			last[r.Key] = r
		}
		byOffset := map[int64]Record{}
		for _, r := range last {
			byOffset[r.Offset] = r
		}
		var records []Record
		for o := range int64(100) {
			if r, ok := byOffset[o]; ok {
				records = append(records, r)
			}
		}
		out[viewkeeper.Version(i+1)] = text(records)
	}
	return out
}

func (d *disk) files() openStorage {
	return func() (storage.Storage, error) {
		stor, err := lock(d.dir)
		if err != nil {
			return nil, err
		}
		d.Storage = stor
		return d, nil
	}
}

func newDisk(t *testing.T, at, last int) *disk {
	return &disk{dir: Dir(t.TempDir()), at: at, last: last, written: map[string]int64{}, synced: map[string]int64{}}
}

// The process or the machine stops at the first, the second, … thing that is written:
// the copy is then as it was after one of the steps, after kill -9 not before the last
// that had ended; or there is none.
func TestStoppedAtEachWrite(t *testing.T) {
	story := newStory()
	states := story.states()
	outcomes := map[string]int{}
	for _, power := range []bool{false, true} {
		for n := 0; ; n++ {
			d := newDisk(t, n, -1)
			rng := rand.New(rand.NewPCG(uint64(n), 7))
			done := viewkeeper.Version(0)
			s, err := create(d.dir, d.files(), small())
			if err == nil {
				sel := NewSelection()
				for i := range story.steps {
					story.add(sel, i)
					if err = s.Write(story.meta(i), sel.Take()); err != nil {
						break
					}
					sel.Done(true)
					done = viewkeeper.Version(i + 1)
				}
				_ = s.Close()
			}
			if power {
				d.lose(t, rng)
			}
			s, m, records, err := Open(d.dir)
			var unusable *UnusableError
			switch {
			case err == nil:
				outcomes["used"]++
				if text(records) != states[m.Version] || !power && m.Version < done {
					t.Errorf("stopped at %d, power lost %v: version %d with %s, want %s; %d had ended", n, power, m.Version, text(records), states[m.Version], done)
				}
				_ = s.Close()
			case errors.As(err, &unusable) || err == ErrNone:
				outcomes["none"]++
				if !power && done > 0 {
					t.Errorf("stopped at %d: %v, and step %d had ended", n, err, done)
				}
			default:
				t.Errorf("stopped at %d, power lost %v: %v", n, power, err)
			}
			if !d.reached(n) { // it came to its end
				break
			}
		}
	}
	t.Log(maps.Collect(maps.All(outcomes)))
	if outcomes["used"] == 0 || outcomes["none"] == 0 {
		t.Error("the test reaches one of the outcomes only")
	}
}

// The disk is full from the first, the second, … write on, for a while. Whoever closes
// the copy then and goes on from what is on disk comes to the same end.
func TestFullAtEachWrite(t *testing.T) {
	story := newStory()
	states := story.states()
	for _, last := range []int{0, 2} {
		for n := 0; ; n++ {
			d := newDisk(t, n, last)
			sel := NewSelection()
			var s *Store
			var good, tried Meta
			for i := range story.steps {
				story.add(sel, i)
				for attempt := 0; ; attempt++ {
					if attempt > 20 {
						t.Fatalf("full at %d for %d: it does not end", n, last)
					}
					var err error
					switch {
					case s != nil:
					case good.Version == 0:
						if err := Remove(d.dir); err != nil {
							t.Fatal(err)
						}
						s, err = create(d.dir, d.files(), small())
					default:
						var m Meta
						s, m, _, err = open(d.dir, d.files(), small())
						if errors.As(err, new(*UnusableError)) || err == nil && m != good && m != tried {
							t.Fatalf("full at %d for %d: it is at %+v, was at %+v and went to %+v: %v", n, last, m, good, tried, err)
						}
						if err == nil {
							good = m
						}
					}
					if err != nil {
						s = nil
						continue
					}
					tried = story.meta(i)
					err = s.Write(tried, sel.Take())
					sel.Done(err == nil)
					if err == nil {
						good = tried
						break
					}
					_ = s.Close()
					s = nil
				}
			}
			if err := s.Close(); err != nil && !d.reached(n) {
				t.Fatal(err)
			}
			m, records, err := Read(d.dir)
			if err != nil || text(records) != states[m.Version] || int(m.Version) != len(story.steps) {
				t.Errorf("full at %d for %d: version %d with %s, %v", n, last, m.Version, text(records), err)
			}
			if !d.reached(n) {
				break
			}
		}
	}
}
