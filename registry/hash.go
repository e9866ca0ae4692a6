package registry

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"hash"
	"strconv"

	"github.com/viewkeeper/viewkeeper"
)

// setHash is a digest of a set that does not depend on the order in which its
// members came, and from which one can be taken out again: the lanes of the
// members' SHA-256 summed modulo 2^64, with a count. It guards against drift and
// mistakes, not against somebody who searches for collisions.
type setHash struct {
	lanes [4]uint64
	count uint64
}

func (s *setHash) add(h [32]byte) { s.combine(h, 1) }
func (s *setHash) sub(h [32]byte) { s.combine(h, -1) }

func (s *setHash) combine(h [32]byte, sign int64) {
	if h == ([32]byte{}) { // not a member
		return
	}
	for i := range s.lanes {
		s.lanes[i] += uint64(sign) * binary.BigEndian.Uint64(h[8*i:])
	}
	s.count += uint64(sign)
}

// String is the digest in hexadecimal.
func (s setHash) String() string {
	var b [40]byte
	for i, l := range s.lanes {
		binary.BigEndian.PutUint64(b[8*i:], l)
	}
	binary.BigEndian.PutUint64(b[32:], s.count)
	sum := sha256.Sum256(b[:])
	return hex.EncodeToString(sum[:16])
}

// fields hashes a sequence of texts, each with its length, so that no two
// different sequences look alike.
type fields struct{ h hash.Hash }

func newFields() fields { return fields{sha256.New()} }

func (f fields) text(s string) {
	f.count(len(s))
	f.h.Write([]byte(s))
}

func (f fields) count(n int) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	f.h.Write(b[:])
}

func (f fields) flags(flags ...bool) {
	bits := 0
	for i, f := range flags {
		if f {
			bits |= 1 << i
		}
	}
	f.count(bits)
}

func (f fields) sum() (out [32]byte) {
	f.h.Sum(out[:0])
	return out
}

// hashRow covers what makes two nodes' rows the same: name, kind, SQL, comment,
// version and ID, but not the epoch, which completion and healing change.
func hashRow(r viewkeeper.Row) [32]byte {
	f := newFields()
	d := r.Definition
	f.text(r.Name.String())
	f.text(string(d.Kind))
	f.text(d.SQL)
	if d.Comment != nil {
		f.text(*d.Comment)
	} else {
		f.text("\x00none")
	}
	f.text(strconv.FormatUint(uint64(r.Version), 10))
	f.text(strconv.FormatUint(uint64(d.ID), 10))
	return f.sum()
}

// builtHash covers what a reader of a definition that builds sees of it; zero
// for a broken one.
func (e *entry) builtHash() [32]byte {
	if !e.ok() {
		return [32]byte{}
	}
	f := newFields()
	f.text(e.name().String())
	f.text(e.sql())
	for _, c := range e.columns {
		f.text(c.Name)
		f.text(c.Type)
	}
	return f.sum()
}
