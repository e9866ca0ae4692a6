package duckdb

import (
	"context"
	"errors"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// maxColumns is the most columns that a query may have. Stars over stars double
// them with every definition.
const maxColumns = 10_000

// bindAll plans each query over the stubs. First all pass the gate, then the stubs that
// they read are made.
func (p *Planner) bindAll(ctx context.Context, queries []registry.Query, out []registry.Bound) error {
	walked := make([]*walker, len(queries))
	err := p.each(len(queries), func(l *lane, i int) (err error) {
		walked[i], out[i].Err, err = l.gate.pass(ctx, queries[i])
		return err
	})
	if err != nil {
		return err
	}
	err = p.scratch.ready(ctx, func(yield func(viewkeeper.Name) bool) {
		for i, w := range walked {
			if out[i].Err != nil {
				continue
			}
			for n := range w.mayRead() {
				if !yield(n) {
					return
				}
			}
		}
	})
	if err != nil {
		return err
	}
	return p.each(len(queries), func(l *lane, i int) (err error) {
		if out[i].Err == nil {
			out[i], err = p.bind(ctx, l.conn, queries[i], walked[i])
		}
		return err
	})
}

// pass gives the walk of a query that is to be bound, or why it may not be.
func (g *gate) pass(ctx context.Context, q registry.Query) (*walker, *registry.PlanError, error) {
	if w := g.recall(q); w != nil {
		return w, nil, nil
	}
	w, refusal, err := g.walk(ctx, q.Text, forDefinition)
	if err == nil && refusal == nil {
		g.memory.add(q.Text, w)
	}
	return w, refusal, err
}

// bind plans one query that is through the gate, over the stubs that it reads.
//
// It is prepared and not run, with the optimizer off: binding is all that is
// asked for, and the optimizer's time is exponential in texts that are short.
func (p *Planner) bind(ctx context.Context, c *conn, q registry.Query, w *walker) (registry.Bound, error) {
	text, places := withFullPaths(w.text, w.files)
	columns, refusal, err := p.plan(ctx, c, w, text, places)
	if err != nil || refusal != nil {
		return registry.Bound{Err: refusal}, err
	}
	if len(q.Columns) > len(columns) {
		return registry.Bound{Err: planErrorf(viewkeeper.CodeBind, -1, "the column list has %d names, and the query gives %d columns", len(q.Columns), len(columns))}, nil
	}
	for i, name := range q.Columns {
		columns[i].Name = name
	}
	uniqueNames(columns)
	out := registry.Bound{Columns: columns}
	if q.Parquet {
		out.Parquet = afterParquet(columns)
	}
	return out, nil
}

// plan gives the columns of a query that is through the gate, in its own names.
//
// With the optimizer off the engine (1.5.6) crashes on an ASOF join over another one;
// such a query, which is rare, is planned with it, under the same timer.
func (p *Planner) plan(ctx context.Context, c *conn, w *walker, text string, places ddl.OffsetMap) (columns []viewkeeper.Column, refusal *registry.PlanError, err error) {
	if w.asof {
		if err := c.exec(ctx, "PRAGMA enable_optimizer"); err != nil {
			return nil, nil, err
		}
		defer func() {
			err = errors.Join(err, c.exec(context.WithoutCancel(ctx), "PRAGMA disable_optimizer"))
		}()
	}
	return p.planned(ctx, c, w, text, places)
}

func (p *Planner) planned(ctx context.Context, c *conn, w *walker, text string, places ddl.OffsetMap) ([]viewkeeper.Column, *registry.PlanError, error) {
	st, err := c.prepare(ctx, text)
	if err != nil {
		refusal, err := w.refusal(err, places.Source)
		if refusal != nil {
			refusal.Message = guess(refusal.Message, p.scratch.relations())
		}
		return nil, refusal, err
	}
	columns, exact := st.columns()
	st.close()
	if len(columns) > maxColumns {
		return nil, planErrorf(viewkeeper.CodeComplexity, -1, "the query gives %d columns; the limit is %d", len(columns), maxColumns), nil
	}
	tokens := w.tokens
	if len(w.files) > 0 {
		tokens = lex(text)
	}
	body := withoutEnd(text, tokens)
	if !exact {
		if columns, err = describe(ctx, c, body); err != nil {
			refusal, err := w.refusal(err, nowhere)
			return nil, refusal, err
		}
	}
	if p.mayBeUntyped(text, tokens, columns, w.mayRead()) {
		if err := findUntyped(ctx, c, body, columns); err != nil {
			refusal, err := w.refusal(err, nowhere)
			return nil, refusal, err
		}
	}
	for _, c := range columns {
		if typeDepth(c.Type) > maxResultDepth {
			return nil, planErrorf(viewkeeper.CodeComplexity, -1, "column %q: its type is nested more than %d deep", c.Name, maxResultDepth), nil
		}
	}
	return columns, nil, nil
}

// nowhere is for errors over a text of this package's own making.
func nowhere(int) int { return -1 }

// withoutEnd takes semicolons and what follows them off a text, so that it can
// stand in parentheses.
func withoutEnd(text string, tokens []token) string {
	for _, t := range tokens {
		if t.is(text, ";") {
			return text[:t.at]
		}
	}
	return strings.TrimRight(text, " \t\r\n")
}
