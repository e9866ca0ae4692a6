package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// comment reads what follows COMMENT.
func (p *parser) comment() (*viewkeeper.Comment, *viewkeeper.Error) {
	if err := p.expect("on"); err != nil {
		return nil, err
	}
	if p.peek(0).Is("materialized") {
		return nil, p.errorf(viewkeeper.CodeSyntax, "a materialized view is commented by COMMENT ON VIEW as well; leave MATERIALIZED out")
	}
	if t := p.peek(0); t.Kind == Word && !t.Is("view") {
		return nil, p.errorf(viewkeeper.CodeSyntax, "comments are kept for views only, not for %s; write COMMENT ON VIEW name IS 'text'", shown(t))
	}
	if err := p.expect("view"); err != nil {
		return nil, err
	}
	c := &viewkeeper.Comment{}
	var err *viewkeeper.Error
	if c.Name, c.NameOffset, err = p.nameAt("the view's name"); err != nil {
		return nil, err
	}
	p.name = c.Name
	if err := p.expect("is"); err != nil {
		return nil, err
	}
	if p.accept("null") {
		return c, nil
	}
	if !isText(p.peek(0)) {
		return nil, p.unexpected("a text in single quotes or NULL")
	}
	value, err := p.literal()
	if err != nil {
		return nil, err
	}
	text := value.text.String()
	c.Text = &text
	return c, nil
}

// isText reports whether t is a string literal that stands for text: X'..' and
// B'..' stand for bits.
func isText(t Token) bool {
	return t.Kind == String && strings.IndexByte("xXbB", t.Text[0]) < 0
}

// literal reads the string literal that comes next, with those that go on it.
func (p *parser) literal() (*decoder, *viewkeeper.Error) {
	d, n, err := decodeString(p.stmt.toks[p.i:])
	if err != nil {
		return nil, err
	}
	p.i += n
	return d, nil
}
