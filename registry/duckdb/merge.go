package duckdb

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

var _ registry.Merger = (*Planner)(nil)

// mergeTime bounds the trials of one merge query. They take some milliseconds; what
// takes longer, also on a machine with much else to do, is not worth knowing. What does
// not listen to an interrupt meets the deadline of the engine's process, as when it is
// planned.
const mergeTime = 5 * time.Second

// MergeTwice runs each merge query over made-up rows and over what it made of them.
// For M = merge(rows) it must hold that merge(M) = M, since merged partitions are
// merged again.
//
// Made-up rows need not be such as the extract query could give, and a query that
// is right on real rows may be wrong on them. It must not be refused, so
//
//   - only queries of a simple shape are tried, see [shape]: their result depends
//     neither on the order of the rows nor on what else is in the table;
//   - a counterexample is believed only if every sample gives one (merge_rows.go): the
//     first is two equal rows of ones, which are within nearly any rule that holds
//     between columns, min <= max, sum = n * mean, end >= begin;
//   - a sample counts for nothing where the query fails, gives no rows, gives NaN or
//     infinity, or gives other rows when its input comes in another order;
//   - numbers with a fraction are compared with a tolerance, the order of rows not
//     at all, and types of which no values are made not at all.
//
// What it does not try to find: merge(A and B) = merge(merge(A) and merge(B)) for A and
// B of different times. It would show an average of averages, but only on rows of
// different values, and of those none can be said to be within the rules of somebody
// else's data.
func (p *Planner) MergeTwice(ctx context.Context, merges []registry.Merge) ([]registry.Algebra, error) {
	out := make([]registry.Algebra, len(merges))
	err := p.call(ctx, func() error {
		for i, m := range merges {
			var err error
			if out[i], err = p.mergeTwice(ctx, m); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (p *Planner) mergeTwice(ctx context.Context, m registry.Merge) (registry.Algebra, error) {
	text, why, err := p.mergeText(ctx, m)
	if err != nil || why != "" {
		return registry.Algebra{Unknown: why}, err
	}
	// A connection of its own: what fails while it runs aborts a transaction, and
	// that of the scratch catalog may hold a trial.
	c, err := p.instance.connect()
	if err != nil {
		return registry.Algebra{}, err
	}
	defer c.close()
	short, cancel := context.WithTimeout(ctx, mergeTime)
	defer cancel()
	t := &mergeTrial{conn: c, text: text, columns: m.Columns}
	answer, err := t.run(short)
	if err != nil && ctx.Err() == nil && short.Err() != nil && registry.AsLost(err) == nil {
		return registry.Algebra{Unknown: "the query took too long"}, nil
	}
	return answer, err
}

// mergeText gives a function that writes the query over another table, or says why
// the query is not tried.
func (p *Planner) mergeText(ctx context.Context, m registry.Merge) (func(table string) string, string, error) {
	w, refusal, err := p.gate.walk(ctx, m.Query.Text, forDefinition)
	if err != nil {
		return nil, "", err
	}
	if refusal != nil {
		return nil, refusal.Message, nil
	}
	tree, refusal, err := p.gate.tree(ctx, w.text, w.tokens, forDefinition)
	if err != nil {
		return nil, "", err
	}
	if refusal != nil {
		return nil, refusal.Message, nil
	}
	if why := w.shape(tree, m.Source); why != "" {
		return nil, why, nil
	}
	body := withoutEnd(w.text, w.tokens)
	at, end := w.refs[0].At, w.refs[0].End
	return func(table string) string { return body[:at] + table + body[end:] }, "", nil
}

// shape says why a query is none that can be judged by made-up rows, or is "". It can
// be when it reads source at one place, once, and nothing else, and has no clause
// that picks rows by their place among the others.
func (w *walker) shape(tree object, source viewkeeper.Name) string {
	switch {
	case len(w.refs) != 1 || w.refs[0].At < 0 || w.refs[0].Schema != source.Schema || w.refs[0].View != source.View || w.out.Leaves != 1:
		return "the query does not read {source} alone, at one place"
	case w.out.Joins > 0:
		return "the query has a join"
	}
	for _, c := range w.ctes {
		if len(c.uses) > 1 {
			return "the query reads " + c.name + " more than once"
		}
	}
	return unjudged(tree)
}

// unjudged finds a part of a tree whose result hangs on the order of rows, or on how
// many there are.
func unjudged(v any) string {
	switch v := v.(type) {
	case []any:
		for _, c := range v {
			if why := unjudged(c); why != "" {
				return why
			}
		}
	case object:
		if str(v, "class") == "WINDOW" {
			return "the query has a window function"
		}
		switch kind := str(v, "type"); kind {
		case "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER", "PIVOT", "SHOW_REF", "TABLE_FUNCTION", "JOIN", "RECURSIVE_CTE_NODE":
			return "the query has a " + kind
		}
		if !empty(v["sample"]) || !empty(v["qualify"]) {
			return "the query has a sample, or QUALIFY"
		}
		for _, c := range v {
			if why := unjudged(c); why != "" {
				return why
			}
		}
	}
	return ""
}

// mergeTrial runs one merge query over the samples.
type mergeTrial struct {
	conn    *conn
	text    func(table string) string
	columns []viewkeeper.Column
}

func (t *mergeTrial) run(ctx context.Context) (registry.Algebra, error) {
	if err := t.conn.exec(ctx, "PRAGMA disable_optimizer"); err != nil {
		return registry.Algebra{}, err
	}
	var counter *registry.Counterexample
	believed := 0
	for i, s := range mergeSamples() {
		c, why, err := t.try(ctx, s)
		switch {
		case err != nil:
			return registry.Algebra{}, err
		case why != "" && i == 0:
			return registry.Algebra{Unknown: why}, nil
		case why != "":
			continue
		case c == nil:
			return registry.Algebra{}, nil
		}
		if counter == nil {
			counter = c
		}
		believed++
	}
	if believed < 2 {
		return registry.Algebra{Unknown: "only one sample of rows says so"}, nil
	}
	return registry.Algebra{Counter: counter}, nil
}

// mostMerged is the most rows that are looked at: a few come from a few.
const mostMerged = 100

// try runs the query over one sample. It gives nil when merging twice changes
// nothing, and a reason when the sample says nothing.
func (t *mergeTrial) try(ctx context.Context, s []madeRow) (c *registry.Counterexample, why string, err error) {
	if err := t.conn.exec(ctx, "BEGIN"); err != nil {
		return nil, "", err
	}
	defer func() {
		if e := t.conn.exec(context.WithoutCancel(ctx), "ROLLBACK"); err == nil && e != nil {
			err = e
		}
	}()
	unknown := func(err error) (*registry.Counterexample, string, error) {
		why, err := notItsFault(err)
		return nil, why, err
	}
	if err := t.make(ctx, "made", rowsQuery(t.columns, s)); err != nil {
		return unknown(err)
	}
	once, err := t.merge(ctx, "made", "once")
	if err != nil {
		return unknown(err)
	}
	if len(once) == 0 || len(once) > mostMerged {
		return nil, fmt.Sprintf("the query gave %d rows", len(once)), nil
	}
	twice, err := t.merge(ctx, "once", "twice")
	if err != nil {
		return unknown(err)
	}
	c = t.difference(once, twice)
	if c == nil {
		return nil, "", nil
	}
	if !t.finite(once) || !t.finite(twice) {
		return nil, "the query gave a number that is none", nil
	}
	for _, table := range []struct {
		name   string
		result []mergedRow
	}{{"made", once}, {"once", twice}} {
		if err := t.make(ctx, table.name+"_back", "SELECT * FROM temp."+table.name+" ORDER BY rowid DESC"); err != nil {
			return unknown(err)
		}
		back, err := t.merge(ctx, table.name+"_back", table.name+"_other")
		if err != nil {
			return unknown(err)
		}
		if t.difference(table.result, back) != nil {
			return nil, "the query's result hangs on the order of its rows", nil
		}
	}
	return c, "", nil
}

// make makes a table of a query's rows. They go when the transaction is rolled back.
func (t *mergeTrial) make(ctx context.Context, table, query string) error {
	return t.conn.exec(ctx, "CREATE TEMP TABLE "+table+" AS (SELECT * FROM (\n"+query+"\n) LIMIT "+fmt.Sprint(mostMerged+1)+")")
}

// merge runs the query over a table, and keeps and gives what comes out.
func (t *mergeTrial) merge(ctx context.Context, from, into string) ([]mergedRow, error) {
	if err := t.make(ctx, into, t.text("temp."+from)); err != nil {
		return nil, err
	}
	return t.conn.query(ctx, "SELECT coalesce('=' || CAST(COLUMNS(*) AS VARCHAR), 'NULL') FROM temp."+into)
}

// notItsFault turns an error of a query over made-up rows, which proves nothing, into
// a reason. Any other error stays one.
func notItsFault(err error) (string, error) {
	var e *engineError
	if !errors.As(err, &e) {
		return "", err
	}
	if lost := lostEngine(e); lost != nil {
		return "", lost
	}
	return "over made-up rows the query fails: " + tidy(e.Message), nil
}
