package ddl

import "github.com/viewkeeper/viewkeeper"

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
