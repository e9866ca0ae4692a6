package registrytest

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

type tokenKind int

const (
	tokEnd tokenKind = iota
	tokIdent
	tokQuoted
	tokNumber
	tokString
	tokOp
)

// token is one word of a query. text is the folded identifier, the content of a
// quoted name or of a literal, or the operator; raw is an identifier as written.
type token struct {
	kind    tokenKind
	text    string
	raw     string
	at, end int
}

// lex splits a query into tokens, the last of kind tokEnd. It is written anew
// here, and not taken from ddl, so that the model shares no code with what it is
// an oracle for.
func lex(s string) ([]token, *registry.PlanError) {
	var toks []token
	for i := 0; i < len(s); {
		c := s[i]
		start := i
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
			i++
		case strings.HasPrefix(s[i:], "--"):
			if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(s)
			}
		case strings.HasPrefix(s[i:], "/*"):
			n := strings.Index(s[i+2:], "*/")
			if n < 0 {
				return nil, planErr(start, viewkeeper.CodeNotOneQuery, "the comment does not end")
			}
			i += n + 4
		case isIdentStart(c):
			for i < len(s) && (isIdentStart(s[i]) || isDigit(s[i]) || s[i] == '$') {
				i++
			}
			toks = append(toks, token{tokIdent, viewkeeper.Fold(s[start:i]), s[start:i], start, i})
		case c == '"' || c == '\'':
			text, n := lexQuoted(s[i:], c)
			if n < 0 {
				return nil, planErr(start, viewkeeper.CodeNotOneQuery, "the quoted text does not end")
			}
			i += n
			kind := tokString
			if c == '"' {
				kind = tokQuoted
			}
			toks = append(toks, token{kind, text, text, start, i})
		case isDigit(c):
			for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
				i++
			}
			toks = append(toks, token{tokNumber, s[start:i], s[start:i], start, i})
		default:
			i++
			for _, op := range []string{"::", "<=", ">=", "<>", "!=", "||"} {
				if strings.HasPrefix(s[start:], op) {
					i = start + 2
				}
			}
			toks = append(toks, token{tokOp, s[start:i], s[start:i], start, i})
		}
	}
	return append(toks, token{kind: tokEnd, at: len(s), end: len(s)}), nil
}

// lexQuoted reads a text in quotes q, doubled inside, and gives its content and
// its length, -1 when it does not end.
func lexQuoted(s string, q byte) (string, int) {
	var b strings.Builder
	for i := 1; i < len(s); i++ {
		if s[i] != q {
			b.WriteByte(s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == q {
			b.WriteByte(q)
			i++
			continue
		}
		return b.String(), i + 1
	}
	return "", -1
}

func isIdentStart(c byte) bool {
	return c == '_' || c >= 0x80 || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }
