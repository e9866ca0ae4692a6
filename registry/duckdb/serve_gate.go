package duckdb

import (
	"context"
	"strings"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// queryGate is the gate for the queries of a server. Queries come at the same time,
// and the gate takes one at a time; it has each for a fraction of a millisecond, and a
// text that it has let through before for none.
type queryGate struct {
	known checkedQueries

	mu   sync.Mutex
	gate *gate
}

func openQueryGate(ctx context.Context, i *instance, opts Options) (*queryGate, error) {
	g, err := openGate(ctx, i, opts.Limits)
	if err != nil {
		return nil, err
	}
	return &queryGate{gate: g}, nil
}

func (g *queryGate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate.close()
}

// checkedQuery is a query that is through the gate. It does not change any more, and
// several runs of it may share it.
type checkedQuery struct {
	sql string // as submitted
	// text is what the engine gets: the query as submitted, with the paths of files
	// written out in full, and what stands before it.
	text   string
	start  int // where the query begins, behind EXPLAIN
	walker *walker
	places ddl.OffsetMap // from text[start:] to what was submitted there
}

// check passes a query through the gate. A refusal is a *registry.PlanError.
//
// The parser that the gate asks reads SELECT alone. SHOW, DESCRIBE and SUMMARIZE are
// SELECTs to it; of an EXPLAIN the gate gets the query behind it.
func (g *queryGate) check(ctx context.Context, sql string) (*checkedQuery, error) {
	if q := g.known.get(sql); q != nil {
		return q, nil
	}
	q, err := g.pass(ctx, sql)
	if err != nil {
		return nil, err
	}
	g.known.add(q)
	return q, nil
}

func (g *queryGate) pass(ctx context.Context, sql string) (*checkedQuery, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if refusal := precheck(sql, g.gate.limits); refusal != nil {
		return nil, refusal
	}
	text := flattenSpaces(sql)
	q := &checkedQuery{sql: sql, start: explained(text)}
	w, refusal, err := g.gate.walk(ctx, text[q.start:], forQuery)
	if err != nil {
		return nil, err
	}
	if refusal != nil {
		if refusal.Code == viewkeeper.CodeNotOneQuery {
			refusal.Message = strings.Replace(refusal.Message, "the body must", "the text must", 1) + "; " + notHere
		}
		return nil, q.shift(refusal)
	}
	w.finish()
	if n, limit := w.out.Layers, g.gate.limits.Layers; n > limit {
		return nil, planErrorf(viewkeeper.CodeComplexity, -1, "the query has %d layers of aggregation, window functions and EXISTS one in the other; the limit is %d; "+
			"make a part of it a definition, or ask in two steps", n, limit)
	}
	q.walker = w
	body, places := withFullPaths(w.text, w.files)
	q.text, q.places = text[:q.start]+body, places
	return q, nil
}

// shift moves a refusal's place from the query to the text around it.
func (q *checkedQuery) shift(refusal *registry.PlanError) *registry.PlanError {
	if refusal.At >= 0 {
		refusal.At += q.start
	}
	return refusal
}

// source gives the place in the query, as submitted, of one in q.text.
func (q *checkedQuery) source(at int) int {
	if at < q.start {
		return -1
	}
	return q.places.Source(at - q.start)
}

// fullPaths gives a definition's query with the paths of its files written out, as
// the engine must have them, and tells whether it reads files and no relation. A
// refusal is a *registry.PlanError.
func (g *queryGate) fullPaths(ctx context.Context, query string) (text string, alone bool, err error) {
	if !mayNameFiles(query) {
		return query, false, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	w, refusal, err := g.gate.walk(ctx, query, forDefinition)
	if err != nil {
		return "", false, err
	}
	if refusal != nil {
		return "", false, refusal
	}
	text, _ = withFullPaths(w.text, w.files)
	return text, len(w.files) > 0 && len(w.refs) == 0, nil
}

// notHere is the way out for whoever sends something else than a query.
const notHere = "DDL goes to statements (POST /v1/statements), and nothing else changes data here"

// explained gives the place of the query in EXPLAIN [ANALYZE] [(options)] query,
// 0 when the text is no EXPLAIN.
func explained(text string) int {
	tokens := lex(text)
	i := 0
	at := func(word string) bool { return i < len(tokens) && tokens[i].is(text, word) }
	if !at("explain") {
		return 0
	}
	i++
	for at("analyze") || at("verbose") {
		i++
	}
	if at("(") && i+1 < len(tokens) && (tokens[i+1].is(text, "analyze") || tokens[i+1].is(text, "format")) {
		// Options, and not a query in brackets, which begins like one.
		for i < len(tokens) && !at(")") {
			i++
		}
		i++
	}
	if i >= len(tokens) {
		return len(text)
	}
	return tokens[i].at
}
