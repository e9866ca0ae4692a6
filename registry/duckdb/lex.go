package duckdb

import (
	"strings"
	"unicode/utf8"
)

// Why not ddl.Tokens: that reads what people submit, this reads what the engine is
// given, byte for byte as the engine does. ddl takes more characters for white space
// (next line, Ogham, line separator ...), which to the engine are letters; it joins
// operators and {placeholders}, of which the engine's grammar knows nothing, leaves an
// E'...' literal that goes on in pieces, and cuts 0x1f in two. flattenSpaces and the walk's places
// need the engine's word in each of these. Where neither has a reason of its own the
// two agree, which TestLexAgreesWithDDL holds them to.

// tokenKind tells the lexical kinds of the engine's dialect apart, as far as the
// gate and the base reader need them.
type tokenKind uint8

const (
	tokenWord   tokenKind = iota // an unquoted name or keyword
	tokenQuoted                  // "a quoted name"
	tokenString                  // any string literal, its prefix included
	tokenNumber
	tokenSymbol // one byte of anything else, or a parameter: $1, $name
)

// token is one lexical token; comments and white space give none.
type token struct {
	kind    tokenKind
	at, end int
}

// text gives the token as written.
func (t token) text(src string) string { return src[t.at:t.end] }

// is reports whether the token is the keyword or symbol word, given in lower case.
func (t token) is(src, word string) bool {
	return (t.kind == tokenWord || t.kind == tokenSymbol) && strings.EqualFold(t.text(src), word)
}

// name gives the identifier that a word or quoted token stands for, unfolded, or
// false when it is neither.
func (t token) name(src string) (string, bool) {
	switch t.kind {
	case tokenWord:
		return t.text(src), true
	case tokenQuoted:
		s := t.text(src)
		s = strings.TrimSuffix(s[1:], `"`)
		return strings.ReplaceAll(s, `""`, `"`), true
	}
	return "", false
}

// lex splits text into tokens as the engine's own scanner does. It is total: what
// does not end (a literal, a comment) ends with the text, and the engine's parser
// is the one to refuse it.
func lex(text string) []token {
	tokens := make([]token, 0, len(text)/5+4)
	for i := 0; i < len(text); {
		if n := space(text[i:]); n > 0 {
			i += n
			continue
		}
		if n := comment(text[i:]); n > 0 {
			i += n
			continue
		}
		kind, n := scan(text[i:])
		tokens = append(tokens, token{kind, i, i + n})
		i += n
	}
	return tokens
}

// scan measures the token at the start of s, which is not white space.
func scan(s string) (tokenKind, int) {
	c := s[0]
	switch {
	case c == '\'':
		return tokenString, quoted(s, 0, '\'', false)
	case c == '"':
		return tokenQuoted, quoted(s, 0, '"', false)
	case (c == 'e' || c == 'E') && len(s) > 1 && s[1] == '\'':
		return tokenString, continued(s, quoted(s, 1, '\'', true))
	case strings.IndexByte("xXbBnN", c) >= 0 && len(s) > 1 && s[1] == '\'':
		return tokenString, quoted(s, 1, '\'', false)
	case (c == 'u' || c == 'U') && len(s) > 2 && s[1] == '&' && s[2] == '\'':
		return tokenString, quoted(s, 2, '\'', false)
	case (c == 'u' || c == 'U') && len(s) > 2 && s[1] == '&' && s[2] == '"':
		return tokenQuoted, quoted(s, 2, '"', false)
	case c == '$':
		if n := dollar(s); n > 0 {
			return tokenString, n
		}
		// A parameter is taken whole: $e'\' is no E'...'.
		n := 1
		for n < len(s) && (wordStart(s[n]) || digit(s[n])) && space(s[n:]) == 0 {
			n++
		}
		return tokenSymbol, n
	case wordStart(c):
		n := 1
		for n < len(s) && (wordStart(s[n]) || digit(s[n]) || s[n] == '$') {
			if space(s[n:]) > 0 {
				break
			}
			n++
		}
		return tokenWord, n
	case digit(c), c == '.' && len(s) > 1 && digit(s[1]):
		return tokenNumber, number(s)
	}
	return tokenSymbol, 1
}

// quoted measures a literal whose opening quote is s[open].
func quoted(s string, open int, q byte, backslash bool) int {
	for i := open + 1; i < len(s); i++ {
		switch {
		case s[i] == '\\' && backslash:
			i++
		case s[i] == q && i+1 < len(s) && s[i+1] == q:
			i++
		case s[i] == q:
			return i + 1
		}
	}
	return len(s)
}

// continued measures an E'...' literal that goes on behind its first n bytes: of
// literals that only white space with a newline and -- comments part, the standard
// makes one, and a backslash stays special in it. Taken for two, a quote behind a
// backslash in the second would hide from the gate what follows.
func continued(s string, n int) int {
	newline := false
	for i := n; i < len(s); {
		switch m := space(s[i:]); {
		case m > 0:
			newline = newline || s[i] == '\n' || s[i] == '\r'
			i += m
		case strings.HasPrefix(s[i:], "--"):
			i += comment(s[i:])
		case newline && s[i] == '\'':
			n = quoted(s, i, '\'', true)
			i, newline = n, false
		default:
			return n
		}
	}
	return n
}

// dollar measures a dollar-quoted literal, or gives 0 when s is a parameter or a
// lone $.
func dollar(s string) int {
	n := 1
	for n < len(s) && (wordStart(s[n]) || n > 1 && digit(s[n])) {
		n++
	}
	if n >= len(s) || s[n] != '$' {
		return 0
	}
	tag := s[:n+1]
	end := strings.Index(s[len(tag):], tag)
	if end < 0 {
		return len(s)
	}
	return len(tag) + end + len(tag)
}

// number measures a numeric literal. 0x1f and 1_000 are one token; an exponent
// takes its sign only after a decimal mantissa.
func number(s string) int {
	hex := len(s) > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'X')
	n := 0
	for n < len(s) {
		c := s[n]
		sign := (c == '+' || c == '-') && !hex && n > 0 && (s[n-1] == 'e' || s[n-1] == 'E') && n+1 < len(s) && digit(s[n+1])
		exponent := (c == 'e' || c == 'E') && n+1 < len(s) && (digit(s[n+1]) || s[n+1] == '+' || s[n+1] == '-')
		hexDigit := hex && (n == 1 || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F')
		if !digit(c) && c != '.' && c != '_' && !sign && !exponent && !hexDigit {
			break
		}
		n++
	}
	return n
}

// comment measures a comment; block comments nest.
func comment(s string) int {
	if strings.HasPrefix(s, "--") {
		if i := strings.IndexAny(s, "\n\r"); i >= 0 {
			return i
		}
		return len(s)
	}
	if !strings.HasPrefix(s, "/*") {
		return 0
	}
	depth := 0
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "/*"):
			depth++
			i++
		case strings.HasPrefix(s[i:], "*/"):
			depth--
			i++
			if depth == 0 {
				return i + 1
			}
		}
	}
	return len(s)
}

// space measures one character of white space, the Unicode spaces included that
// the engine takes for one.
func space(s string) int {
	switch s[0] {
	case ' ', '\t', '\n', '\r', '\f', '\v':
		return 1
	case 0xC2, 0xE2, 0xE3, 0xEF:
		r, n := utf8.DecodeRuneInString(s)
		if r == 0xA0 || r >= 0x2000 && r <= 0x200D || r == 0x202F || r == 0x205F || r == 0x2060 || r == 0x3000 || r == 0xFEFF {
			return n
		}
	}
	return 0
}

// flattenSpaces writes plain spaces for the Unicode spaces outside literals,
// quoted names and comments, as many bytes as they had. The engine would turn
// each into one byte by itself, and every position that it reports after that
// would be short.
func flattenSpaces(text string) string {
	if !strings.ContainsAny(text, "\u00a0\u202f\u205f\u2060\u3000\ufeff") && !strings.Contains(text, "\xe2\x80") {
		return text
	}
	out := []byte(text)
	for i := 0; i < len(text); {
		if n := space(text[i:]); n > 0 {
			if n > 1 {
				for j := i; j < i+n; j++ {
					out[j] = ' '
				}
			}
			i += n
			continue
		}
		if n := comment(text[i:]); n > 0 {
			i += n
			continue
		}
		_, n := scan(text[i:])
		i += n
	}
	return string(out)
}

func wordStart(c byte) bool {
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= 0x80
}

func digit(c byte) bool { return '0' <= c && c <= '9' }
