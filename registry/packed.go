package registry

import (
	"encoding/binary"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// The packed form of what a planner said: fields in the order of their structs,
// numbers as varints, texts and lists with their lengths before them. It is a fifth of
// the structs' size in memory, which is why the scopes of a text, which only
// warnings look at, are kept so for as long as the text (see part), and why kept
// answers are. It never leaves the process that has its key, but for the same program
// on the same machine.

type packer struct{ b []byte }

func (p *packer) num(n int)     { p.b = binary.AppendVarint(p.b, int64(n)) }
func (p *packer) text(s string) { p.num(len(s)); p.b = append(p.b, s...) }

func (p *packer) flags(flags ...bool) {
	bits := 0
	for i, f := range flags {
		if f {
			bits |= 1 << i
		}
	}
	p.num(bits)
}

func packList[T any](p *packer, list []T, one func(*T)) {
	p.num(len(list))
	for i := range list {
		one(&list[i])
	}
}

func (p *packer) texts(list []string) { packList(p, list, func(s *string) { p.text(*s) }) }
func (p *packer) nums(list []int)     { packList(p, list, func(n *int) { p.num(*n) }) }
func (p *packer) name(n viewkeeper.Name) {
	p.text(n.Schema)
	p.text(n.View)
}

func (p *packer) columns(cols []viewkeeper.Column) {
	packList(p, cols, func(c *viewkeeper.Column) { p.text(c.Name); p.text(c.Type) })
}

func (p *packer) planError(e *PlanError) {
	p.flags(e != nil)
	if e != nil {
		p.text(string(e.Code))
		p.text(e.Message)
		p.num(e.At)
	}
}

// unpacker reads what a packer wrote. At what nobody has written it gives zeros, and
// bad is set.
type unpacker struct {
	b   string
	bad bool
}

func (u *unpacker) num() int {
	var n uint64
	for shift := 0; shift < 64 && shift/7 < len(u.b); shift += 7 {
		c := u.b[shift/7]
		n |= uint64(c&0x7f) << shift
		if c < 0x80 {
			u.b = u.b[shift/7+1:]
			return int(n>>1) ^ -int(n&1)
		}
	}
	u.bad, u.b = true, ""
	return 0
}

// length is a num that may be the length of what follows.
func (u *unpacker) length() int {
	n := u.num()
	if n < 0 || n > len(u.b) {
		u.bad, u.b = true, ""
		return 0
	}
	return n
}

// text gives a copy: what is unpacked must not hold on to the rest.
func (u *unpacker) text() string {
	n := u.length()
	s := strings.Clone(u.b[:n])
	u.b = u.b[n:]
	return s
}

func (u *unpacker) flags(flags ...*bool) {
	bits := u.num()
	for i, f := range flags {
		*f = bits&(1<<i) != 0
	}
}

func unpackList[T any](u *unpacker, one func(*T)) []T {
	n := u.length() // each takes a byte at least
	if n == 0 {
		return nil
	}
	list := make([]T, n)
	for i := range list {
		one(&list[i])
	}
	return list
}

func (u *unpacker) texts() []string { return unpackList(u, func(s *string) { *s = u.text() }) }
func (u *unpacker) nums() []int     { return unpackList(u, func(n *int) { *n = u.num() }) }
func (u *unpacker) name() viewkeeper.Name {
	return viewkeeper.Name{Schema: u.text(), View: u.text()}
}

func (u *unpacker) columns() []viewkeeper.Column {
	return unpackList(u, func(c *viewkeeper.Column) { c.Name, c.Type = u.text(), u.text() })
}

func (u *unpacker) planError() *PlanError {
	var there bool
	if u.flags(&there); !there {
		return nil
	}
	return &PlanError{Code: viewkeeper.Code(u.text()), Message: u.text(), At: u.num()}
}

// packParsed packs the answer to a text that the gate let through, whose scopes are
// packed already.
func packParsed(q *Parsed, scopes string) []byte {
	p := &packer{}
	packList(p, q.References, func(r *TableRef) {
		p.text(r.Schema)
		p.text(r.View)
		p.num(r.At)
		p.num(r.End)
		p.name(r.Macro)
		p.flags(r.Unused)
		p.num(r.Layers)
	})
	packList(p, q.Macros, func(n *viewkeeper.Name) { p.name(*n) })
	p.texts(q.Types)
	p.texts(q.Files)
	p.planError(q.Volatile)
	for _, n := range []int{q.Layers, q.Nesting, q.Joins, q.Leaves} {
		p.num(n)
	}
	p.text(scopes)
	return p.b
}

func unpackParsed(b string) (q Parsed, scopes string, ok bool) {
	u := &unpacker{b: b}
	q.References = unpackList(u, func(r *TableRef) {
		r.Schema, r.View, r.At, r.End, r.Macro = u.text(), u.text(), u.num(), u.num(), u.name()
		u.flags(&r.Unused)
		r.Layers = u.num()
	})
	q.Macros = unpackList(u, func(n *viewkeeper.Name) { *n = u.name() })
	q.Types, q.Files, q.Volatile = u.texts(), u.texts(), u.planError()
	q.Layers, q.Nesting, q.Joins, q.Leaves = u.num(), u.num(), u.num(), u.num()
	scopes = u.text()
	return q, scopes, !u.bad && u.b == ""
}

func packScopes(scopes []Scope) string {
	if len(scopes) == 0 {
		return ""
	}
	p := &packer{}
	packList(p, scopes, func(s *Scope) {
		p.num(s.Parent)
		p.flags(s.Output, s.SetOperation, s.Star)
		packList(p, s.Sources, func(f *Source) { p.num(f.Reference); p.text(f.Alias) })
		packList(p, s.Items, func(i *Item) { p.text(i.Name); p.flags(i.Aliased); p.num(i.At) })
		packList(p, s.Columns, func(c *ColumnUse) { p.text(c.Name); p.num(c.At); p.text(c.Clause) })
		packList(p, s.Joins, func(j *Join) {
			p.flags(j.Natural)
			p.texts(j.Using)
			p.nums(j.Left)
			p.nums(j.Right)
			p.num(j.At)
		})
	})
	return string(p.b)
}

func unpackScopes(packed string) []Scope {
	if packed == "" {
		return nil
	}
	u := &unpacker{b: packed}
	return unpackList(u, func(s *Scope) {
		s.Parent = u.num()
		u.flags(&s.Output, &s.SetOperation, &s.Star)
		s.Sources = unpackList(u, func(f *Source) { f.Reference, f.Alias = u.num(), u.text() })
		s.Items = unpackList(u, func(i *Item) { i.Name = u.text(); u.flags(&i.Aliased); i.At = u.num() })
		s.Columns = unpackList(u, func(c *ColumnUse) { c.Name, c.At, c.Clause = u.text(), u.num(), u.text() })
		s.Joins = unpackList(u, func(j *Join) {
			u.flags(&j.Natural)
			j.Using, j.Left, j.Right, j.At = u.texts(), u.nums(), u.nums(), u.num()
		})
	})
}

func packPlanned(q *planned) []byte {
	p := &packer{}
	p.columns(q.columns)
	p.columns(q.extract)
	return p.b
}

// unpackPlanned gives a plan that was found good, nil where there is none.
func unpackPlanned(b string) (*planned, bool) {
	if b == "" {
		return nil, false
	}
	u := &unpacker{b: b}
	q := &planned{columns: u.columns(), extract: u.columns()}
	if u.bad || u.b != "" || q.columns == nil {
		return nil, false
	}
	return q, true
}
