package registrytest

import (
	"strconv"
	"strings"
)

// The grammar of expressions, by precedence from OR down.

func (p *parser) expr() expr { return p.or() }

func (p *parser) or() expr {
	l := p.and()
	for {
		t := p.peek()
		if !p.word("or") {
			return l
		}
		l = &binary{op: "OR", l: l, r: p.and(), at: t.at}
	}
}

func (p *parser) and() expr {
	l := p.not()
	for {
		t := p.peek()
		if !p.word("and") {
			return l
		}
		l = &binary{op: "AND", l: l, r: p.not(), at: t.at}
	}
}

func (p *parser) not() expr {
	if t := p.peek(); p.word("not") {
		return &unary{op: "NOT", x: p.not(), at: t.at}
	}
	return p.comparison()
}

func (p *parser) comparison() expr {
	l := p.sum()
	for {
		t := p.peek()
		switch {
		case p.word("is"):
			not := p.word("not")
			p.needWord("null")
			l = &isNull{x: l, not: not}
		case p.word("in"):
			p.need("(")
			if !p.is("select") && !p.is("with") && !p.is("from") {
				p.unknown("IN over a list")
			}
			l = &inQuery{x: l, q: p.query(), at: t.at}
			p.need(")")
		case p.is("between") || p.is("like"):
			p.unknown(t.raw)
		case t.kind == tokOp && isComparison(t.text):
			p.next()
			op := t.text
			if op == "<>" {
				op = "!="
			}
			l = &binary{op: op, l: l, r: p.sum(), at: t.at}
		default:
			return l
		}
	}
}

func isComparison(op string) bool {
	switch op {
	case "=", "<", ">", "<=", ">=", "<>", "!=":
		return true
	}
	return false
}

func (p *parser) sum() expr {
	l := p.product()
	for {
		t := p.peek()
		if !p.op("+") && !p.op("-") {
			if t.text == "||" {
				p.unknown("||")
			}
			return l
		}
		l = &binary{op: t.text, l: l, r: p.product(), at: t.at}
	}
}

func (p *parser) product() expr {
	l := p.prefix()
	for {
		t := p.peek()
		if !p.op("*") && !p.op("/") && !p.op("%") {
			return l
		}
		l = &binary{op: t.text, l: l, r: p.prefix(), at: t.at}
	}
}

func (p *parser) prefix() expr {
	if t := p.peek(); p.op("-") {
		return &unary{op: "-", x: p.prefix(), at: t.at}
	}
	e := p.primary()
	for p.op("::") {
		e = &cast{x: e, typ: p.typeName(), at: e.place()}
	}
	return e
}

// typeName reads a type and gives its text with the arguments, folded to upper
// case.
func (p *parser) typeName() string {
	t := p.name()
	name := strings.ToUpper(t.text)
	if p.op("(") {
		var args []string
		for {
			args = append(args, p.next().text)
			if !p.op(",") {
				break
			}
		}
		p.need(")")
		name += "(" + strings.Join(args, ",") + ")"
	}
	return name
}

func (p *parser) primary() expr {
	t := p.peek()
	switch {
	case t.kind == tokNumber:
		p.next()
		return &literal{tok: t, typ: p.numberType(t)}
	case t.kind == tokString:
		p.next()
		return &literal{tok: t, typ: typeStringLiteral}
	case t.text == "*" && t.kind == tokOp:
		p.next()
		return &starExpr{at: t.at}
	case p.op("("):
		if p.is("select") || p.is("with") || p.is("from") {
			q := p.query()
			p.need(")")
			return &subquery{q: q, at: t.at}
		}
		e := p.expr()
		p.need(")")
		return e
	case p.word("true") || p.word("false"):
		return &literal{tok: t, typ: "BOOLEAN"}
	case p.word("exists"):
		p.need("(")
		q := p.query()
		p.need(")")
		return &subquery{q: q, exists: true, at: t.at}
	case p.is("null") || p.is("case"):
		p.unknown(t.raw)
	case p.word("cast"):
		p.need("(")
		x := p.expr()
		p.needWord("as")
		typ := p.typeName()
		p.need(")")
		return &cast{x: x, typ: typ, at: t.at}
	case p.isName():
		return p.nameExpr()
	}
	p.fail("an expression is expected here")
	return nil
}

func (p *parser) numberType(t token) string {
	if strings.Contains(t.text, ".") {
		p.i--
		p.unknown("decimal literals")
	}
	if _, err := strconv.ParseInt(t.text, 10, 32); err == nil {
		return typeIntegerLiteral
	}
	if _, err := strconv.ParseInt(t.text, 10, 64); err == nil {
		return "BIGINT"
	}
	p.i--
	p.unknown("numbers beyond BIGINT")
	return ""
}

// nameExpr reads a column, alias.*, or a call.
func (p *parser) nameExpr() expr {
	parts := []token{p.name()}
	if p.peek().text == "(" && p.peek().kind == tokOp {
		return p.call(parts[0])
	}
	for p.op(".") {
		if t := p.peek(); len(parts) == 1 && p.op("*") {
			return &starExpr{qualifier: parts[0].text, at: min(t.at, parts[0].at)}
		}
		parts = append(parts, p.name())
	}
	if len(parts) > 3 {
		p.unknown("names of four parts")
	}
	return &colRef{parts: parts}
}

func (p *parser) call(n token) expr {
	p.need("(")
	c := &call{name: n.text, at: n.at}
	switch {
	case p.op(")"):
		return c
	case p.op("*"):
		c.star = true
	default:
		for {
			c.args = append(c.args, p.expr())
			if !p.op(",") {
				break
			}
		}
	}
	p.need(")")
	if p.is("over") || p.is("filter") {
		p.unknown(p.peek().raw)
	}
	return c
}
