package registrytest

import (
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

func planErr(at int, code viewkeeper.Code, format string, args ...any) *registry.PlanError {
	return &registry.PlanError{Code: code, Message: fmt.Sprintf(format, args...), At: at}
}

// parser is a recursive descent over the tokens. The first error is thrown as a
// *registry.PlanError and caught in parseQuery, so that the grammar below reads
// as a grammar.
type parser struct {
	toks []token
	i    int
}

// parseQuery reads exactly one query of the subset. What the subset does not have
// is NOT_ALLOWED when it is known to be SQL, and NOT_ONE_QUERY otherwise.
func parseQuery(text string) (q *query, err *registry.PlanError) {
	toks, err := lex(text)
	if err != nil {
		return nil, err
	}
	defer func() {
		if r := recover(); r != nil {
			pe, ok := r.(*registry.PlanError)
			if !ok {
				panic(r)
			}
			q, err = nil, pe
		}
	}()
	p := &parser{toks: toks}
	q = p.query()
	for p.op(";") {
	}
	if p.peek().kind != tokEnd {
		p.fail("exactly one query is expected")
	}
	return q, nil
}

func (p *parser) peek() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if t.kind != tokEnd {
		p.i++
	}
	return t
}

func (p *parser) fail(format string, args ...any) {
	panic(planErr(p.peek().at, viewkeeper.CodeNotOneQuery, format, args...))
}

func (p *parser) unknown(what string) {
	panic(planErr(p.peek().at, viewkeeper.CodeNotAllowed, "the model planner does not know %s", what))
}

func (p *parser) is(word string) bool {
	t := p.peek()
	return t.kind == tokIdent && t.text == word
}

// word consumes a keyword if it is next.
func (p *parser) word(w string) bool {
	if p.is(w) {
		p.i++
		return true
	}
	return false
}

func (p *parser) op(o string) bool {
	if t := p.peek(); t.kind == tokOp && t.text == o {
		p.i++
		return true
	}
	return false
}

func (p *parser) need(o string) {
	if !p.op(o) {
		p.fail("%q is expected here", o)
	}
}

func (p *parser) needWord(w string) {
	if !p.word(w) {
		p.fail("%s is expected here", w)
	}
}

// reserved are the words that end an expression or an alias.
var reserved = map[string]bool{
	"select": true, "from": true, "where": true, "group": true, "having": true, "order": true, "limit": true,
	"union": true, "intersect": true, "except": true, "join": true, "inner": true, "left": true, "right": true,
	"full": true, "outer": true, "cross": true, "natural": true, "on": true, "using": true, "as": true, "with": true,
	"and": true, "or": true, "not": true, "is": true, "in": true, "null": true, "true": true, "false": true,
	"case": true, "cast": true, "exists": true, "distinct": true, "all": true, "qualify": true, "window": true,
	"offset": true, "asof": true, "positional": true, "lateral": true, "by": true, "between": true, "like": true,
}

// name reads an identifier that is not reserved.
func (p *parser) name() token {
	t := p.peek()
	if t.kind == tokQuoted || t.kind == tokIdent && !reserved[t.text] {
		p.i++
		t.text = viewkeeper.Fold(t.text)
		return t
	}
	p.fail("a name is expected here")
	return token{}
}

func (p *parser) isName() bool {
	t := p.peek()
	return t.kind == tokQuoted || t.kind == tokIdent && !reserved[t.text]
}

func (p *parser) query() *query {
	q := &query{}
	if p.word("with") {
		if p.is("recursive") {
			p.unknown("WITH RECURSIVE")
		}
		for {
			n := p.name()
			p.needWord("as")
			p.need("(")
			sub := p.query()
			p.need(")")
			q.ctes = append(q.ctes, &cte{name: n.text, q: sub})
			if !p.op(",") {
				break
			}
		}
	}
	q.body = p.setExpr()
	if p.word("order") {
		p.needWord("by")
		for {
			q.orderBy = append(q.orderBy, p.expr())
			if !p.word("asc") {
				p.word("desc")
			}
			if !p.op(",") {
				break
			}
		}
	}
	if p.word("limit") {
		if p.next().kind != tokNumber {
			p.unknown("LIMIT of anything but a number")
		}
	}
	return q
}

func (p *parser) setExpr() setExpr {
	left := p.setSide()
	for {
		t := p.peek()
		if !p.word("union") && !p.word("except") && !p.word("intersect") {
			return left
		}
		if !p.word("all") {
			p.word("distinct")
		}
		if p.is("by") {
			p.unknown("set operations BY NAME")
		}
		left = &setOp{op: t.text, left: left, right: p.setSide(), at: t.at}
	}
}

func (p *parser) setSide() setExpr {
	if p.op("(") {
		q := p.query()
		p.need(")")
		return &nested{q: q}
	}
	return p.selectNode()
}

// selectNode reads SELECT ... and the FROM-first form.
func (p *parser) selectNode() *selectNode {
	s := &selectNode{at: p.peek().at}
	if p.word("from") {
		s.from = p.from()
		if !p.is("select") {
			s.items = []item{{e: &starExpr{at: s.at}}}
		}
	}
	if p.word("select") {
		if !p.word("distinct") {
			p.word("all")
		}
		s.items = p.items()
	} else if s.from == nil {
		p.fail("a query is expected here")
	}
	if s.from == nil && p.word("from") {
		s.from = p.from()
	}
	if p.word("where") {
		s.where = p.expr()
	}
	if p.word("group") {
		p.needWord("by")
		if p.word("all") {
			s.groupAll = true
		} else {
			for {
				s.groupBy = append(s.groupBy, p.expr())
				if !p.op(",") {
					break
				}
			}
		}
	}
	if p.word("having") {
		s.having = p.expr()
	}
	for _, w := range []string{"qualify", "window"} {
		if p.is(w) {
			p.unknown(w)
		}
	}
	return s
}

func (p *parser) items() []item {
	var items []item
	for {
		it := item{e: p.expr()}
		if p.word("as") {
			if !p.isName() {
				p.fail("a name is expected after AS")
			}
			it.alias = p.next().raw
		} else if p.isName() {
			it.alias = p.next().raw
		}
		items = append(items, it)
		if !p.op(",") || p.is("from") || p.peek().kind == tokEnd { // a trailing comma is fine
			return items
		}
	}
}

func (p *parser) from() fromItem {
	left := p.joined()
	for p.op(",") {
		at := p.peek().at
		left = &join{left: left, right: p.joined(), cross: true, at: at}
	}
	return left
}

func (p *parser) joined() fromItem {
	left := p.source()
	for {
		j := &join{left: left, at: p.peek().at}
		switch {
		case p.word("natural"):
			j.natural = true
			p.word("inner")
			p.needWord("join")
		case p.word("cross"):
			j.cross = true
			p.needWord("join")
		case p.is("inner") || p.is("left") || p.is("join"):
			p.word("inner")
			if p.word("left") {
				p.word("outer")
			}
			p.needWord("join")
		case p.is("right") || p.is("full") || p.is("asof") || p.is("positional"):
			p.unknown(p.peek().raw + " joins")
		default:
			return left
		}
		j.right = p.source()
		switch {
		case j.natural || j.cross:
		case p.word("using"):
			p.need("(")
			for {
				n := p.name()
				j.using = append(j.using, ident{n.text, n.at})
				if !p.op(",") {
					break
				}
			}
			p.need(")")
		default:
			p.needWord("on")
			j.on = p.expr()
		}
		left = j
	}
}

func (p *parser) source() fromItem {
	if p.op("(") {
		q := p.query()
		p.need(")")
		return &subSource{q: q, alias: p.alias()}
	}
	if p.peek().kind == tokString {
		p.unknown("files")
	}
	if p.is("lateral") {
		p.unknown("LATERAL")
	}
	n := p.name()
	t := &tableSource{name: n.text, raw: n.raw, at: n.at, end: n.end}
	if p.op(".") {
		n2 := p.name()
		t.schema, t.name, t.raw, t.end = n.text, n2.text, n2.raw, n2.end
		if p.op(".") {
			p.unknown("names of three parts")
		}
	}
	if p.op("(") {
		p.unknown("table functions")
	}
	t.alias = p.alias()
	return t
}

func (p *parser) alias() string {
	if p.word("as") || p.isName() {
		n := p.name()
		if p.op("(") {
			p.unknown("column lists of aliases")
		}
		return n.text
	}
	return ""
}
