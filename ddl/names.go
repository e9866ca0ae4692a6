package ddl

import (
	"errors"

	"github.com/viewkeeper/viewkeeper"
)

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
