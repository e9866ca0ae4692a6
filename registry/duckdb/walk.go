package duckdb

import (
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// mode says whose text is walked.
type mode uint8

const (
	forDefinition mode = iota
	// forQuery is a query of a client, which may also look at the catalog.
	forQuery
	// forBase is a text of the base, which was given by whoever runs the node:
	// nothing of it is refused, but what it reads and what is volatile is noted.
	forBase
)

// Bounds on what the engine's binder is given. They are not settings: each stands
// for a measured blow-up of the binder that no sensible text comes near.
const (
	maxExpansion  = 5_000   // nodes that one macro call expands to
	maxNodes      = 200_000 // nodes of a text, macros expanded
	maxLambdas    = 8       // nested lambdas: the binder's time doubles with each
	maxStars      = 100     // each may expand to every column there is
	maxGroupSets  = 4096    // the engine's own limit is 65535, some seconds of work
	maxMacroDepth = 50
)

// walker reads the tree of one text: it refuses what the gate does not let
// through, and notes what the text reads. It walks in a fixed order, so that the
// same text always gets the same refusal.
//
// The invariant of the walk: a place in out is a place in text. Inside a macro's
// body (macro is set) there are no places and no scopes, but CTE scoping goes on,
// since the engine binds a macro's body where it is called, and the caller's CTEs
// hide relations from it.
type walker struct {
	gate   *gate
	mode   mode
	text   string
	tokens []token

	out    registry.Parsed
	err    *registry.PlanError
	refs   []walkedRef
	ctes   []*cte // all of them, the root first
	files  []fileRef
	macros map[viewkeeper.Name]bool
	calls  []int // where the text calls macros of the base
	types  map[string]bool
	nodes  int
	stars  int
	asof   bool // an ASOF join was seen

	position

	// The macro call that is being followed.
	macro      viewkeeper.Name // the outermost one, which the text calls
	macroAt    int             // where
	macroDepth int
	parameters map[string]int // the sizes of its arguments
}

// position is where a walk is. Whoever goes down into a subquery saves it, and
// puts it back.
type position struct {
	visible *cteFrame // the CTEs in scope, innermost first
	owner   *cte      // the CTE whose body this is
	layers  int       // layers above, within owner's body
	nesting int
	scope   int  // index of the SELECT in out.Scopes, or -1
	parent  int  // the scope that the next SELECT may take columns from, or -1
	output  bool // the next SELECT makes the query's output columns
	setOp   bool // the next SELECT is a side of a set operation by position
	clause  string
	lambdas *lambda
}

// lambda is the parameters of one lambda around an expression.
type lambda struct {
	names []string
	outer *lambda
	depth int
}

func (l *lambda) binds(name string) bool {
	for ; l != nil; l = l.outer {
		for _, n := range l.names {
			if n == name {
				return true
			}
		}
	}
	return false
}

func newWalker(g *gate, m mode, text string, tokens []token) *walker {
	// The root stands for the text itself, what no CTE owns.
	root := &cte{settled: true, reached: true}
	return &walker{
		gate: g, mode: m, text: text, tokens: tokens, ctes: []*cte{root},
		macros: map[viewkeeper.Name]bool{}, types: map[string]bool{},
		position: position{owner: root, scope: -1, parent: -1, output: true},
	}
}

func (w *walker) refuse(code viewkeeper.Code, at int, format string, args ...any) {
	if w.err != nil || w.mode == forBase {
		return
	}
	e := planErrorf(code, at, format, args...)
	if !w.macro.IsZero() {
		e.At = w.macroAt
		e.Message = "in the macro " + w.macro.String() + ": " + e.Message
	}
	w.err = e
}

// unknown refuses what the tables in fields.go do not list.
func (w *walker) unknown(what, key string, at int) {
	if key != "" {
		what += " with " + key
	}
	w.refuse(viewkeeper.CodeNotAllowed, at, "%s is not something that the gate knows; write it another way", what)
}

// noteVolatile notes something that is volatile or depends on the time. The first
// in the text is kept.
func (w *walker) noteVolatile(at int, what, reason string) {
	e := planErrorf(viewkeeper.CodeVolatile, at, "%s %s", what, reason)
	if !w.macro.IsZero() {
		e.At = w.macroAt
		e.Message = "the macro " + w.macro.String() + " uses " + e.Message
	}
	if v := w.out.Volatile; v == nil || e.At >= 0 && (v.At < 0 || e.At < v.At) {
		w.out.Volatile = e
	}
}

// deeper goes one level down, and reports whether that is too deep.
func (w *walker) deeper(at int) bool {
	w.nesting++
	w.out.Nesting = max(w.out.Nesting, w.nesting)
	if w.nesting > w.gate.limits.Nesting {
		w.refuse(viewkeeper.CodeComplexity, at, "expressions and subqueries are nested more than %d deep", w.gate.limits.Nesting)
	}
	return w.err != nil
}

// queryNode walks a SELECT, a set operation or a recursive CTE's body.
func (w *walker) queryNode(n object) {
	if n == nil || w.err != nil {
		return
	}
	kind := str(n, "type")
	fields, known := nodeFields[kind]
	if key := unknownField(n, fields, commonFields); !known || key != "" {
		w.unknown("a query of kind "+kind, key, -1)
		return
	}
	saved := w.position
	w.withClause(child(n, "cte_map"))
	switch kind {
	case "SELECT_NODE":
		w.selectNode(n)
	case "SET_OPERATION_NODE":
		w.setOp = w.setOp || str(n, "setop_type") != "UNION_BY_NAME"
		w.queryNode(child(n, "left"))
		w.queryNode(child(n, "right"))
		for _, c := range objects(n, "children") {
			w.queryNode(c)
		}
	case "RECURSIVE_CTE_NODE":
		w.setOp = true
		w.queryNode(child(n, "left"))
		// Only the side that is repeated sees the CTE itself.
		w.visible = &cteFrame{w.owner, w.visible}
		w.queryNode(child(n, "right"))
		w.expressions(n, "key_targets")
	}
	w.modifiers(n)
	w.position = saved
}

// withClause brings the elements of a WITH into scope, each for those after it.
func (w *walker) withClause(m object) {
	for _, entry := range objects(m, "map") {
		value := child(entry, "value")
		node := child(child(value, "query"), "node")
		c := &cte{name: viewkeeper.Fold(str(entry, "key")), owner: w.owner}
		w.ctes = append(w.ctes, c)
		saved := w.position
		w.owner, w.layers, w.scope, w.output, w.setOp = c, 0, -1, false, false
		if !w.deeper(-1) {
			w.queryNode(node)
		}
		w.position = saved
		w.visible = &cteFrame{c, w.visible}
	}
}

// subquery walks a query that stands in a FROM clause or an expression.
func (w *walker) subquery(statement object, at, layers int) {
	saved := w.position
	if w.scope >= 0 {
		w.parent = w.scope
	}
	w.layers += layers
	w.scope, w.output, w.setOp = -1, false, false
	if !w.deeper(at) {
		w.queryNode(child(statement, "node"))
	}
	w.position = saved
}

// modifiers walks ORDER BY, LIMIT and DISTINCT ON.
func (w *walker) modifiers(n object) {
	for _, m := range objects(n, "modifiers") {
		kind := str(m, "type")
		fields, known := modifierFields[kind]
		if key := unknownField(m, fields, commonFields); !known || key != "" {
			w.unknown("a clause of kind "+kind, key, -1)
			return
		}
		w.clause = "order"
		if kind == "DISTINCT_MODIFIER" {
			w.clause = "select"
		}
		w.fields(m, fields)
	}
}
