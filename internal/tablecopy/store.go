package tablecopy

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"
)

// Dir is where a node with this data directory has its copy.
func Dir(dataDir string) string { return filepath.Join(dataDir, "table") }

// Old is where a copy is kept that [SetAside] has moved.
func Old(dir string) string { return dir + ".old" }

// Store is an open copy, for one writer. It is not safe for concurrent use.
type Store struct {
	dir  string
	db   *leveldb.DB
	stor storage.Storage

	// whole says that there is a meta record. sums are the checksums of all records
	// by offset, and sum is their sum.
	whole bool
	sums  map[int64]uint64
	sum   uint64
}

// Batch is a step from one offset to another.
type Batch struct {
	Put    []Record
	Delete []int64
}

// chunk is about how many bytes of records are written at once into a copy that is
// not one yet.
const chunk = 4 << 20

// options: what a torn end of a journal holds is left out and read from the topic
// again, and damage in the middle is found by the sums, so that LevelDB need not be
// strict about journals.
func options(readOnly bool) *opt.Options {
	return &opt.Options{
		Strict:         opt.StrictAll &^ (opt.StrictJournal | opt.StrictManifest),
		ReadOnly:       readOnly,
		ErrorIfMissing: readOnly,
	}
}

// Open opens the copy in dir and reads all of it, in the order of the offsets. It
// returns ErrNone when there is none, an *UnusableError when it must be thrown away,
// and an *InUseError when another process has it.
func Open(dir string) (*Store, Meta, []Record, error) {
	if !exists(dir) {
		return nil, Meta{}, nil, ErrNone
	}
	s, m, records, err := open(dir, func() (storage.Storage, error) { return storage.OpenFile(dir, false) }, options(false))
	if err != nil {
		return nil, Meta{}, nil, err
	}
	return s, m, records, nil
}

// Read reads the copy in dir and changes nothing. Its node must not run. The records
// are in the order of their offsets. Errors are those of [Open].
func Read(dir string) (Meta, []Record, error) {
	if !exists(dir) {
		return Meta{}, nil, ErrNone
	}
	s, m, records, err := open(dir, func() (storage.Storage, error) { return storage.OpenFile(dir, true) }, options(true))
	if err != nil {
		return Meta{}, nil, err
	}
	return m, records, s.Close()
}

// Create makes an empty copy in dir, in place of what is there. It is not a copy
// until the first Write has ended.
func Create(dir string) (*Store, error) {
	stor, err := lock(dir)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(stor.Close(), Remove(dir)); err != nil {
		return nil, err
	}
	return create(dir, func() (storage.Storage, error) { return lock(dir) }, options(false))
}

// lock makes sure that nobody else has the copy.
func lock(dir string) (storage.Storage, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the directory of the table's copy: %w", err)
	}
	stor, err := storage.OpenFile(dir, false)
	return stor, openError(dir, err)
}

func openError(dir string, err error) error {
	switch {
	case err == nil:
		return nil
	case isLocked(err):
		return &InUseError{dir, err}
	}
	return fmt.Errorf("opening the copy of the table in %s: %w", dir, err)
}

// Remove throws a closed copy away.
func Remove(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("removing the copy of the table: %w", err)
	}
	return nil
}

// SetAside moves a closed copy away and keeps it, in place of the one that was kept
// before: it may be all that is left of a table that was lost. It returns where.
func SetAside(dir string) (string, error) {
	to := Old(dir)
	if err := os.RemoveAll(to); err != nil {
		return "", fmt.Errorf("removing an older copy of the table: %w", err)
	}
	if err := os.Rename(dir, to); err != nil {
		return "", fmt.Errorf("setting a copy of the table aside: %w", err)
	}
	return to, nil
}

// exists reports whether dir has something of a copy in it.
func exists(dir string) bool {
	files, err := os.ReadDir(dir)
	if err != nil {
		return !errors.Is(err, os.ErrNotExist) // let Open say what it is
	}
	return slices.ContainsFunc(files, func(f os.DirEntry) bool { return f.Name() != "LOCK" && f.Name() != "LOG" && f.Name() != "LOG.old" })
}

// openStorage is how the files are reached; tests have their own.
type openStorage func() (storage.Storage, error)

func create(dir string, files openStorage, o *opt.Options) (*Store, error) {
	stor, err := files()
	if err != nil {
		return nil, err
	}
	db, err := leveldb.Open(stor, o)
	if err != nil {
		return nil, errors.Join(openError(dir, err), stor.Close())
	}
	return &Store{dir: dir, db: db, stor: stor, sums: map[int64]uint64{}}, nil
}

// open also takes a panic of the library for damage: it reads what anybody may have
// written over.
func open(dir string, files openStorage, o *opt.Options) (s *Store, m Meta, records []Record, err error) {
	stor, err := files()
	if err != nil {
		return nil, m, nil, openError(dir, err)
	}
	var db *leveldb.DB
	defer func() {
		if p := recover(); p != nil {
			err = &UnusableError{dir, fmt.Sprintf("it is damaged: reading it: %v", p)}
		}
		if err != nil {
			s = nil
			if db != nil {
				_ = db.Close()
			}
			_ = stor.Close()
		}
	}()
	db, err = leveldb.Open(stor, o)
	if err != nil {
		return nil, m, nil, unusable(dir, err)
	}
	s = &Store{dir: dir, db: db, stor: stor}
	m, records, err = s.load()
	return s, m, records, err
}

// unusable tells damage from what is wrong with the disk or the rights to it.
func unusable(dir string, err error) error {
	if damaged(err) {
		return &UnusableError{dir, "it is damaged: " + err.Error()}
	}
	return openError(dir, err)
}

// Read reads and checks all of it once more, as Open did.
func (s *Store) Read() (Meta, []Record, error) { return s.load() }

// load reads and checks everything.
func (s *Store) load() (Meta, []Record, error) {
	s.whole, s.sums, s.sum = false, map[int64]uint64{}, 0
	var m Meta
	var records []Record
	var count int
	var sum uint64
	it := s.db.NewIterator(nil, nil)
	defer it.Release()
	for it.Next() {
		if string(it.Key()) == metaKey {
			var err error
			if m, count, sum, err = decodeMeta(it.Value()); err != nil {
				return m, nil, &UnusableError{s.dir, err.Error()}
			}
			s.whole = true
			continue
		}
		r, rsum, err := decodeRecord(it.Key(), it.Value())
		if err != nil {
			return m, nil, &UnusableError{s.dir, err.Error()}
		}
		records = append(records, r)
		s.sums[r.Offset] = rsum
		s.sum += rsum
	}
	if err := it.Error(); err != nil {
		return m, nil, unusable(s.dir, err)
	}
	switch {
	case !s.whole:
		return m, nil, &UnusableError{s.dir, "it was never finished, or a part of it is missing"}
	case len(records) != count || s.sum != sum:
		return m, nil, &UnusableError{s.dir, fmt.Sprintf("it is damaged: it has %d records and should have %d, or they are not those that were written", len(records), count)}
	case count > 0 && records[count-1].Offset > m.Offset:
		return m, nil, &UnusableError{s.dir, fmt.Sprintf("it is damaged: it has a record at offset %d and should end at %d", records[count-1].Offset, m.Offset)}
	}
	return m, records, nil
}

// Write takes the copy one step further: all of the batch and what it then is of, or
// nothing. Records may be there already, and those to delete may not be. After an
// error nobody knows which it was, and the store is to be closed.
func (s *Store) Write(m Meta, b Batch) error {
	slices.SortFunc(b.Put, func(x, y Record) int { return cmp.Compare(x.Offset, y.Offset) })
	var batch leveldb.Batch
	for _, offset := range b.Delete {
		s.forget(offset)
		batch.Delete(recordKey(offset))
	}
	size := 0
	for _, r := range b.Put {
		value, sum := encodeRecord(r)
		s.forget(r.Offset)
		s.sums[r.Offset] = sum
		s.sum += sum
		batch.Put(recordKey(r.Offset), value)
		if size += len(value); size > chunk && !s.whole {
			if err := s.write(&batch); err != nil {
				return err
			}
			batch.Reset()
			size = 0
		}
	}
	raw, err := encodeMeta(m, len(s.sums), s.sum)
	if err != nil {
		return err
	}
	batch.Put([]byte(metaKey), raw)
	if err := s.write(&batch); err != nil {
		return err
	}
	s.whole = true
	return nil
}

func (s *Store) write(b *leveldb.Batch) error {
	if err := s.db.Write(b, nil); err != nil {
		return fmt.Errorf("writing the copy of the table in %s: %w", s.dir, err)
	}
	return nil
}

func (s *Store) forget(offset int64) {
	if sum, ok := s.sums[offset]; ok {
		delete(s.sums, offset)
		s.sum -= sum
	}
}

// Close closes the copy.
func (s *Store) Close() error {
	if err := errors.Join(s.db.Close(), s.stor.Close()); err != nil {
		return fmt.Errorf("closing the copy of the table in %s: %w", s.dir, err)
	}
	return nil
}
