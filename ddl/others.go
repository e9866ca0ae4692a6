package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// drop reads what follows DROP.
func (p *parser) drop() (*viewkeeper.Drop, *viewkeeper.Error) {
	d := &viewkeeper.Drop{Kind: viewkeeper.KindView}
	if p.accept("materialized") {
		d.Kind = viewkeeper.KindMaterialized
	}
	if !p.accept("view") {
		return nil, p.notAView("DROP")
	}
	d.IfExists = p.accept("if", "exists")
	for {
		name, at, err := p.nameAt("the name of a view")
		if err != nil {
			return nil, err
		}
		d.Names = append(d.Names, name)
		d.Offsets = append(d.Offsets, at)
		if !p.acceptOp(",") {
			break
		}
	}
	if len(d.Names) == 1 {
		p.name = d.Names[0]
	}
	if d.Cascade = p.accept("cascade"); !d.Cascade {
		p.accept("restrict")
	}
	return d, nil
}

// rename reads what follows ALTER.
func (p *parser) rename() (*viewkeeper.Rename, *viewkeeper.Error) {
	if p.peek(0).Is("materialized") {
		return nil, p.errorf(viewkeeper.CodeSyntax, "a materialized view is renamed by ALTER VIEW as well; leave MATERIALIZED out")
	}
	if !p.accept("view") {
		return nil, p.notAView("ALTER")
	}
	if p.peek(0).Is("if") && p.peek(1).Is("exists") {
		return nil, p.errorf(viewkeeper.CodeSyntax, "ALTER VIEW has no IF EXISTS; leave it out")
	}
	r := &viewkeeper.Rename{}
	var err *viewkeeper.Error
	if r.From, r.FromOffset, err = p.nameAt("the view's name"); err != nil {
		return nil, err
	}
	p.name = r.From
	if !p.accept("rename", "to") {
		err := p.unexpected("RENAME TO")
		err.Message += "; to change what a view holds, use CREATE OR REPLACE VIEW"
		return nil, err
	}
	qualified := p.peek(1).isOp(".")
	to, at, err := p.nameAt("the new name")
	if err != nil {
		return nil, err
	}
	if !qualified {
		to.Schema = r.From.Schema
	}
	if to.Schema != r.From.Schema {
		return nil, viewkeeper.ErrorAt(at, viewkeeper.CodeSyntax,
			"a rename keeps the schema, and %s would leave %s; create the view there and drop it here in one change set", to, r.From.Schema)
	}
	r.To, r.ToOffset = to, at
	return r, validName(to, at)
}

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
