package duckdb

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// gate is what every text passes before the engine may plan it. It asks the
// engine's parser for the syntax tree of the text, which runs nothing, and walks
// that: what it does not know it does not let through.
//
// A gate serves one caller at a time.
type gate struct {
	conn      *conn
	serialize *stmt
	limits    Limits
	lake      lake
	functions *functions
	base      *baseCatalog
	engine    map[string]*engineMacroCost // by name; nil: not a macro
	memory    *memories
}

// serializeSQL gives the syntax tree of a text as JSON. It takes any text, and runs
// nothing of it.
const serializeSQL = "SELECT json_serialize_sql(?::VARCHAR)::VARCHAR"

func openGate(ctx context.Context, i *instance, limits Limits) (*gate, error) {
	c, err := i.connect()
	if err != nil {
		return nil, err
	}
	g, err := newGate(ctx, c, i.lake, limits.withDefaults())
	if err == nil {
		g.functions, err = loadFunctions(ctx, c)
	}
	if err == nil {
		g.base, err = loadBase(ctx, g, i.base)
	}
	if err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

// newGate makes a gate that knows no function and no base.
func newGate(ctx context.Context, c *conn, l lake, limits Limits) (*gate, error) {
	g := &gate{conn: c, limits: limits, lake: l, functions: &functions{}, base: &baseCatalog{}, engine: map[string]*engineMacroCost{}, memory: newMemories()}
	var err error
	g.serialize, err = c.prepare(ctx, serializeSQL)
	return g, err
}

func (g *gate) close() {
	if g.serialize != nil {
		g.serialize.close()
	}
	g.conn.close()
}

// parse passes one query through the gate. The error is the engine's own trouble;
// a refusal is in the answer.
func (g *gate) parse(ctx context.Context, text string, m mode, strict bool) (registry.Parsed, error) {
	w, refusal, err := g.walk(ctx, text, m)
	switch {
	case err != nil:
		return registry.Parsed{}, err
	case refusal != nil:
		return registry.Parsed{Err: refusal}, nil
	}
	if m == forDefinition {
		g.memory.add(text, w)
	}
	w.finish()
	if v := w.out.Volatile; strict && v != nil {
		refusal := *v
		refusal.Message += "; a materialized definition must give the same rows every time"
		return registry.Parsed{Err: &refusal}, nil
	}
	return w.out, nil
}

// walk parses a text and walks its tree.
func (g *gate) walk(ctx context.Context, text string, m mode) (*walker, *registry.PlanError, error) {
	if refusal := precheck(text, g.limits); refusal != nil {
		return nil, refusal, nil
	}
	text = flattenSpaces(text)
	tokens := lex(text)
	if refusal := precheckTokens(text, tokens, g.limits); refusal != nil {
		return nil, refusal, nil
	}
	if refusal := oneStatement(text, tokens); refusal != nil {
		return nil, refusal, nil
	}
	node, refusal, err := g.tree(ctx, text, tokens, m)
	if err != nil || refusal != nil {
		return nil, refusal, err
	}
	w := newWalker(g, m, text, tokens)
	w.queryNode(node)
	return w, w.err, nil
}

// tree gives the syntax tree of a text that has one statement.
func (g *gate) tree(ctx context.Context, text string, tokens []token, m mode) (object, *registry.PlanError, error) {
	rows, err := g.serialize.query(ctx, text)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil, ctx.Err()
		}
		var engine *engineError
		if errors.As(err, &engine) {
			if lost := lostEngine(engine); lost != nil {
				return nil, nil, lost
			}
			return nil, planErrorf(viewkeeper.CodeSyntax, -1, "the engine's parser fails on this text: %s", tidy(engine.Message)), nil
		}
		return nil, nil, fmt.Errorf("duckdb: the parser: %w", err)
	}
	if len(rows[0][0]) > maxTree {
		return nil, planErrorf(viewkeeper.CodeComplexity, -1, "the query's syntax tree is over %d MB; make the query smaller", maxTree>>20), nil
	}
	s, err := parseSyntax(rows[0][0])
	if err != nil {
		return nil, planErrorf(viewkeeper.CodeComplexity, -1, "%v; write the query flatter, or its constants another way", err), nil
	}
	switch {
	case s.Error && s.ErrorType == "not implemented":
		return nil, g.notSelect(text, tokens, m), nil
	case s.Error:
		return nil, syntaxError(s, text, tokens), nil
	case len(s.Statements) != 1:
		return nil, planErrorf(viewkeeper.CodeNotOneQuery, -1, "the body must be exactly one query, and this is %d", len(s.Statements)), nil
	}
	return s.Statements[0].Node, nil, nil
}

// oneStatement refuses a text of no statement, or of several.
func oneStatement(text string, tokens []token) *registry.PlanError {
	seen, ended := false, false
	for _, t := range tokens {
		switch {
		case t.is(text, ";"):
			ended = seen
		case ended:
			return planErrorf(viewkeeper.CodeNotOneQuery, t.at, "the body must be exactly one query, and another statement begins here")
		default:
			seen = true
		}
	}
	if !seen {
		return planErrorf(viewkeeper.CodeNotOneQuery, -1, "there is no query")
	}
	return nil
}

// notSelect says what a statement is that json_serialize_sql does not take: no
// SELECT, or a PIVOT whose values the engine would have to look up first.
func (g *gate) notSelect(text string, tokens []token, m mode) *registry.PlanError {
	first := tokens[0]
	for _, t := range tokens {
		if !t.is(text, "(") {
			first = t
			break
		}
	}
	if (first.is(text, "explain") || first.is(text, "call") || first.is(text, "copy")) || !isQueryWord(text, first) {
		return planErrorf(viewkeeper.CodeNotOneQuery, first.at, "the body must be a single SELECT, and this is %s", strings.ToUpper(first.text(text)))
	}
	for _, t := range tokens {
		if t.is(text, "pivot") || t.is(text, "pivot_wider") {
			why := "can't be used in a view, since its columns would change with it"
			if m == forQuery {
				why = "would take two queries, the first for its columns"
			}
			return planErrorf(viewkeeper.CodeNotAllowed, t.at, "a PIVOT whose values come from the data %s; list the values: PIVOT ... ON column IN (val1, val2, ...)", why)
		}
	}
	for _, t := range tokens {
		if t.is(text, "insert") || t.is(text, "update") || t.is(text, "delete") || t.is(text, "merge") {
			first = t
			break
		}
	}
	return planErrorf(viewkeeper.CodeNotOneQuery, first.at, "the body must be a single SELECT that changes nothing")
}

// changingElement finds the WITH element that is no SELECT: AS [MATERIALIZED] (INSERT.
func changingElement(text string, tokens []token) int {
	for i := 2; i < len(tokens); i++ {
		behindAs := tokens[i-2].is(text, "as") || tokens[i-2].is(text, "materialized")
		if behindAs && tokens[i-1].is(text, "(") && !tokens[i].is(text, "(") && !isQueryWord(text, tokens[i]) {
			return tokens[i].at
		}
	}
	return -1
}

func isQueryWord(text string, t token) bool {
	for _, word := range []string{"select", "from", "with", "values", "table", "pivot", "pivot_wider", "unpivot", "show", "describe", "summarize"} {
		if t.is(text, word) {
			return true
		}
	}
	return false
}

var nearText = regexp.MustCompile(`at or near "(.*)"`)

// syntaxError makes a refusal of what the parser says.
func syntaxError(s *syntax, text string, tokens []token) *registry.PlanError {
	at := -1
	if n, err := strconv.Atoi(s.Position); err == nil && n >= 0 && n <= len(text) {
		at = n
	}
	code := viewkeeper.CodeSyntax
	message := tidy(s.ErrorMessage)
	switch {
	case strings.Contains(message, "CTE needs a SELECT"):
		code, at = viewkeeper.CodeNotOneQuery, changingElement(text, tokens)
		message = "the body must be a single SELECT that changes nothing; a WITH element here is none"
	case strings.Contains(message, "parameter"):
		// Mixed kinds of parameters; one would be too many.
		code, at = viewkeeper.CodeNotAllowed, (&walker{text: text, tokens: tokens}).parameterAt()
		message = "parameters are left in; write their values"
	case tooDeep(message):
		code, message = viewkeeper.CodeComplexity, tooDeepMessage
	case strings.Contains(message, "locking clause"):
		message = "FOR UPDATE and FOR SHARE lock rows, and there is nothing to lock; leave it out"
		at = (&walker{text: text, tokens: tokens}).wordAt("for")
	}
	if at == len(text) && at > 0 {
		message += " (the query ends too early)"
	}
	if at < 0 {
		if m := nearText.FindStringSubmatch(message); m != nil {
			at = strings.Index(text, m[1])
		}
	}
	return planErrorf(code, at, "%s", message)
}
