package registrytest

import (
	"fmt"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// typed is a bound expression: its type, the name that the engine gives an output
// column made of it, a key that is equal for equal expressions, and whether it
// holds an aggregate of its own scope.
type typed struct {
	typ, name, key string
	aggregate      bool
}

// checked binds e and applies the rule of GROUP BY to it.
func (b *binder) checked(sc *scope, e expr) typed {
	t := b.expr(sc, e)
	b.checkGrouped(sc, e)
	return t
}

// checkGrouped refuses a column that is neither grouped by nor aggregated.
func (b *binder) checkGrouped(sc *scope, e expr) {
	if !sc.grouped {
		return
	}
	if c, ok := e.(*colRef); ok {
		if _, isColumn := b.column(sc, c, false); !isColumn {
			return // an alias or an outer column
		}
	}
	if sc.keys[b.expr(sc, e).key] {
		return
	}
	switch e := e.(type) {
	case *colRef, *starColumn:
		name := b.expr(sc, e).name
		bindFail(e.place(), "column %q must appear in the GROUP BY clause or must be part of an aggregate function.", name)
	case *call:
		if isAggregate(e.name) {
			return
		}
	}
	for _, c := range children(e) {
		b.checkGrouped(sc, c)
	}
}

func (b *binder) expr(sc *scope, e expr) typed {
	switch e := e.(type) {
	case *literal:
		name := e.tok.raw
		switch {
		case e.typ == typeStringLiteral:
			name = "'" + strings.ReplaceAll(e.tok.text, "'", "''") + "'"
		case e.typ == "BOOLEAN":
			name = fmt.Sprintf("CAST('%c' AS BOOLEAN)", e.tok.text[0])
		}
		return typed{typ: e.typ, name: name, key: name}
	case *colRef:
		t, _ := b.column(sc, e, true)
		return t
	case *starColumn:
		r := sc.relations[e.relation]
		return typed{typ: r.columns[e.column].Type, name: r.columns[e.column].Name, key: columnKey(r, e.column)}
	case *starExpr:
		bindFail(e.at, "* is not an expression here")
	case *unary:
		return b.unary(sc, e)
	case *binary:
		return b.binary(sc, e)
	case *isNull:
		x := b.expr(sc, e.x)
		word := "IS NULL"
		if e.not {
			word = "IS NOT NULL"
		}
		return typed{"BOOLEAN", "(" + inner(e.x, x) + " " + word + ")", "(" + x.key + " " + word + ")", x.aggregate}
	case *cast:
		return b.cast(sc, e)
	case *call:
		return b.call(sc, e)
	case *inQuery:
		x := b.expr(sc, e.x)
		cols := settleAll(b.query(e.q, sc, sc.ctes))
		if len(cols) != 1 {
			bindFail(e.at, "Subquery returns %d columns - expected 1", len(cols))
		}
		if l, r := x.typ, cols[0].Type; !comparableTypes("IN", l, r) {
			bindFail(e.at, "Cannot compare values of type %s and %s in IN/ANY/ALL clause - an explicit cast is required", l, r)
		}
		return typed{"BOOLEAN", "IN", "IN " + fmt.Sprint(e.at), x.aggregate}
	case *subquery:
		cols := b.query(e.q, sc, sc.ctes)
		key := "SUBQUERY " + fmt.Sprint(e.at)
		if e.exists {
			return typed{typ: "BOOLEAN", name: "EXISTS", key: key}
		}
		if len(cols) != 1 {
			bindFail(e.at, "Subquery returns %d columns - expected 1", len(cols))
		}
		return typed{typ: cols[0].Type, name: "SUBQUERY", key: key}
	}
	panic(planErr(e.place(), viewkeeper.CodeNotAllowed, "the model planner does not know %T", e))
}

// column resolves a name in sc and, failing that, among the aliases of the select
// list and in the enclosing scopes. The flag says that sc's own relations had it.
func (b *binder) column(sc *scope, e *colRef, must bool) (typed, bool) {
	name := e.parts[len(e.parts)-1].text
	for s := sc; s != nil; s = s.outer {
		var hits []*relation
		for _, r := range s.relations {
			if len(e.parts) >= 2 && r.alias != e.parts[len(e.parts)-2].text || len(e.parts) == 3 && r.schema != e.parts[0].text {
				continue
			}
			if i := r.find(name); i >= 0 && !(len(e.parts) == 1 && r.hidden[i]) {
				hits = append(hits, r)
			}
		}
		if len(hits) > 1 {
			bindFail(e.place(), "Ambiguous reference to column name %q (use: \"%s.%s\" or \"%s.%s\")", name, hits[0].alias, name, hits[1].alias, name)
		}
		if len(hits) == 1 {
			i := hits[0].find(name)
			return typed{typ: hits[0].columns[i].Type, name: hits[0].columns[i].Name, key: columnKey(hits[0], i)}, s == sc
		}
		if len(e.parts) == 1 {
			if a, ok := s.aliases[name]; ok {
				a.name = e.parts[0].raw
				return a, false
			}
		}
	}
	if t, ok := b.row(sc, e, name); ok {
		return t, true
	}
	if must {
		b.notFound(sc, e, name)
	}
	return typed{}, false
}

// row gives a relation of the FROM clause as a value: SELECT t FROM t.
func (b *binder) row(sc *scope, e *colRef, name string) (typed, bool) {
	for s := sc; s != nil && len(e.parts) == 1; s = s.outer {
		for _, r := range s.relations {
			if r.alias != name {
				continue
			}
			fields := make([]string, len(r.columns))
			for i, c := range r.columns {
				fields[i] = optionallyQuoted(c.Name) + " " + c.Type
			}
			return typed{typ: "STRUCT(" + strings.Join(fields, ", ") + ")", name: r.alias, key: r.alias}, true
		}
	}
	return typed{}, false
}

// optionallyQuoted writes a name as the engine does in a type.
func optionallyQuoted(name string) string {
	if plainIdent(name) && name == viewkeeper.Fold(name) && !reserved[name] {
		return name
	}
	return viewkeeper.QuoteIdent(name)
}

func (b *binder) notFound(sc *scope, e *colRef, name string) {
	if len(e.parts) == 1 {
		bindFail(e.place(), "Referenced column %q not found in FROM clause!", name)
	}
	qualifier := e.parts[len(e.parts)-2].text
	for s := sc; s != nil; s = s.outer {
		for _, r := range s.relations {
			if r.alias == qualifier {
				bindFail(e.place(), "Table %q does not have a column named %q", qualifier, name)
			}
		}
	}
	bindFail(e.place(), "Referenced table %q not found!", qualifier)
}

// inner gives the text of e as part of a larger one: a column as it is written.
func inner(e expr, t typed) string {
	c, ok := e.(*colRef)
	if !ok {
		return t.name
	}
	parts := make([]string, len(c.parts))
	for i, p := range c.parts {
		parts[i] = p.raw
		if p.kind == tokQuoted && !plainIdent(p.raw) || reserved[viewkeeper.Fold(p.raw)] {
			parts[i] = viewkeeper.QuoteIdent(p.raw)
		}
	}
	return strings.Join(parts, ".")
}

func plainIdent(s string) bool {
	for i := range len(s) {
		if !isIdentStart(s[i]) && (i == 0 || !isDigit(s[i])) {
			return false
		}
	}
	return s != ""
}

func (b *binder) unary(sc *scope, e *unary) typed {
	x := b.expr(sc, e.x)
	if e.op == "NOT" {
		return typed{"BOOLEAN", "(NOT " + inner(e.x, x) + ")", "NOT " + x.key, x.aggregate}
	}
	if !isNumeric(x.typ) {
		bindFail(e.at, "No function matches the given name and argument types '-(%s)'.", x.typ)
	}
	name := "-(" + inner(e.x, x) + ")"
	if _, ok := e.x.(*literal); ok {
		name = "-" + x.name
	}
	return typed{x.typ, name, "-(" + x.key + ")", x.aggregate}
}

func (b *binder) binary(sc *scope, e *binary) typed {
	l, r := b.expr(sc, e.l), b.expr(sc, e.r)
	out := typed{
		name:      "(" + inner(e.l, l) + " " + e.op + " " + inner(e.r, r) + ")",
		key:       "(" + l.key + " " + e.op + " " + r.key + ")",
		aggregate: l.aggregate || r.aggregate,
	}
	switch {
	case e.op == "AND" || e.op == "OR":
		out.typ = "BOOLEAN"
	case isComparison(e.op):
		out.typ = "BOOLEAN"
		if !comparableTypes(e.op, l.typ, r.typ) {
			bindFail(e.at, "Cannot compare values of type %s and type %s - an explicit cast is required", l.typ, r.typ)
		}
	default:
		out.typ = arithmetic(e.op, l.typ, r.typ)
		if out.typ == "" {
			bindFail(e.at, "No function matches the given name and argument types '%s(%s, %s)'. You might need to add explicit type casts.", e.op, l.typ, r.typ)
		}
	}
	return out
}

// arithmetic gives the result's type, "" when the operator does not take the two.
func arithmetic(op, l, r string) string {
	common := promote(l, r)
	switch {
	case op == "/" && common != "":
		return map[bool]string{true: "FLOAT", false: "DOUBLE"}[common == "FLOAT"]
	case common != "":
		return common
	case op == "+" && (l == "DATE" && integerArgument(r) || integerArgument(l) && r == "DATE"):
		return "DATE"
	case op == "-" && l == "DATE" && integerArgument(r):
		return "DATE"
	case op == "-" && l == "DATE" && r == "DATE":
		return "BIGINT"
	case op == "-" && l == "TIMESTAMP" && r == "TIMESTAMP":
		return "INTERVAL"
	}
	return ""
}

// integerArgument reports whether t casts implicitly to INTEGER.
func integerArgument(t string) bool {
	return t == typeIntegerLiteral || t == "INTEGER" || t == "SMALLINT" || t == "TINYINT"
}

func (b *binder) cast(sc *scope, e *cast) typed {
	x := b.expr(sc, e.x)
	typ := knownType(e.typ)
	if typ == "" {
		panic(planErr(e.at, viewkeeper.CodeNotAllowed, "the model planner does not know the type %s", e.typ))
	}
	shown := typ
	switch typ {
	case "TINYINT", "HUGEINT", "DOUBLE", "DATE": // the engine's grammar has no word of its own for these
		shown = viewkeeper.QuoteIdent(typ)
	}
	return typed{typ, "CAST(" + inner(e.x, x) + " AS " + shown + ")", "CAST(" + x.key + " AS " + typ + ")", x.aggregate}
}

// aggregateIn is the place of the first aggregate in the expressions.
func aggregateIn(exprs ...expr) int {
	for _, e := range exprs {
		if c, ok := e.(*call); ok && isAggregate(c.name) {
			return c.at
		}
		if at := aggregateIn(children(e)...); at >= 0 {
			return at
		}
	}
	return -1
}

func isAggregate(name string) bool {
	switch name {
	case "sum", "count", "max", "min", "avg":
		return true
	}
	return false
}

func (b *binder) call(sc *scope, e *call) typed {
	if e.star {
		if e.name != "count" {
			bindFail(e.at, "* is not an argument of %s", e.name)
		}
		return typed{"BIGINT", "count_star()", "count_star()", true}
	}
	var names, keys, types []string
	out := typed{}
	for _, a := range e.args {
		t := b.expr(sc, a)
		names, keys, types = append(names, inner(a, t)), append(keys, t.key), append(types, t.typ)
		out.aggregate = out.aggregate || t.aggregate
	}
	if isAggregate(e.name) {
		if out.aggregate {
			bindFail(aggregateIn(e.args...), "aggregate function calls cannot be nested")
		}
		out.aggregate = true
	}
	out.name = e.name + "(" + strings.Join(names, ", ") + ")"
	out.key = e.name + "(" + strings.Join(keys, ", ") + ")"
	typ, known := callType(e.name, types)
	if !known {
		panic(planErr(e.at, viewkeeper.CodeNotAllowed, "the model planner does not know the function %s", e.name))
	}
	if typ == "" {
		bindFail(e.at, "No function matches the given name and argument types '%s(%s)'. You might need to add explicit type casts.", e.name, strings.Join(types, ", "))
	}
	out.typ = typ
	return out
}

// callType gives a call's type, "" when the function does not take these
// arguments, and whether the function is known at all.
func callType(name string, args []string) (typ string, known bool) {
	arity := 1
	if name == "random" || name == "now" {
		arity = 0
	}
	switch name {
	case "sum", "avg", "count", "max", "min", "upper", "lower", "length", "random", "now":
	default:
		return "", false
	}
	if len(args) != arity {
		return "", true
	}
	switch name {
	case "random":
		return "DOUBLE", true
	case "now":
		return "TIMESTAMP WITH TIME ZONE", true
	case "count":
		return "BIGINT", true
	case "max", "min":
		return settle(args[0]), true
	case "sum":
		switch {
		case args[0] == "BOOLEAN" || isIntegral(args[0]):
			return "HUGEINT", true
		case isNumeric(args[0]):
			return "DOUBLE", true
		}
	case "avg":
		switch {
		case isNumeric(args[0]):
			return "DOUBLE", true
		case args[0] == "DATE" || args[0] == "TIMESTAMP":
			return "TIMESTAMP", true
		}
	case "upper", "lower":
		if settle(args[0]) == "VARCHAR" {
			return "VARCHAR", true
		}
	case "length":
		if settle(args[0]) == "VARCHAR" {
			return "BIGINT", true
		}
	}
	return "", true
}
