package plancache

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"testing"
)

func some(n int) iter.Seq2[[keySize]byte, []byte] {
	return func(yield func([keySize]byte, []byte) bool) {
		for i := range n {
			if !yield(sha256.Sum256(fmt.Append(nil, i)), bytes.Repeat([]byte{byte('a' + i)}, i)) {
				return
			}
		}
	}
}

// holds checks that a cache has no answer but those of some(n), and gives how many.
func holds(t *testing.T, c *Cache, n int) int {
	t.Helper()
	found := 0
	for key, answer := range some(n) {
		if got, ok := c.answers[key]; ok {
			found++
			if got != string(answer) || c.Lookup(key) != string(answer) {
				t.Fatalf("the answer %q came back as %q", answer, got)
			}
		}
	}
	if found != c.Len() {
		t.Fatalf("%d of %d answers are those that were written", found, c.Len())
	}
	return found
}

func TestWriteAndRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sub", "plans")
	if c, err := Read(path); err != nil || c.Len() != 0 || c.Lookup([keySize]byte{}) != "" {
		t.Fatalf("no file: %v, %v", c, err)
	}
	for _, n := range []int{7, 12, 0} { // in place of one another
		if err := Write(path, some(n)); err != nil {
			t.Fatal(err)
		}
		c, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		if got := holds(t, c, 12); got != n {
			t.Errorf("%d answers of %d", got, n)
		}
	}
	if left, _ := filepath.Glob(path + "*"); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
	if err := Write(filepath.Join(path, "below a file"), some(1)); err == nil {
		t.Error("a file was written below a file")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if c, err := Read(path); err == nil || c.Len() != 0 {
		t.Errorf("a folder was read: %d answers, %v", c.Len(), err)
	}
}

// TestDamage changes each byte of a file, and ends it at each: what is read then is
// what was written, or nothing.
func TestDamage(t *testing.T) {
	const n = 5
	path := filepath.Join(t.TempDir(), "plans")
	if err := Write(path, some(n)); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i := range whole {
		for _, flip := range []byte{1, 0x80, 0xff} {
			raw := bytes.Clone(whole)
			raw[i] ^= flip
			var c Cache
			c.read(raw)
			if got := holds(t, &c, n); got == n {
				t.Fatalf("byte %d was changed, and nobody noticed", i)
			}
		}
		var c Cache
		c.read(bytes.Clone(whole[:i]))
		if got := holds(t, &c, n); got == n {
			t.Fatalf("all is there in %d bytes of %d", i, len(whole))
		}
	}
}
