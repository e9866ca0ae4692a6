package tablecopy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/syndtr/goleveldb/leveldb"
)

var here = Meta{Cluster: "cluster", Topic: "topic", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

func at(offset int64) Meta {
	m := here
	m.Offset = offset
	return m
}

func record(offset int64, key, value string) Record {
	return Record{offset, key, []byte(value)}
}

// made is a copy in a new directory, closed.
func made(t *testing.T, steps ...Batch) string {
	t.Helper()
	dir := Dir(t.TempDir())
	s, err := Create(dir)
	if err != nil {
		t.Fatal(err)
	}
	for i, b := range steps {
		if err := s.Write(at(int64(i)*10+9), b); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

func text(records []Record) string {
	var b strings.Builder
	for _, r := range records {
		value := string(r.Value)
		if r.Value == nil {
			value = "nothing"
		}
		fmt.Fprintf(&b, "%d %s=%s; ", r.Offset, r.Key, value)
	}
	return b.String()
}

func TestACopyIsReadAsItWasWritten(t *testing.T) {
	dir := made(t,
		Batch{Put: []Record{record(3, "b", ""), record(1, "a", "x"), {Offset: 2, Key: "c"}}},
		Batch{Put: []Record{record(11, "a", "y"), record(3, "b", "again")}, Delete: []int64{1, 7}},
	)
	m, records, err := Read(dir)
	if err != nil || m != at(19) {
		t.Fatalf("%+v, %v", m, err)
	}
	if got := text(records); got != "2 c=nothing; 3 b=again; 11 a=y; " {
		t.Error(got)
	}
	s, _, again, err := Open(dir)
	if err != nil || text(again) != text(records) {
		t.Fatalf("%s, %v", text(again), err)
	}
	if err := errors.Join(s.Write(at(29), Batch{Delete: []int64{3}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	if m, records, err = Read(dir); err != nil || m.Offset != 29 || text(records) != "2 c=nothing; 11 a=y; " {
		t.Errorf("%+v, %s, %v", m, text(records), err)
	}
}

func TestThereIsNone(t *testing.T) {
	dir := Dir(t.TempDir())
	if _, _, err := Read(dir); err != ErrNone {
		t.Error(err)
	}
	if _, _, _, err := Open(dir); err != ErrNone {
		t.Error(err)
	}
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, _, _, err := Open(dir); err != ErrNone {
		t.Error(err)
	}
}

// A copy that is larger than what is written at once is none until its last part.
func TestALargeFirstStepIsACopyAtItsEnd(t *testing.T) {
	var b Batch
	for i := range int64(9) {
		b.Put = append(b.Put, Record{i, fmt.Sprint("key", i), bytes.Repeat([]byte{byte(i)}, chunk/2)})
	}
	dir := made(t, b)
	if m, records, err := Read(dir); err != nil || m.Offset != 9 || len(records) != 9 {
		t.Errorf("%+v, %d, %v", m, len(records), err)
	}
}

func TestInUse(t *testing.T) {
	dir := made(t, Batch{Put: []Record{record(1, "a", "x")}})
	s, _, _, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var inUse *InUseError
	for what, open := range map[string]func() error{
		"open":   func() error { _, _, _, err := Open(dir); return err },
		"create": func() error { _, err := Create(dir); return err },
		"read":   func() error { _, _, err := Read(dir); return err },
	} {
		if err := open(); !errors.As(err, &inUse) || !strings.Contains(err.Error(), "--data-dir") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := errors.Join(s.Write(at(19), Batch{}), s.Close()); err != nil {
		t.Error(err)
	}
	if m, records, err := Read(dir); err != nil || m.Offset != 19 || len(records) != 1 {
		t.Errorf("%+v, %v, %v", m, records, err)
	}
}

func TestSetAside(t *testing.T) {
	dir := made(t, Batch{Put: []Record{record(1, "a", "x")}})
	for range 2 {
		to, err := SetAside(dir)
		if err != nil || to != Old(dir) {
			t.Fatal(to, err)
		}
		if _, records, err := Read(to); err != nil || len(records) != 1 {
			t.Errorf("%v, %v", records, err)
		}
		if _, _, err := Read(dir); err != ErrNone {
			t.Error(err)
		}
		if err := os.Rename(made(t, Batch{Put: []Record{record(2, "b", "y")}}), dir); err != nil {
			t.Fatal(err)
		}
	}
}

// change alters a copy's database behind its back.
func change(t *testing.T, dir string, with func(*leveldb.DB) error) {
	t.Helper()
	db, err := leveldb.OpenFile(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(with(db), db.Close()); err != nil {
		t.Fatal(err)
	}
}

// A database that is well formed and holds something else than was written.
func TestWhatDoesNotAddUpIsNotUsed(t *testing.T) {
	meta := func(with func(string) string) func(*leveldb.DB) error {
		return func(db *leveldb.DB) error {
			raw, err := db.Get([]byte(metaKey), nil)
			if err != nil {
				return err
			}
			body := []byte(with(string(raw[:len(raw)-sumSize])))
			return db.Put([]byte(metaKey), appendSum(body), nil)
		}
	}
	older, _ := encodeRecord(record(2, "b", "older"))
	for why, with := range map[string]func(*leveldb.DB) error{
		"a lost record":   func(db *leveldb.DB) error { return db.Delete(recordKey(2), nil) },
		"an older record": func(db *leveldb.DB) error { return db.Put(recordKey(2), older, nil) },
		"one that is back": func(db *leveldb.DB) error {
			v, _ := encodeRecord(record(1, "a", "x"))
			return db.Put(recordKey(1), v, nil)
		},
		"a moved record": func(db *leveldb.DB) error {
			v, err := db.Get(recordKey(2), nil)
			return errors.Join(err, db.Put(recordKey(3), v, nil), db.Delete(recordKey(2), nil))
		},
		"a short record":    func(db *leveldb.DB) error { return db.Put(recordKey(2), []byte("x"), nil) },
		"another key":       func(db *leveldb.DB) error { return db.Put([]byte("x"), nil, nil) },
		"no meta record":    func(db *leveldb.DB) error { return db.Delete([]byte(metaKey), nil) },
		"a short meta":      func(db *leveldb.DB) error { return db.Put([]byte(metaKey), []byte("{}"), nil) },
		"a newer format":    meta(func(s string) string { return strings.Replace(s, `"format":1`, `"format":2`, 1) }),
		"a newer codec":     meta(func(s string) string { return strings.Replace(s, `"codec":1`, `"codec":2`, 1) }),
		"another count":     meta(func(s string) string { return strings.Replace(s, `"count":2`, `"count":1`, 1) }),
		"an offset too low": meta(func(s string) string { return strings.Replace(s, `"offset":19`, `"offset":1`, 1) }),
		"no JSON":           meta(func(s string) string { return s[1:] }),
	} {
		dir := made(t,
			Batch{Put: []Record{record(1, "a", "x"), record(2, "b", "y")}},
			Batch{Put: []Record{record(11, "a", "z")}, Delete: []int64{1}})
		change(t, dir, with)
		var unusable *UnusableError
		if _, _, err := Read(dir); !errors.As(err, &unusable) {
			t.Errorf("%s: read: %v", why, err)
		}
		if _, _, _, err := Open(dir); !errors.As(err, &unusable) {
			t.Errorf("%s: open: %v", why, err)
		} else {
			t.Log(why, "-", err)
		}
		// What is thrown away makes room for a new one.
		s, err := Create(dir)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(s.Write(at(9), Batch{Put: []Record{record(5, "c", "new")}}), s.Close()); err != nil {
			t.Fatal(err)
		}
		if _, records, err := Read(dir); err != nil || text(records) != "5 c=new; " {
			t.Errorf("%s: %s, %v", why, text(records), err)
		}
	}
}

// Whatever byte of whatever file is another one, whatever file is cut or gone: the
// copy is as it was at one of its steps, or not used.
func TestAnyDamage(t *testing.T) {
	var steps []Batch
	states := map[int64]string{}
	for i := range int64(8) {
		b := Batch{Put: []Record{record(i*10+1, fmt.Sprint("key", i%3), strings.Repeat("value ", 20)), record(i*10+2, "head", fmt.Sprint(i))}}
		if i > 0 {
			b.Delete = []int64{(i-1)*10 + 2}
		}
		steps = append(steps, b)
	}
	whole := made(t, steps...)
	// Opened once more, so that there are tables besides the journal.
	s, _, _, err := Open(whole)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Write(at(89), Batch{Put: []Record{record(82, "head", "8")}, Delete: []int64{72}}), s.Close()); err != nil {
		t.Fatal(err)
	}
	_, last, err := Read(whole)
	if err != nil {
		t.Fatal(err)
	}
	states[89] = text(last)
	for i := range steps {
		_, records, err := Read(made(t, steps[:i+1]...))
		if err != nil {
			t.Fatal(err)
		}
		states[int64(i)*10+9] = text(records)
	}

	files := map[string][]byte{}
	err = filepath.WalkDir(whole, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && !strings.HasPrefix(d.Name(), "LO") {
			files[d.Name()], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil || len(files) < 4 {
		t.Fatal(len(files), err)
	}
	used, thrown := 0, 0
	try := func(what, name string, content []byte) {
		dir := Dir(t.TempDir())
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		for other, was := range files {
			if other == name {
				was = content
			}
			if was == nil {
				continue
			}
			if err := os.WriteFile(filepath.Join(dir, other), was, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		s, m, records, err := Open(dir)
		var unusable *UnusableError
		switch {
		case err == nil:
			used++
			if want, ok := states[m.Offset]; !ok || text(records) != want || m != at(m.Offset) {
				t.Errorf("%s: offset %d has %s, want %s", what, m.Offset, text(records), want)
			}
			if err := s.Close(); err != nil {
				t.Errorf("%s: %v", what, err)
			}
		case errors.As(err, &unusable):
			thrown++
		default:
			t.Errorf("%s: %v", what, err)
		}
	}
	step := 5
	if testing.Short() {
		step = 17
	}
	for name, was := range files {
		try(name+" is gone", name, nil)
		for i := 0; i < len(was); i += step {
			flipped := slices.Clone(was)
			flipped[i] ^= 1 << (i % 8)
			try(fmt.Sprintf("%s: byte %d", name, i), name, flipped)
			if i%3 == 0 {
				try(fmt.Sprintf("%s: cut at %d", name, i), name, slices.Clip(was[:i:i]))
			}
		}
	}
	t.Logf("%d used, %d thrown away", used, thrown)
	if used == 0 || thrown == 0 {
		t.Error("the test reaches one of the outcomes only")
	}
}
