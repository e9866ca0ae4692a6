package history

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

var here = Identity{Cluster: "c", Topic: "t"}

func open1(t *testing.T, dir string, id Identity) (*Index, string) {
	t.Helper()
	x, why, err := Open(dir, id)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = x.Close() })
	return x, why
}

func entry(offset int64, version viewkeeper.Version, epoch viewkeeper.Epoch, id string, names ...string) Entry {
	d := &viewkeeper.Decision{StatementID: id, Version: version, Epoch: epoch, Offset: int64(version) - 1, Message: fmt.Sprint("epoch ", epoch)}
	for _, n := range names {
		d.Changed = append(d.Changed, viewkeeper.Change{Name: viewkeeper.MakeName("", n), Action: viewkeeper.ActionCreated})
	}
	return Entry{Offset: offset, Decision: d}
}

func TestIndex(t *testing.T) {
	for _, dir := range []string{"", t.TempDir()} {
		x, why := open1(t, dir, here)
		if why != "" || x.Next() != 0 {
			t.Fatalf("%q, next %d", why, x.Next())
		}
		if err := x.Add([]Entry{
			entry(0, 1, 1, "a", "v"), entry(1, 2, 1, "b", "w"), {Offset: 2},
			entry(3, 1, 5, "a", "v"), entry(4, 1, 3, "a", "v"), entry(5, 3, 5, "a", "v", "w"),
		}); err != nil {
			t.Fatal(err)
		}
		if err := x.Add([]Entry{entry(6, 2, 2, "b", "w"), entry(0, 9, 9, "z")}); err != nil {
			t.Fatal(err)
		}
		if x.Next() != 7 {
			t.Errorf("next %d", x.Next())
		}
		for v, want := range map[viewkeeper.Version]string{1: "epoch 5", 2: "epoch 2", 3: "epoch 5"} {
			if d, ok, err := x.Get(v); err != nil || !ok || d.Message != want {
				t.Errorf("version %d: %+v, %v, %v", v, d, ok, err)
			}
		}
		if _, ok, err := x.Get(9); ok || err != nil {
			t.Error("an offset that was read before is read again")
		}
		if ds, err := x.ByID("a"); err != nil || len(ds) != 2 || ds[0].Version != 1 || ds[1].Version != 3 {
			t.Errorf("%+v, %v", ds, err)
		}
		if ds, err := x.After(1, viewkeeper.MakeName("", "w"), 10); err != nil || len(ds) != 2 {
			t.Errorf("%+v, %v", ds, err)
		}
		if ds, err := x.After(0, viewkeeper.Name{}, 2); err != nil || len(ds) != 2 || ds[1].Version != 2 {
			t.Errorf("%+v, %v", ds, err)
		}
		if n, last, err := x.Count(viewkeeper.MakeName("", "w")); n != 2 || last != 3 || err != nil {
			t.Errorf("%d, %d, %v", n, last, err)
		}
		if v, ok := x.First(); v != 1 || !ok {
			t.Errorf("first %d, %v", v, ok)
		}
		if dir == "" {
			continue
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		x, why = open1(t, dir, here)
		if n, _, _ := x.Count(viewkeeper.MakeName("", "w")); why != "" || x.Next() != 7 || n != 2 {
			t.Errorf("after a restart: %q, next %d, %d", why, x.Next(), n)
		}
	}
}

// A refusal that came before planning names no change; its text says what it is about.
func TestEarlyRefusalsAreInTheHistory(t *testing.T) {
	x, _ := open1(t, "", here)
	refused := entry(1, 2, 1, "b")
	refused.Decision.Verdict, refused.Decision.Code = viewkeeper.Refused, viewkeeper.CodeExists
	refused.Decision.SQL = "BEGIN; CREATE VIEW V AS SELECT 1; ALTER VIEW a RENAME TO s; COMMIT"
	junk := entry(2, 3, 1, "c")
	junk.Decision.SQL = "CREATE VIEW v AS"
	if err := x.Add([]Entry{entry(0, 1, 1, "a", "v"), refused, junk}); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]int{"v": 2, "a": 1, "s": 1, "t": 0} {
		n := viewkeeper.MakeName("", name)
		if ds, err := x.After(0, n, 10); err != nil || len(ds) != want {
			t.Errorf("%s: %+v, %v", name, ds, err)
		}
		if About(*refused.Decision, n) != (name != "t") {
			t.Errorf("%s: About", name)
		}
	}
}

// After topics adopt, offsets of the new definitions topic come again: the version is
// what a decision is found by, and for one version the highest epoch counts.
func TestOffsetsThatComeAgain(t *testing.T) {
	x, _ := open1(t, "", here)
	before, after := entry(0, 1, 1, "old:0", "v"), entry(1, 8, 2, "new:0", "w")
	after.Decision.Offset = 0
	late := entry(2, 8, 1, "new:0", "w")
	if err := x.Add([]Entry{before, after, late}); err != nil {
		t.Fatal(err)
	}
	for v, want := range map[viewkeeper.Version]string{1: "epoch 1", 8: "epoch 2"} {
		if d, ok, err := x.Get(v); err != nil || !ok || d.Message != want {
			t.Errorf("version %d: %+v, %v, %v", v, d, ok, err)
		}
	}
}

func TestOfAnotherTopicItBeginsAnew(t *testing.T) {
	dir := t.TempDir()
	x, _ := open1(t, dir, here)
	if err := x.Add([]Entry{entry(0, 1, 1, "a")}); err != nil {
		t.Fatal(err)
	}
	_ = x.Close()
	x, why := open1(t, dir, Identity{Cluster: "c", Topic: "other"})
	if _, any := x.First(); why == "" || x.Next() != 0 || any {
		t.Errorf("%q, next %d, %v", why, x.Next(), any)
	}
}

// Without Kafka nobody knows which topic the index should be of: it opens as it is.
func TestOpenKept(t *testing.T) {
	if x, err := OpenKept(""); x != nil || err != nil {
		t.Errorf("in memory: %v, %v", x, err)
	}
	dir := filepath.Join(t.TempDir(), "history")
	if x, err := OpenKept(dir); x != nil || err != nil {
		t.Errorf("none: %v, %v", x, err)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("it made one")
	}
	x, _ := open1(t, dir, here)
	if err := x.Add([]Entry{entry(0, 1, 1, "a", "v")}); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenKept(dir); err == nil || !strings.Contains(err.Error(), "in use by another node") {
		t.Errorf("in use: %v", err)
	}
	_ = x.Close()
	x, err := OpenKept(dir)
	if err != nil || x.Next() != 1 || x.Identity() != here {
		t.Fatalf("%+v, %v", x, err)
	}
	_ = x.Close()
	if err := os.WriteFile(filepath.Join(dir, "CURRENT"), []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if x, err := OpenKept(dir); x != nil || err != nil {
		t.Errorf("damaged: %v, %v", x, err)
	}
}

// Two nodes with one directory: the second says so, and the first's index stays.
func TestInUse(t *testing.T) {
	dir := t.TempDir()
	x, _ := open1(t, dir, here)
	if err := x.Add([]Entry{entry(0, 1, 1, "a", "v")}); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Open(dir, here); err == nil || !strings.Contains(err.Error(), "in use by another node") {
		t.Errorf("the second: %v", err)
	}
	if x.Next() != 1 {
		t.Errorf("the first is at %d", x.Next())
	}
	if err := x.Close(); err != nil {
		t.Error(err)
	}
}

// Whatever happens to the files, an index opens: as it was, or empty with a reason.
func TestDamage(t *testing.T) {
	for _, damage := range []func([]byte) []byte{
		func(b []byte) []byte { return nil },
		func(b []byte) []byte { return b[:len(b)/2] },
		func(b []byte) []byte {
			c := append([]byte(nil), b...)
			for i := range c {
				c[i] ^= 0x5a
			}
			return c
		},
	} {
		for _, which := range []string{"CURRENT", "MANIFEST-*", "*.log"} {
			dir := t.TempDir()
			x, _ := open1(t, dir, here)
			for i := range int64(50) {
				if err := x.Add([]Entry{entry(i, viewkeeper.Version(i+1), 1, "a", "v")}); err != nil {
					t.Fatal(err)
				}
			}
			_ = x.Close()
			files, err := filepath.Glob(filepath.Join(dir, which))
			if err != nil || len(files) == 0 {
				t.Fatal(which, files, err)
			}
			for _, f := range files {
				b, err := os.ReadFile(f)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(f, damage(b), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			x, why := open1(t, dir, here)
			if n, _, err := x.Count(viewkeeper.MakeName("", "v")); err != nil || int64(n) != x.Next() || why != "" && n != 0 {
				t.Errorf("%s: %d entries, next %d, why %q, %v", which, n, x.Next(), why, err)
			}
		}
	}
}
