package ddl

import (
	"strings"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
)

// lexer cuts a text into tokens by the rules of the engine's own lexer, which are
// PostgreSQL's: only so does a semicolon in some corner mean the same to both.
// Each call of next consumes at least one byte, whatever the text.
type lexer struct {
	src string
	pos int
	err *viewkeeper.Error // the first thing that never ends

	// What lies between the last String and here, to know whether a quote goes
	// on that literal: nothing but white space and -- comments, with a newline.
	last    TokenKind
	escapes bool
	newline bool
}

// lex gives all tokens of src, comments included.
func lex(src string) ([]Token, *viewkeeper.Error) {
	l := &lexer{src: src}
	toks := make([]Token, 0, len(src)/5+4)
	for {
		t, ok := l.next()
		if !ok {
			return toks, l.err
		}
		toks = append(toks, t)
	}
}

func (l *lexer) next() (Token, bool) {
	for l.pos < len(l.src) {
		n := spaceLen(l.src[l.pos:])
		if n == 0 {
			break
		}
		l.newline = l.newline || l.src[l.pos] == '\n' || l.src[l.pos] == '\r'
		l.pos += n
	}
	if l.pos == len(l.src) {
		return Token{}, false
	}
	t := Token{At: l.pos}
	t.Kind = l.scan(&t)
	t.Text = l.src[t.At:l.pos]
	if t.Kind == comment && strings.HasPrefix(t.Text, "--") {
		return t, true
	}
	l.last, l.escapes, l.newline = t.Kind, t.escapes, false
	if t.Kind == String && t.Text[0] == '$' {
		l.last = 0 // a dollar quote is not gone on with
	}
	return t, true
}

// scan moves pos behind the token that starts there and tells its kind.
func (l *lexer) scan(t *Token) TokenKind {
	s := l.src[l.pos:]
	c := s[0]
	switch {
	case c == '\'':
		t.continues = l.last == String && l.newline
		t.escapes = t.continues && l.escapes
		l.quoted('\'', t.escapes, "string literal")
		return String
	case c == '"':
		l.quoted('"', false, "quoted name")
		return QuotedName
	case len(s) > 1 && s[1] == '\'' && strings.IndexByte("eEbBxXnN", c) >= 0:
		l.pos++
		t.escapes = c == 'e' || c == 'E'
		l.quoted('\'', t.escapes, "string literal")
		return String
	case isWordStart(s):
		l.pos += wordLen(s)
		return Word
	case isDigit(c), c == '.' && len(s) > 1 && isDigit(s[1]):
		l.pos += numberLen(s)
		return Number
	case c == ';':
		l.pos++
		return Semicolon
	case c == '$':
		return l.dollar()
	case c == '?':
		l.pos++
		l.pos += digitsLen(s[1:])
		return Param
	case strings.HasPrefix(s, "--"):
		if n := strings.IndexAny(s, "\r\n"); n >= 0 {
			l.pos += n
		} else {
			l.pos = len(l.src)
		}
		return comment
	case strings.HasPrefix(s, "/*"):
		l.blockComment()
		return comment
	case c == '{':
		for _, p := range [...]string{"{begin}", "{end}", "{source}"} {
			if strings.HasPrefix(s, p) {
				l.pos += len(p)
				return PlaceholderWord
			}
		}
	}
	l.pos += operatorLen(s)
	return Operator
}

// quoted moves pos, which is at the opening quote, behind the closing one.
func (l *lexer) quoted(quote byte, escapes bool, what string) {
	open := l.pos
	for i := open + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			if escapes {
				i++
			}
		case quote:
			if i+1 < len(l.src) && l.src[i+1] == quote {
				i++
				continue
			}
			l.pos = i + 1
			return
		}
	}
	l.never(open, "the "+what+" that begins here does not end; close it with "+string(quote))
}

// dollar scans what begins with $: a quote with or without a tag, or a parameter.
func (l *lexer) dollar() TokenKind {
	s := l.src[l.pos:]
	n := 1
	if isWordStart(s[1:]) {
		n += wordLen(s[1:])
		// A word may hold a $, a tag may not.
		if i := strings.IndexByte(s[1:n], '$'); i >= 0 {
			n = 1 + i
		}
	} else if d := digitsLen(s[1:]); d > 0 {
		l.pos += n + d
		return Param
	}
	if n < len(s) && s[n] == '$' {
		tag := s[:n+1]
		end := strings.Index(s[len(tag):], tag)
		if end < 0 {
			l.never(l.pos, "the string literal that begins here does not end; close it with "+tag)
			return String
		}
		l.pos += end + 2*len(tag)
		return String
	}
	l.pos += n
	if n == 1 {
		return Operator
	}
	return Param
}

// blockComment moves pos behind the comment that starts there. They nest.
func (l *lexer) blockComment() {
	depth := 0
	for i := l.pos; i+1 < len(l.src); i++ {
		switch l.src[i : i+2] {
		case "/*":
			depth++
			i++
		case "*/":
			depth--
			i++
			if depth == 0 {
				l.pos = i + 1
				return
			}
		}
	}
	l.never(l.pos, "the comment that begins here does not end; close it with */ (comments nest)")
}

// never ends the text inside the token that began at open.
func (l *lexer) never(open int, message string) {
	if l.err == nil {
		l.err = viewkeeper.ErrorAt(open, viewkeeper.CodeSyntax, "%s", message)
	}
	l.pos = len(l.src)
}

// isWordStart reports whether s begins with a word. Every character beyond ASCII
// that is no space belongs to words, and so does a byte that is no character.
func isWordStart(s string) bool {
	if s == "" {
		return false
	}
	c := s[0]
	return c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || c >= utf8.RuneSelf && spaceLen(s) == 0
}

func wordLen(s string) int {
	i := 0
	for i < len(s) {
		switch {
		case isWordStart(s[i:]):
			_, size := utf8.DecodeRuneInString(s[i:])
			i += size
		case i > 0 && (isDigit(s[i]) || s[i] == '$'):
			i++
		default:
			return i
		}
	}
	return i
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// numberLen gives the length of the number at the start of s. The engine knows no
// hexadecimal: 0x1F is 0 and the word x1F.
func numberLen(s string) int {
	n := digitsLen(s)
	if n < len(s) && s[n] == '.' && !strings.HasPrefix(s[n:], "..") {
		n++
		n += digitsLen(s[n:])
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		m := n + 1
		if m < len(s) && (s[m] == '+' || s[m] == '-') {
			m++
		}
		if d := digitsLen(s[m:]); d > 0 {
			n = m + d
		}
	}
	return n
}

// digitsLen counts digits, with single underscores between them.
func digitsLen(s string) int {
	n := 0
	for n < len(s) {
		switch {
		case isDigit(s[n]):
			n++
		case s[n] == '_' && n > 0 && n+1 < len(s) && isDigit(s[n+1]):
			n += 2
		default:
			return n
		}
	}
	return n
}

const operatorChars = "~!@#^&|`+-*/%<>="

// operatorLen gives the length of the operator at the start of s: as long as it
// can be, but never into a comment, and without a sign at its end unless it has a
// character that arithmetic has not (a<-1 is a < -1). Any other character is an
// operator of its own.
func operatorLen(s string) int {
	n := 0
	for n < len(s) && strings.IndexByte(operatorChars, s[n]) >= 0 {
		if n > 0 && (strings.HasPrefix(s[n:], "--") || strings.HasPrefix(s[n:], "/*")) {
			break
		}
		n++
	}
	if n == 0 {
		if strings.HasPrefix(s, "::") || strings.HasPrefix(s, ":=") {
			return 2
		}
		_, size := utf8.DecodeRuneInString(s)
		return size
	}
	if !strings.ContainsAny(s[:n], "~!@#%^&|`") {
		for n > 1 && (s[n-1] == '+' || s[n-1] == '-') {
			n--
		}
	}
	return n
}
