package ddl

import (
	"errors"
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
	name, err := viewkeeper.ParseName(key)
	if err != nil {
		return nil, err
	}
	return &viewkeeper.Drop{
		Names: []viewkeeper.Name{name}, Offsets: []int{-1},
		Kind: viewkeeper.KindDefinition, IfExists: true,
	}, nil
}

// loose is the refusal of a second statement outside a change set. When it could
// be a statement of its own, the person meant two; otherwise the query before it
// has grown a tail, and is not one query any more.
func loose(first viewkeeper.Statement, next statement) *viewkeeper.Error {
	create, ok := first.(*viewkeeper.Create)
	if ok && create.Kind == viewkeeper.KindView && !isOurs(next) {
		err := viewkeeper.ErrorAt(next.first(), viewkeeper.CodeNotOneQuery,
			"the body of %s must be exactly one query, and %s follows it behind a semicolon; leave that out", create.Name, describe(next))
		err.Name = create.Name
		return err
	}
	if !isOurs(next) {
		return viewkeeper.ErrorAt(next.first(), viewkeeper.CodeSyntax,
			"a record holds one statement, and %s follows it; leave that out", describe(next))
	}
	return viewkeeper.ErrorAt(next.first(), viewkeeper.CodeSyntax,
		"a second statement begins here (%s); send it by itself, or put both between BEGIN; and COMMIT; to make them one change set", describe(next))
}

// describe shows the beginning of a statement.
func describe(s statement) string {
	var words []string
	for _, t := range s.toks[:min(3, len(s.toks))] {
		words = append(words, strings.Trim(shown(t), "“”"))
	}
	if len(s.toks) > 3 {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

// isOurs reports whether s begins as a statement of the language.
func isOurs(s statement) bool {
	switch {
	case s.starts("create"), s.starts("drop"), s.starts("alter"), s.starts("comment", "on"):
		for _, t := range s.toks[:min(6, len(s.toks))] {
			if t.Is("view") {
				return true
			}
		}
		return false
	}
	return s.opensSet() || s.closesSet()
}

// parseSet reads BEGIN; ...; COMMIT;.
func (l Limits) parseSet(text string, stmts []statement) (viewkeeper.Statement, error) {
	if err := boundary(stmts[0], "begin"); err != nil {
		return nil, err
	}
	end := setEnd(stmts, 0)
	if end == 0 || !stmts[end].closesSet() {
		return nil, viewkeeper.ErrorAt(stmts[0].first(), viewkeeper.CodeSyntax,
			"the change set that begins here is not closed; end it with COMMIT;")
	}
	set := &viewkeeper.ChangeSet{}
	for _, s := range stmts[1:end] {
		if s.opensSet() {
			return nil, viewkeeper.ErrorAt(s.first(), viewkeeper.CodeSyntax,
				"a change set holds no other one; leave this BEGIN out")
		}
		st, err := l.parseOne(text, s)
		if err != nil {
			return nil, err
		}
		set.Statements = append(set.Statements, st)
	}
	if err := boundary(stmts[end], "commit"); err != nil {
		return nil, err
	}
	if len(set.Statements) == 0 {
		return nil, viewkeeper.ErrorAt(stmts[0].first(), viewkeeper.CodeSyntax, "the change set is empty; put statements between BEGIN; and COMMIT;")
	}
	if rest := stmts[end+1:]; len(rest) > 0 {
		return nil, viewkeeper.ErrorAt(rest[0].first(), viewkeeper.CodeSyntax,
			"%s follows the end of the change set; a record holds one change set, so put it before COMMIT or send it by itself", describe(rest[0]))
	}
	return set, nil
}

// boundary checks that s is exactly BEGIN or COMMIT, with TRANSACTION or WORK
// when somebody's fingers put it there.
func boundary(s statement, word string) error {
	switch {
	case !s.starts(word):
		return notOurs(s.toks)
	case len(s.toks) == 1, len(s.toks) == 2 && (s.toks[1].Is("transaction") || s.toks[1].Is("work")):
		return nil
	}
	return viewkeeper.ErrorAt(s.toks[1].At, viewkeeper.CodeSyntax,
		"%s stands alone, and %s follows it; write %s;", strings.ToUpper(word), shown(s.toks[1]), strings.ToUpper(word))
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

// nameAt reads view or schema.view, folded, and gives where it starts.
func (p *parser) nameAt(what string) (viewkeeper.Name, int, *viewkeeper.Error) {
	first := p.peek(0)
	if !first.IsName() {
		if first.Kind == String || first.Kind == Number {
			return viewkeeper.Name{}, 0, p.errorf(viewkeeper.CodeName,
				"%s is not a name; %s is written as view or schema.view, without quotes or in double ones", shown(first), what)
		}
		return viewkeeper.Name{}, 0, p.unexpected(what)
	}
	parts := []string{first.Name()}
	p.i++
	for p.peek(0).isOp(".") && p.peek(1).IsName() {
		parts = append(parts, p.peek(1).Name())
		p.i += 2
	}
	last := p.stmt.toks[p.i-1]
	fail := func(format string, args ...any) (viewkeeper.Name, int, *viewkeeper.Error) {
		return viewkeeper.Name{}, 0, viewkeeper.ErrorAt(first.At, viewkeeper.CodeName, format, args...)
	}
	written := p.text[first.At:last.End()]
	if len(parts) > 2 {
		return fail("%s has %d parts; a name is view or schema.view, without a database in front", written, len(parts))
	}
	for _, part := range parts {
		if part == "" {
			return fail("%s has an empty part; a name is view or schema.view", written)
		}
	}
	if next := p.peek(0); next.At == last.End() && isNameTail(next) {
		return fail("%s is not a name: %s cannot stand in one; use letters, digits and _", p.unbroken(first.At), shown(next))
	}
	if len(parts) == 1 {
		return viewkeeper.MakeName("", parts[0]), first.At, nil
	}
	return viewkeeper.MakeName(parts[0], parts[1]), first.At, nil
}

// unbroken gives the text from at up to the next white space or parenthesis.
func (p *parser) unbroken(at int) string {
	end := at
	for _, t := range p.stmt.toks {
		if t.At < at {
			continue
		}
		if t.At != end || !t.IsName() && !isNameTail(t) {
			break
		}
		end = t.End()
	}
	return p.text[at:end]
}

// isNameTail reports whether t, right behind a name, shows that the name was
// meant to go on: foo-bar, foo.1, foo'.
func isNameTail(t Token) bool {
	switch t.Kind {
	case Number, String, QuotedName, Param, PlaceholderWord, Word:
		return true
	case Operator:
		return t.Text != "(" && t.Text != ")" && t.Text != ","
	}
	return false
}

// newName reads the name of a definition that is to exist, which the rule of
// names holds for. A name that is only looked up needs its form alone: the
// catalog says what it stands for.
func (p *parser) newName(what string) (viewkeeper.Name, int, *viewkeeper.Error) {
	name, at, err := p.nameAt(what)
	if err != nil {
		return name, at, err
	}
	p.name = name
	return name, at, validName(name, at)
}

func validName(name viewkeeper.Name, at int) *viewkeeper.Error {
	err := name.Validate()
	if err == nil {
		return nil
	}
	var e *viewkeeper.Error
	if !errors.As(err, &e) {
		e = viewkeeper.Errorf(viewkeeper.CodeName, "%v", err)
	}
	e.Offset = at
	return e
}
