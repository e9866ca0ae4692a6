package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// Parse reads one statement or one change set, within [DefaultLimits].
func Parse(text string) (viewkeeper.Statement, error) { return DefaultLimits().Parse(text) }

// Parse reads one statement or one change set. The error is a *[viewkeeper.Error]
// at its place in text, with one of the codes
//
//	SYNTAX         it is no statement of the language, or more than one
//	NAME           a name that a definition may not have
//	OPTION         an option is unknown, missing, repeated or malformed
//	NOT_ONE_QUERY  the body of a plain definition is empty, or something else than
//	               a statement of the language follows it
//	TOO_LARGE      a body or the whole is over its limit
func (l Limits) Parse(text string) (viewkeeper.Statement, error) {
	if err := l.CheckText(text); err != nil {
		return nil, err
	}
	if bad := badByte(text); bad != nil {
		return nil, bad
	}
	all, bad := lex(text)
	if bad != nil {
		return nil, bad
	}
	stmts := statements(text, all)
	if len(stmts) == 0 {
		return nil, viewkeeper.ErrorAt(0, viewkeeper.CodeSyntax,
			"the text holds no statement; a null or empty record drops the view that its key names, anything else must be a statement")
	}
	if stmts[0].opensSet() {
		return l.parseSet(text, stmts)
	}
	st, err := l.parseOne(text, stmts[0])
	if err != nil {
		return nil, err
	}
	if len(stmts) > 1 {
		return nil, loose(st, stmts[1])
	}
	return st, nil
}

// ParseTombstone gives the statement that a null or empty record on a key means:
// drop what the key names, of either kind, if it exists, RESTRICT. The error has
// code NAME.
func ParseTombstone(key string) (*viewkeeper.Drop, error) {
	if bad := badByte(key); bad != nil {
		return nil, viewkeeper.Errorf(viewkeeper.CodeName, "the record's key is not a name: it holds a NUL or is not UTF-8")
	}
	name, err := viewkeeper.ParseName(key)
	if err != nil {
		return nil, err
	}
	return &viewkeeper.Drop{
		Names: []viewkeeper.Name{name}, Offsets: []int{-1},
		Kind: viewkeeper.KindDefinition, IfExists: true,
	}, nil
}

// parser reads one statement's tokens from left to right.
type parser struct {
	limits Limits
	text   string
	stmt   statement
	i      int
	name   viewkeeper.Name // the object, once it is known, for messages
}

func (l Limits) parseOne(text string, s statement) (viewkeeper.Statement, error) {
	p := &parser{limits: l, text: text, stmt: s}
	var (
		st  viewkeeper.Statement
		err *viewkeeper.Error
	)
	// The typed nil of a failed branch stays here: st is returned only without err.
	switch {
	case p.accept("create"):
		st, err = p.create()
	case p.accept("drop"):
		st, err = p.drop()
	case p.accept("alter"):
		st, err = p.rename()
	case p.accept("comment"):
		st, err = p.comment()
	default:
		err = notOurs(s.toks)
	}
	if err == nil && p.i < len(s.toks) {
		err = p.unexpected("the end of the statement")
	}
	if err != nil {
		if err.Name.IsZero() {
			err.Name = p.name
		}
		return nil, err
	}
	return st, nil
}

// peek gives the token n places ahead, the zero Token beyond the end.
func (p *parser) peek(n int) Token {
	if p.i+n < len(p.stmt.toks) {
		return p.stmt.toks[p.i+n]
	}
	return Token{At: p.place()}
}

// place is where the next token stands, or the end of the statement's last one.
func (p *parser) place() int {
	toks := p.stmt.toks
	if p.i < len(toks) {
		return toks[p.i].At
	}
	return toks[len(toks)-1].End()
}

// accept takes the words when they come next, all of them or none.
func (p *parser) accept(words ...string) bool {
	for n, w := range words {
		if !p.peek(n).Is(w) {
			return false
		}
	}
	p.i += len(words)
	return true
}

func (p *parser) acceptOp(op string) bool {
	if !p.peek(0).isOp(op) {
		return false
	}
	p.i++
	return true
}

func (p *parser) expect(words ...string) *viewkeeper.Error {
	for _, w := range words {
		if !p.accept(w) {
			return p.unexpected(strings.ToUpper(w))
		}
	}
	return nil
}

func (p *parser) expectOp(op string) *viewkeeper.Error {
	if !p.acceptOp(op) {
		return p.unexpected("“" + op + "”")
	}
	return nil
}

// unexpected says what was wanted and what stands there instead.
func (p *parser) unexpected(want string) *viewkeeper.Error {
	found := "the statement ends"
	if p.i < len(p.stmt.toks) {
		found = shown(p.peek(0)) + " stands there"
	}
	after := ""
	if p.i > 0 {
		after = " after " + shown(p.stmt.toks[p.i-1])
	}
	return p.errorf(viewkeeper.CodeSyntax, "expected %s%s, but %s", want, after, found)
}

func (p *parser) errorf(code viewkeeper.Code, format string, args ...any) *viewkeeper.Error {
	return viewkeeper.ErrorAt(p.place(), code, format, args...)
}
