package registrytest

// The tree of the model's subset. Offsets are bytes of the query's text.

// query is [WITH ctes] body [ORDER BY ...] [LIMIT n].
type query struct {
	ctes    []*cte
	body    setExpr
	orderBy []expr
}

type cte struct {
	name string
	q    *query
}

// setExpr is *selectNode, *setOp or *nested.
type setExpr interface{ isSet() }

type setOp struct {
	op          string // UNION, INTERSECT, EXCEPT
	left, right setExpr
	at          int
}

// nested is a query in parentheses as a side of a set operation.
type nested struct{ q *query }

type selectNode struct {
	items   []item
	from    fromItem // nil when absent
	where   expr
	groupBy []expr
	// groupAll is GROUP BY ALL.
	groupAll bool
	having   expr
	at       int
}

// item is one entry of a select list; a star has its qualifier in e.
type item struct {
	e     expr
	alias string // as written, "" when absent
}

// fromItem is *tableSource, *subSource or *join.
type fromItem interface{ isFrom() }

type tableSource struct {
	schema, name string // folded
	raw          string // the name as written
	at, end      int
	alias        string
}

type subSource struct {
	q     *query
	alias string
}

type join struct {
	left, right fromItem
	natural     bool
	cross       bool
	using       []ident
	on          expr
	at          int
}

type ident struct {
	text string
	at   int
}

// expr is any of the expression nodes below.
type expr interface{ place() int }

type (
	colRef struct {
		parts []token // one to three names
	}
	starExpr struct {
		qualifier string // folded, "" for a bare *
		at        int
	}
	literal struct {
		tok token
		typ string
	}
	unary struct {
		op string
		x  expr
		at int
	}
	binary struct {
		op   string
		l, r expr
		at   int // of the operator
	}
	isNull struct {
		x   expr
		not bool
	}
	call struct {
		name string
		args []expr
		star bool
		at   int
	}
	cast struct {
		x   expr
		typ string
		at  int
	}
	inQuery struct {
		x  expr
		q  *query
		at int
	}
	subquery struct {
		q      *query
		exists bool
		at     int
	}
)

func (*selectNode) isSet() {}
func (*setOp) isSet()      {}
func (*nested) isSet()     {}

func (*tableSource) isFrom() {}
func (*subSource) isFrom()   {}
func (*join) isFrom()        {}

func (e *colRef) place() int   { return e.parts[0].at }
func (e *starExpr) place() int { return e.at }
func (e *literal) place() int  { return e.tok.at }
func (e *unary) place() int    { return e.at }
func (e *binary) place() int   { return e.at }
func (e *isNull) place() int   { return e.x.place() }
func (e *call) place() int     { return e.at }
func (e *cast) place() int     { return e.x.place() }
func (e *inQuery) place() int  { return e.at }
func (e *subquery) place() int { return e.at }

// children gives the expressions directly under e; subqueries are not followed.
func children(e expr) []expr {
	switch e := e.(type) {
	case *unary:
		return []expr{e.x}
	case *binary:
		return []expr{e.l, e.r}
	case *isNull:
		return []expr{e.x}
	case *call:
		return e.args
	case *cast:
		return []expr{e.x}
	case *inQuery:
		return []expr{e.x}
	}
	return nil
}
