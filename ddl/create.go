package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// create reads what follows CREATE.
func (p *parser) create() (*viewkeeper.Create, *viewkeeper.Error) {
	c := &viewkeeper.Create{Kind: viewkeeper.KindView, SQL: p.text[p.stmt.start:p.stmt.end], Offset: p.stmt.start}
	replaceAt := p.place()
	c.OrReplace = p.accept("or", "replace")
	if p.accept("materialized") {
		c.Kind = viewkeeper.KindMaterialized
	}
	if !p.accept("view") {
		return nil, p.notAView("CREATE")
	}
	c.IfNotExists = p.accept("if", "not", "exists")
	var err *viewkeeper.Error
	if c.Name, c.NameOffset, err = p.newName("the view's name"); err != nil {
		return nil, err
	}
	if c.OrReplace && c.IfNotExists {
		return nil, viewkeeper.ErrorAt(replaceAt, viewkeeper.CodeSyntax,
			"%s: OR REPLACE and IF NOT EXISTS exclude each other; keep OR REPLACE to change what exists, IF NOT EXISTS to leave it", c.Name)
	}
	if c.Kind == viewkeeper.KindMaterialized {
		return c, p.materialized(c)
	}
	return c, p.plain(c)
}

// plain reads [(column, ...)] AS query.
func (p *parser) plain(c *viewkeeper.Create) *viewkeeper.Error {
	columnsFrom := p.i
	if p.acceptOp("(") {
		for {
			if !p.peek(0).IsName() {
				return p.unexpected("a column name")
			}
			c.Columns = append(c.Columns, p.peek(0).Name())
			p.i++
			if !p.acceptOp(",") {
				break
			}
		}
		if err := p.expectOp(")"); err != nil {
			return err
		}
	}
	columnsTo := p.i
	if p.peek(0).Is("with") {
		return p.errorf(viewkeeper.CodeSyntax,
			"%s: options belong to CREATE MATERIALIZED VIEW; a plain view is written CREATE VIEW name AS query", c.Name)
	}
	if err := p.expect("as"); err != nil {
		return err
	}
	as := p.stmt.toks[p.i-1]
	body := p.stmt.toks[p.i:]
	p.i = len(p.stmt.toks)
	if len(body) == 0 {
		return p.errorf(viewkeeper.CodeNotOneQuery, "%s has no query behind AS; write one, for example SELECT 1 AS x", c.Name)
	}
	from, to := trimSpace(p.text, as.End(), p.stmt.end)
	if err := p.limits.checkBody(c.Name, "the body", body[0].At, to-from); err != nil {
		return err
	}
	c.Body = p.bodyFragment(body)
	c.Canonical = canonicalPlain(c, p.stmt.toks[columnsFrom:columnsTo], body)
	return nil
}

// bodyFragment gives the query whose tokens are toks, the statement's last ones.
func (p *parser) bodyFragment(toks []Token) viewkeeper.Fragment {
	from, to := toks[0].At, toks[len(toks)-1].End()
	var b strings.Builder
	b.Grow(to - from)
	engineText(&b, p.text, p.stmt.all, from, to)
	return viewkeeper.Fragment{Text: b.String(), Map: []viewkeeper.Segment{{At: 0, Source: from}}}
}

// notAView refuses CREATE, DROP and ALTER of what is no view.
func (p *parser) notAView(verb string) *viewkeeper.Error {
	t := p.peek(0)
	switch word := strings.ToUpper(t.Text); word {
	case "TEMP", "TEMPORARY", "LOCAL":
		return p.errorf(viewkeeper.CodeSyntax, "a temporary view belongs to one session, and definitions are everybody's; leave %s out", word)
	case "RECURSIVE":
		return p.errorf(viewkeeper.CodeSyntax, "%s RECURSIVE VIEW is not in the language; write CREATE VIEW name AS WITH RECURSIVE ...", verb)
	case "TABLE", "SCHEMA", "MACRO", "FUNCTION", "TYPE", "SEQUENCE", "INDEX", "UNIQUE", "DATABASE", "SECRET", "PERSISTENT", "TRIGGER", "ROLE", "USER":
		return p.errorf(viewkeeper.CodeSyntax, "%s %s is not a statement of the catalog, which holds views only; %s", verb, word, placeOf(word))
	}
	if p.i == len(p.stmt.toks) {
		return p.unexpected("VIEW")
	}
	if near := Nearest(viewkeeper.Fold(t.Text), []string{"view", "materialized", "replace"}); near != "" {
		return p.errorf(viewkeeper.CodeSyntax, "expected VIEW after %s, but %s stands there; did you mean %s?", p.stmt.toks[p.i-1].Text, shown(t), strings.ToUpper(near))
	}
	return p.unexpected("VIEW")
}

func placeOf(word string) string {
	if word == "SCHEMA" {
		return "a schema exists while a view is in it"
	}
	return "tables, types and macros belong to the base, the SQL that a node is started with"
}
