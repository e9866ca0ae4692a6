package codec

import (
	"bytes"
	"strconv"

	"github.com/viewkeeper/viewkeeper"
)

// The row of a slot is written with each batch and holds up to SlotSpan ids, of which
// all but the last few were in the row before: for every follower it is most of the
// bytes of a lone statement. So it is written and read here without encoding/json,
// where it has the one form that owners give it; any other form goes the general way,
// which gives the same.

// The pieces of a slot's row in that form, between its numbers and texts.
const (
	slotFormat  = `{"format":`
	slotVersion = `,"type":"` + typeIDs + `","version":`
	slotEpoch   = `,"epoch":`
	slotIDs     = `,"ids":[`
	slotEnd     = `]}`
	idID        = `{"id":"`
	idText      = `","text":"`
	idVersion   = `","version":`
	idEnd       = `}`
)

// appendSlot writes a slot's row, if it needs no more than its plain form.
func appendSlot(r *IDs) (b []byte, ok bool) {
	if len(r.Extra) > 0 {
		return nil, false
	}
	b = make([]byte, 0, 96+len(r.IDs)*128)
	b = strconv.AppendInt(append(b, slotFormat...), int64(max(r.Format, Format)), 10)
	b = strconv.AppendUint(append(b, slotVersion...), uint64(r.Version), 10)
	b = strconv.AppendUint(append(b, slotEpoch...), uint64(r.Epoch), 10)
	b = append(b, slotIDs...)
	for i, id := range r.IDs {
		if id.Extra != "" || !plain(id.ID) || !plain(string(id.Text)) {
			return nil, false
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(append(b, idID...), id.ID...), idText...)
		b = strconv.AppendUint(append(append(b, id.Text...), idVersion...), uint64(id.Version), 10)
		b = append(b, idEnd...)
	}
	return append(b, slotEnd...), true
}

// plain reports whether JSON has a text as it is.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// readSlot reads a slot's row in its plain form.
func readSlot(slot int, value []byte) (r *IDs, ok bool) {
	const least = len(idID) + len(idText) + len(idVersion) + len(idEnd)
	p := slotReader{rest: string(value), ok: true}
	p.skip(slotFormat)
	format := p.number() // may end p.ok
	p.ok = p.ok && format == Format
	p.skip(slotVersion)
	r = &IDs{Slot: slot, Version: viewkeeper.Version(p.number()), Format: Format}
	p.skip(slotEpoch)
	r.Epoch = viewkeeper.Epoch(p.number())
	p.skip(slotIDs)
	r.IDs = make([]ID, 0, min(bytes.Count(value, []byte(idID)), len(value)/least+1))
	for p.ok && p.rest != slotEnd {
		if len(r.IDs) > 0 {
			p.skip(",")
		}
		var id ID
		p.skip(idID)
		id.ID = p.text()
		p.skip(idText)
		id.Text = TextHash(p.text())
		p.skip(idVersion)
		id.Version = viewkeeper.Version(p.number())
		p.skip(idEnd)
		r.IDs = append(r.IDs, id)
	}
	return r, p.ok
}

// slotReader goes through a slot's row; it is not ok any more once something is of
// another form.
type slotReader struct {
	rest string
	ok   bool
}

func (p *slotReader) skip(piece string) {
	if p.ok = p.ok && len(p.rest) >= len(piece) && p.rest[:len(piece)] == piece; p.ok {
		p.rest = p.rest[len(piece):]
	}
}

// number reads a whole number as JSON has it: of at most 18 digits here, without a zero
// before it.
func (p *slotReader) number() (n uint64) {
	i := 0
	for i < len(p.rest) && p.rest[i] >= '0' && p.rest[i] <= '9' {
		n = n*10 + uint64(p.rest[i]-'0')
		i++
	}
	p.ok = p.ok && i > 0 && i <= 18 && (i == 1 || p.rest[0] != '0')
	p.rest = p.rest[i:]
	return n
}

// text reads up to the next quotation mark.
func (p *slotReader) text() string {
	i := 0
	for i < len(p.rest) && p.rest[i] != '"' {
		if c := p.rest[i]; c < ' ' || c > '~' || c == '\\' {
			p.ok = false
			return ""
		}
		i++
	}
	s := p.rest[:i]
	p.rest = p.rest[i:]
	return s
}
