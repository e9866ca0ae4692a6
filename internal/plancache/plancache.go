// Package plancache keeps on disk what a planner answered, so that a node that starts
// need not ask again what it asked before (see registry's kept.go: an answer lies
// under the digest of all that it follows from).
//
// It is a cache and one file, which is written as a whole: what is lost of it is
// planned again. So nothing is synced, a file that ends too early counts as far as it
// goes, and a record that is not as it was written ends it: lengths behind one
// can't be trusted.
//
//	file      magic "vkplans1" | record ...
//	record    key, 32 bytes | length, 4 bytes, big endian | sum, 8 bytes, big endian | answer
//	sum       xxhash64 of key, length and answer
package plancache

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"github.com/cespare/xxhash/v2"
)

const (
	magic      = "vkplans1"
	keySize    = 32
	headerSize = keySize + 4 + 8
	// maxFile is more than any catalog needs; a larger file is none of ours.
	maxFile = 1 << 30
)

// Path is where a node with this data directory has its file.
func Path(dataDir string) string { return filepath.Join(dataDir, "plans") }

// Cache is what was read of a file. It does not change.
type Cache struct {
	answers map[[keySize]byte]string
}

// Read reads a file, as far as it is whole; one that is missing has no answers. The
// error is the disk's; there is a cache all the same, which is empty.
func Read(path string) (*Cache, error) {
	c := &Cache{}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return c, nil
	case err == nil && info.Size() > maxFile:
		return c, nil
	}
	var raw []byte
	if err == nil {
		raw, err = os.ReadFile(path)
	}
	if err != nil {
		return c, fmt.Errorf("reading the plans that were kept: %w", err)
	}
	c.read(raw)
	return c, nil
}

// read takes raw, which nobody may change any more.
func (c *Cache) read(raw []byte) {
	c.answers = map[[keySize]byte]string{}
	text, ok := strings.CutPrefix(unsafe.String(unsafe.SliceData(raw), len(raw)), magic)
	for ok && len(text) >= headerSize {
		var key [keySize]byte
		copy(key[:], text)
		length := binary.BigEndian.Uint32([]byte(text[keySize:]))
		sum := binary.BigEndian.Uint64([]byte(text[keySize+4:]))
		if int64(length) > int64(len(text)-headerSize) {
			return
		}
		answer := text[headerSize:][:length]
		if sum != checksum(key, answer) {
			return
		}
		c.answers[key] = answer
		text = text[headerSize+int(length):]
	}
}

// Lookup gives the answer under a key, "" when there is none.
func (c *Cache) Lookup(key [keySize]byte) string { return c.answers[key] }

// Len is the number of answers.
func (c *Cache) Len() int { return len(c.answers) }

// Write puts answers in place of what is in the file.
func Write(path string, answers iter.Seq2[[keySize]byte, []byte]) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("keeping plans for the next start: %w", err)
		}
	}()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".new-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	w := bufio.NewWriterSize(file, 256<<10)
	_, _ = w.WriteString(magic) // a bufio.Writer keeps its error until Flush
	var header [headerSize]byte
	for key, answer := range answers {
		copy(header[:], key[:])
		binary.BigEndian.PutUint32(header[keySize:], uint32(len(answer)))
		binary.BigEndian.PutUint64(header[keySize+4:], checksum(key, unsafe.String(unsafe.SliceData(answer), len(answer))))
		_, _ = w.Write(header[:])
		_, _ = w.Write(answer)
	}
	if err := errors.Join(w.Flush(), file.Close()); err != nil {
		return err
	}
	return os.Rename(file.Name(), path)
}

func checksum(key [keySize]byte, answer string) uint64 {
	var d xxhash.Digest
	d.Reset()
	_, _ = d.Write(key[:])
	_, _ = d.Write(binary.BigEndian.AppendUint32(nil, uint32(len(answer))))
	_, _ = d.WriteString(answer)
	return d.Sum64()
}
