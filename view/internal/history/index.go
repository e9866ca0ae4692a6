package history

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/syndtr/goleveldb/leveldb"
	"github.com/syndtr/goleveldb/leveldb/iterator"
	"github.com/syndtr/goleveldb/leveldb/opt"
	"github.com/syndtr/goleveldb/leveldb/storage"
	"github.com/syndtr/goleveldb/leveldb/util"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// format is raised when the keys or values change; an index of another one is
// thrown away.
const format = 2

// Identity is what an index is a copy of.
type Identity struct {
	Cluster string `json:"cluster"`
	Topic   string `json:"topic"` // the decisions topic's id
}

type meta struct {
	Format int `json:"format"`
	Identity
	// Next is the offset of the first record that is not in the index.
	Next int64 `json:"next"`
}

// Index is an open index. It is safe for one writer and many readers.
type Index struct {
	db   *leveldb.DB
	meta meta // the writer's
}

// Entry is one record of the decisions topic. A record that is no decision has a
// nil Decision: it only moves the offset on.
type Entry struct {
	Offset   int64
	Decision *viewkeeper.Decision
}

// Open opens the index in dir, or one in memory when dir is "". One that is not of
// this topic, or damaged, is emptied; why says so, and is "" otherwise.
func Open(dir string, id Identity) (x *Index, why string, err error) {
	if dir == "" {
		db, err := leveldb.Open(storage.NewMemStorage(), nil)
		if err != nil {
			return nil, "", fmt.Errorf("opening the history index in memory: %w", err)
		}
		return &Index{db, meta{Format: format, Identity: id}}, "", nil
	}
	x, why, err = open(dir, id)
	if why == "" || err != nil {
		return x, why, err
	}
	if err := Remove(dir); err != nil {
		return nil, why, err
	}
	x, again, err := open(dir, id)
	if err == nil && again != "" {
		err = errors.New(again)
	}
	return x, why, err
}

// OpenKept opens the index in dir as it is, whatever topic it is a copy of; nil when
// there is none that can be used. It is for when nobody can tell which topic it
// should be of.
func OpenKept(dir string) (*Index, error) {
	if _, err := os.Stat(filepath.Join(dir, "CURRENT")); dir == "" || err != nil {
		return nil, nil
	}
	x, why, err := open(dir, Identity{})
	if why != "" {
		return nil, nil
	}
	return x, err
}

// Remove throws a closed index away; "" is nothing.
func Remove(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("emptying the history index: %w", err)
	}
	return nil
}

// open opens the index of a topic; of any, if id is zero.
func open(dir string, id Identity) (*Index, string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", fmt.Errorf("making the directory of the history index: %w", err)
	}
	db, err := leveldb.OpenFile(dir, &opt.Options{Strict: opt.StrictAll, ErrorIfExist: false})
	if err != nil {
		if Damaged(err) {
			return nil, "it is damaged: " + err.Error(), nil
		}
		if errors.Is(err, syscall.EAGAIN) || errors.Is(err, storage.ErrLocked) {
			return nil, "", fmt.Errorf("the history index in %s is in use by another node; give each a directory of its own (--data-dir): %w", dir, err)
		}
		return nil, "", fmt.Errorf("opening the history index in %s: %w", dir, err)
	}
	x := &Index{db: db, meta: meta{Format: format, Identity: id}}
	raw, err := db.Get([]byte{'m'}, nil)
	switch {
	case errors.Is(err, leveldb.ErrNotFound):
		empty := !x.any()
		if empty {
			return x, "", nil
		}
		return nil, "it does not say what it is a copy of", db.Close()
	case err != nil:
		return nil, "it is damaged: " + err.Error(), db.Close()
	}
	var m meta
	if err := json.Unmarshal(raw, &m); err != nil || m.Format != format || m.Identity != id && id != (Identity{}) || m.Next < 0 {
		return nil, "it is a copy of another topic or of another format", db.Close()
	}
	x.meta = m
	return x, "", nil
}

func (x *Index) any() bool {
	it := x.db.NewIterator(nil, nil)
	defer it.Release()
	return it.Next()
}

// Damaged reports whether an error of the index says that it can't be read, so
// that it must be thrown away.
func Damaged(err error) bool {
	if err == nil || errors.Is(err, leveldb.ErrClosed) || errors.Is(err, leveldb.ErrNotFound) {
		return false
	}
	var syntax *json.SyntaxError
	return leveldbCorrupted(err) || errors.As(err, &syntax) || errors.Is(err, errShort)
}

var errShort = errors.New("the history index has a value that is too short")

// Close closes the index; readers get an error afterwards.
func (x *Index) Close() error { return x.db.Close() }

// Next is the offset of the decisions topic to go on from. Only the writer may ask.
func (x *Index) Next() int64 { return x.meta.Next }

// Add writes entries, in the order of their offsets, as one batch.
func (x *Index) Add(entries []Entry) error {
	var batch leveldb.Batch
	epochs := map[viewkeeper.Version]viewkeeper.Epoch{} // of this batch
	next := x.meta.Next
	for _, e := range entries {
		if e.Offset < x.meta.Next {
			continue
		}
		next = e.Offset + 1
		d := e.Decision
		if d == nil {
			continue
		}
		have, ok := epochs[d.Version]
		if !ok {
			raw, err := x.db.Get(decisionKey(d.Version), nil)
			switch {
			case err == nil && len(raw) < 8:
				return errShort
			case err == nil:
				have, ok = viewkeeper.Epoch(binary.BigEndian.Uint64(raw)), true
			case !errors.Is(err, leveldb.ErrNotFound):
				return fmt.Errorf("reading the history index: %w", err)
			}
		}
		if ok && have > d.Epoch {
			continue
		}
		epochs[d.Version] = d.Epoch
		body, err := json.Marshal(d)
		if err != nil {
			return fmt.Errorf("a decision can't be written to the history index: %w", err)
		}
		batch.Put(decisionKey(d.Version), append(binary.BigEndian.AppendUint64(nil, uint64(d.Epoch)), body...))
		batch.Put(refKey('i', d.StatementID, d.Version), nil)
		for _, name := range Names(*d) {
			batch.Put(refKey('n', name.String(), d.Version), nil)
		}
	}
	m := x.meta
	m.Next = next
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	batch.Put([]byte{'m'}, raw)
	if err := x.db.Write(&batch, nil); err != nil {
		return fmt.Errorf("writing the history index: %w", err)
	}
	x.meta = m
	return nil
}

// Names gives the definitions whose history a decision belongs to: those that it
// changed, or would have changed, themselves, and those that the statement is about,
// since one that was refused early (the name exists) says of no change. A definition
// whose output merely changed with another's is not among them.
func Names(d viewkeeper.Decision) []viewkeeper.Name {
	var names []viewkeeper.Name
	for _, c := range d.Changed {
		if c.Action == viewkeeper.ActionOutputChanged {
			continue
		}
		names = append(names, c.Name)
		if c.RenamedTo != nil {
			names = append(names, *c.RenamedTo)
		}
	}
	names = append(names, d.Dropped...)
	names = append(names, ddl.Targets(d.SQL)...)
	slices.SortFunc(names, viewkeeper.Name.Compare)
	return slices.Compact(names)
}

// About reports whether a decision belongs to a name's history: whether Names has it.
// It is for many decisions, of which it parses only those that can be about the name.
func About(d viewkeeper.Decision, name viewkeeper.Name) bool {
	is := func(n viewkeeper.Name) bool { return n == name }
	for _, c := range d.Changed {
		if c.Action != viewkeeper.ActionOutputChanged && (is(c.Name) || c.RenamedTo != nil && is(*c.RenamedTo)) {
			return true
		}
	}
	if slices.ContainsFunc(d.Dropped, is) {
		return true
	}
	// A name with a quote in it is written in another way than it is spelled.
	if !strings.Contains(name.View, `"`) && !strings.Contains(strings.ToLower(d.SQL), name.View) {
		return false
	}
	return slices.ContainsFunc(ddl.Targets(d.SQL), is)
}

// Get gives the decision of a version.
func (x *Index) Get(v viewkeeper.Version) (d viewkeeper.Decision, ok bool, err error) {
	raw, err := x.db.Get(decisionKey(v), nil)
	if errors.Is(err, leveldb.ErrNotFound) {
		return d, false, nil
	}
	if err != nil {
		return d, false, fmt.Errorf("reading the history index: %w", err)
	}
	d, err = decode(raw)
	return d, err == nil, err
}

func decode(raw []byte) (d viewkeeper.Decision, err error) {
	if len(raw) < 8 {
		return d, errShort
	}
	if err := json.Unmarshal(raw[8:], &d); err != nil {
		return d, fmt.Errorf("reading the history index: %w", err)
	}
	d.Normalize()
	return d, nil
}

// First is the lowest version that has a decision.
func (x *Index) First() (v viewkeeper.Version, ok bool) {
	it := x.db.NewIterator(util.BytesPrefix([]byte{'d'}), nil)
	defer it.Release()
	if !it.Next() {
		return 0, false
	}
	return versionOf(it.Key()), true
}

// After gives up to limit decisions above a version in order; of one name only
// when name is not zero.
func (x *Index) After(v viewkeeper.Version, name viewkeeper.Name, limit int) ([]viewkeeper.Decision, error) {
	prefix := []byte{'d'}
	if !name.IsZero() {
		prefix = refPrefix('n', name.String())
	}
	it := x.db.NewIterator(util.BytesPrefix(prefix), nil)
	defer it.Release()
	var out []viewkeeper.Decision
	start := binary.BigEndian.AppendUint64(bytes.Clone(prefix), uint64(v)+1)
	for ok := it.Seek(start); ok && len(out) < limit; ok = it.Next() {
		if name.IsZero() {
			d, err := decode(it.Value())
			if err != nil {
				return nil, err
			}
			out = append(out, d)
			continue
		}
		d, found, err := x.Get(versionOf(it.Key()))
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, d)
		}
	}
	return out, wrap(it)
}

// Count is the number of decisions in a name's history.
func (x *Index) Count(name viewkeeper.Name) (n int, last viewkeeper.Version, err error) {
	it := x.db.NewIterator(util.BytesPrefix(refPrefix('n', name.String())), nil)
	defer it.Release()
	for it.Next() {
		n++
		last = versionOf(it.Key())
	}
	return n, last, wrap(it)
}

// ByID gives the decisions under a statement id, oldest first. There is more than
// one where the id came again with another text, or after it was forgotten.
func (x *Index) ByID(id string) ([]viewkeeper.Decision, error) {
	it := x.db.NewIterator(util.BytesPrefix(refPrefix('i', id)), nil)
	defer it.Release()
	var out []viewkeeper.Decision
	for it.Next() {
		d, found, err := x.Get(versionOf(it.Key()))
		if err != nil {
			return nil, err
		}
		// A key of the id "a\x00…" has the prefix of the id "a".
		if found && d.StatementID == id {
			out = append(out, d)
		}
	}
	return out, wrap(it)
}

func wrap(it iterator.Iterator) error {
	if err := it.Error(); err != nil {
		return fmt.Errorf("reading the history index: %w", err)
	}
	return nil
}

func decisionKey(v viewkeeper.Version) []byte {
	return binary.BigEndian.AppendUint64([]byte{'d'}, uint64(v))
}

func refPrefix(kind byte, text string) []byte {
	k := append([]byte{kind}, text...)
	return append(k, 0)
}

func refKey(kind byte, text string, v viewkeeper.Version) []byte {
	return binary.BigEndian.AppendUint64(refPrefix(kind, text), uint64(v))
}

func versionOf(key []byte) viewkeeper.Version {
	if len(key) < 8 {
		return 0
	}
	return viewkeeper.Version(binary.BigEndian.Uint64(key[len(key)-8:]))
}

// Identity is what the index is a copy of.
func (x *Index) Identity() Identity { return x.meta.Identity }
