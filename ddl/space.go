package ddl

import "unicode/utf8"

// spaceLen gives the length in bytes of the white space character at the start
// of s, or 0. Beyond ASCII that is every Unicode space, the byte order mark and
// the zero-width characters that the engine treats as spaces as well: editors and
// chat programs leave them behind unseen.
func spaceLen(s string) int {
	if s == "" {
		return 0
	}
	if s[0] < utf8.RuneSelf {
		if isASCIISpace(s[0]) {
			return 1
		}
		return 0
	}
	switch r, size := utf8.DecodeRuneInString(s); r {
	case '\u0085', '\u00a0', '\u1680', '\u180e', // next line, no-break, ogham, Mongolian separator
		'\u2028', '\u2029', '\u202f', '\u205f', '\u2060', // line, paragraph, narrow, math, word joiner
		'\u3000', '\ufeff': // ideographic, byte order mark
		return size
	default:
		if '\u2000' <= r && r <= '\u200d' { // en quad to zero-width joiner
			return size
		}
		return 0
	}
}

func isASCIISpace(c byte) bool {
	return c == ' ' || '\t' <= c && c <= '\r' // \t \n \v \f \r
}

// trimSpace narrows [from, to) of s to what has no white space at its ends.
func trimSpace(s string, from, to int) (int, int) {
	for from < to {
		n := spaceLen(s[from:to])
		if n == 0 {
			break
		}
		from += n
	}
	for from < to {
		_, size := utf8.DecodeLastRuneInString(s[from:to])
		if spaceLen(s[to-size:to]) == 0 {
			break
		}
		to -= size
	}
	return from, to
}
