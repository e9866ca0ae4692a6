package duckdb

import (
	"context"
	"strings"
	"sync"
)

// queryGate is the gate for queries.
type queryGate struct {
	mu   sync.Mutex
	conn *conn
}

func openQueryGate(_ context.Context, i *instance, _ Options) (*queryGate, error) {
	c, err := i.connect()
	if err != nil {
		return nil, err
	}
	return &queryGate{conn: c}, nil
}

func (g *queryGate) close() { g.conn.close() }

// check gives the text as the engine may have it.
func (g *queryGate) check(ctx context.Context, sql string) (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	text := flattenSpaces(sql)
	query := text[explained(text):]
	rows, err := g.conn.query(ctx, "SELECT json_serialize_sql("+quoteLiteral(query)+")::VARCHAR")
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(rows[0][0], `{"error":false`) {
		return "", notAQuery(0)
	}
	return text, nil
}

// explained gives the place of the query in EXPLAIN [ANALYZE] [(options)] query,
// 0 when the text is no EXPLAIN. json_serialize_sql reads SELECT alone, SHOW,
// DESCRIBE and SUMMARIZE included, which the engine's parser makes one of.
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
	if at("(") {
		// EXPLAIN (SELECT 1) has a query here, which begins like one.
		options := i + 1
		if options < len(tokens) && (tokens[options].is(text, "analyze") || tokens[options].is(text, "format")) {
			for i < len(tokens) && !at(")") {
				i++
			}
			i++
		}
	}
	if i >= len(tokens) {
		return len(text)
	}
	return tokens[i].at
}
