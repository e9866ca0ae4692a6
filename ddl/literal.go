package ddl

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
)

// decoder gathers the value of a literal together with the way back to its text.
type decoder struct {
	text strings.Builder
	segs []viewkeeper.Segment
}

// copy appends s, which stands at source in the submitted text.
func (d *decoder) copy(s string, source int) {
	if s == "" {
		return
	}
	at := d.text.Len()
	if n := len(d.segs); n == 0 || d.segs[n-1].Source-d.segs[n-1].At != source-at {
		d.segs = append(d.segs, viewkeeper.Segment{At: at, Source: source})
	}
	d.text.WriteString(s)
}

// decodeString gives the value of the literal that toks[0] begins and of those
// that go on it, and the number of tokens that it takes. The tokens must have come
// from a text that lexes without an error. The error has code SYNTAX: an escape
// that stands for no character.
func decodeString(toks []Token) (*decoder, int, *viewkeeper.Error) {
	d := &decoder{}
	n := 0
	for n < len(toks) && toks[n].Kind == String && (n == 0 || toks[n].continues) {
		if err := d.token(toks[n]); err != nil {
			return nil, n, err
		}
		n++
	}
	if bad := badByte(d.text.String()); bad != nil {
		at := viewkeeper.Fragment{Map: d.segs}.Source(bad.Offset)
		return nil, n, viewkeeper.ErrorAt(at, viewkeeper.CodeSyntax,
			"the escape here makes a NUL or what is not UTF-8; write the character itself, or \\u and its number")
	}
	return d, n, nil
}

func (d *decoder) token(t Token) *viewkeeper.Error {
	s := t.Text
	if s[0] == '$' {
		tag := strings.IndexByte(s[1:], '$') + 2
		d.copy(s[tag:len(s)-tag], t.At+tag)
		return nil
	}
	i := strings.IndexByte(s, '\'') + 1
	end := len(s) - 1
	run := i
	for i < end {
		switch {
		case s[i] == '\'': // the first of two
			d.copy(s[run:i+1], t.At+run)
			i += 2
			run = i
		case s[i] == '\\' && t.escapes:
			d.copy(s[run:i], t.At+run)
			value, n := unescape(s[i:end])
			if value == "" {
				return viewkeeper.ErrorAt(t.At+i, viewkeeper.CodeSyntax,
					"the escape %s stands for no character; in E'...' a backslash itself is written \\\\", s[i:i+n])
			}
			d.copy(value, t.At+i)
			i += n
			run = i
		default:
			i++
		}
	}
	d.copy(s[run:end], t.At+run)
	return nil
}

// unescape gives the value of the escape at the start of s, and its length. A
// value is never longer than its escape. "" means that it stands for nothing.
func unescape(s string) (string, int) {
	if len(s) < 2 {
		return "", len(s)
	}
	switch c := s[1]; c {
	case 'b':
		return "\b", 2
	case 'f':
		return "\f", 2
	case 'n':
		return "\n", 2
	case 'r':
		return "\r", 2
	case 't':
		return "\t", 2
	case 'x':
		if n := hexLen(s[2:], 2); n > 0 {
			v, _ := strconv.ParseUint(s[2:2+n], 16, 8)
			return string([]byte{byte(v)}), 2 + n
		}
		return "x", 2
	case 'u', 'U':
		want := 4
		if c == 'U' {
			want = 8
		}
		n := hexLen(s[2:], want)
		if n < want {
			return "", 2 + n
		}
		v, _ := strconv.ParseUint(s[2:2+n], 16, 32)
		if v > utf8.MaxRune || !utf8.ValidRune(rune(v)) {
			return "", 2 + n
		}
		return string(rune(v)), 2 + n
	}
	if n := octalLen(s[1:]); n > 0 {
		v, _ := strconv.ParseUint(s[1:1+n], 8, 16)
		return string([]byte{byte(v)}), 1 + n
	}
	_, size := utf8.DecodeRuneInString(s[1:])
	return s[1 : 1+size], 1 + size
}

func hexLen(s string, limit int) int {
	n := 0
	for n < len(s) && n < limit && strings.IndexByte("0123456789abcdefABCDEF", s[n]) >= 0 {
		n++
	}
	return n
}

func octalLen(s string) int {
	n := 0
	for n < len(s) && n < 3 && '0' <= s[n] && s[n] <= '7' {
		n++
	}
	return n
}
