package duckdb

import (
	"context"
	"strings"
	"sync"

	"github.com/viewkeeper/viewkeeper"
)

// queryGate is the gate for the queries of a server. Queries come at the same time,
// and the gate takes one at a time; it has each for a fraction of a millisecond.
type queryGate struct {
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

// check gives a query's text as the engine may have it: each place in it is the
// same place in sql. A refusal is a *registry.PlanError.
//
// The parser that the gate asks reads SELECT alone. SHOW, DESCRIBE and SUMMARIZE are
// SELECTs to it; of an EXPLAIN the gate gets the query behind it.
func (g *queryGate) check(ctx context.Context, sql string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if refusal := precheck(sql, g.gate.limits); refusal != nil {
		return "", refusal
	}
	text := flattenSpaces(sql)
	start := explained(text)
	parsed, err := g.gate.parse(ctx, text[start:], forQuery, false)
	if err != nil {
		return "", err
	}
	refusal := parsed.Err
	if refusal == nil {
		return text, nil
	}
	if refusal.At >= 0 {
		refusal.At += start
	}
	if refusal.Code == viewkeeper.CodeNotOneQuery {
		refusal.Message = strings.Replace(refusal.Message, "the body must", "the text must", 1) + "; " + notHere
	}
	return "", refusal
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
