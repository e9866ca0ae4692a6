package ddl

import (
	"strings"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
)

// TokenKind tells what a token is.
type TokenKind uint8

// The kinds of tokens.
const (
	// Word is a keyword or an unquoted name; which of the two, a lexer can't say.
	Word TokenKind = iota + 1
	// QuotedName is "...", with "" for a quote in it.
	QuotedName
	// String is '...', E'...', X'...', B'...', N'...', $$...$$ or $tag$...$tag$.
	String
	// Number is an integer or a decimal in any of its forms, without a sign.
	Number
	// Param is ?, ?1, $1 or $name.
	Param
	// Operator is one operator or one mark of punctuation: <=, ::, (, {.
	Operator
	// Semicolon ends a statement.
	Semicolon
	// PlaceholderWord is {begin}, {end} or {source} outside a literal.
	PlaceholderWord

	comment
)

// Token is one token of a text.
type Token struct {
	Kind TokenKind
	// Text is the token as written, quotes and all; At is where it starts, in bytes.
	Text string
	At   int

	// escapes says that a backslash is special in this String: it is E'...', or
	// it goes on such a literal on a later line.
	escapes bool
	// continues says that this String goes on the one before it: the standard
	// makes one literal of two that only white space with a newline parts.
	continues bool
}

// End is the offset just behind the token.
func (t Token) End() int { return t.At + len(t.Text) }

// Is reports whether t is the word kw, which is given in lower case. A quoted
// name is never a keyword.
func (t Token) Is(kw string) bool {
	return t.Kind == Word && len(t.Text) == len(kw) && viewkeeper.Fold(t.Text) == kw
}

// IsName reports whether t can stand for a name: a word or a quoted name.
func (t Token) IsName() bool { return t.Kind == Word || t.Kind == QuotedName }

// Name gives the name that t stands for, without quotes and not folded.
func (t Token) Name() string {
	if t.Kind != QuotedName {
		return t.Text
	}
	return strings.ReplaceAll(t.Text[1:len(t.Text)-1], `""`, `"`)
}

// isOp reports whether t is the operator op.
func (t Token) isOp(op string) bool { return t.Kind == Operator && t.Text == op }

// Tokens gives the tokens of text, comments and white space left out. It is
// total: on any bytes it returns the tokens that it could make out, whose places
// are always right. The error, with code SYNTAX, says where text holds a NUL or
// is not UTF-8, or where a literal, a quoted name or a comment begins that never
// ends.
func Tokens(text string) ([]Token, error) {
	all, err := lex(text)
	if bad := badByte(text); bad != nil {
		err = bad
	}
	toks := withoutComments(all)
	if err != nil {
		return toks, err
	}
	return toks, nil
}

// NameAt reads the name, view or schema.view, that starts at a byte offset of
// text, and gives the offset just behind it. ok is false when none starts there.
// The name's rule is not looked at.
func NameAt(text string, at int) (name viewkeeper.Name, end int, ok bool) {
	if at < 0 || at > len(text) {
		return name, at, false
	}
	l := &lexer{src: text, pos: at}
	var parts []string
	for {
		t, more := l.next()
		for more && t.Kind == comment {
			t, more = l.next()
		}
		if !more || !t.IsName() || l.err != nil || len(parts) == 0 && t.At != at {
			return viewkeeper.Name{}, at, false
		}
		parts, end = append(parts, t.Name()), t.End()
		for t, more = l.next(); more && t.Kind == comment; t, more = l.next() {
		}
		if !more || !t.isOp(".") {
			break
		}
	}
	switch len(parts) {
	case 1:
		return viewkeeper.MakeName("", parts[0]), end, true
	case 2:
		return viewkeeper.MakeName(parts[0], parts[1]), end, true
	}
	return viewkeeper.Name{}, at, false
}

// badByte finds the first byte that no statement may hold, literals included: a
// NUL, which would cut the text short in the engine, or what is not UTF-8.
func badByte(text string) *viewkeeper.Error {
	for i := 0; i < len(text); {
		if c := text[i]; c < utf8.RuneSelf {
			if c == 0 {
				return viewkeeper.ErrorAt(i, viewkeeper.CodeSyntax,
					"the text holds a NUL byte; a statement is UTF-8 text without one")
			}
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(text[i:])
		if r == utf8.RuneError && size == 1 {
			return viewkeeper.ErrorAt(i, viewkeeper.CodeSyntax,
				"the text is not UTF-8: byte 0x%02X begins no character; save or send it as UTF-8", text[i])
		}
		i += size
	}
	return nil
}
