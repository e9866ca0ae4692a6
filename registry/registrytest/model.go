package registrytest

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Model is a planner in plain Go. Its dialect is a subset of the engine's, with
// the engine's own rules for types and names on that subset:
//
//	[WITH name AS (query), ...]
//	SELECT [DISTINCT] item, ... FROM source [, source | JOIN source USING (...) | ON condition | NATURAL JOIN source]
//	  [WHERE ...] [GROUP BY ... | ALL] [HAVING ...] [ORDER BY ...] [LIMIT n]
//	query UNION [ALL] | EXCEPT | INTERSECT query
//
// with columns, *, alias.*, numbers, texts, + - * / %, comparisons, AND, OR, NOT,
// IS NULL, IN and EXISTS with a subquery, casts, and sum, avg, count, max, min,
// upper, lower, length; random and now are its volatile functions. Whatever else
// there is it refuses with code NOT_ALLOWED and a message that says "the model
// planner does not know": so a caller can tell a no of the model from a no of the
// dialect, see [Unknown].
//
// It has no macros, types, files or limits. Like every planner it serves one
// caller at a time.
type Model struct {
	base map[viewkeeper.Name][]viewkeeper.Column
	// kept is the scratch catalog; trial, when not nil, what Bind changed since
	// the last Settle, where nil columns are a stub that is gone.
	kept   map[viewkeeper.Name][]viewkeeper.Column
	trial  map[viewkeeper.Name][]viewkeeper.Column
	closed bool
}

var _ registry.Planner = (*Model)(nil)

// NewModel makes a model whose base holds the given relations.
func NewModel(base ...registry.Relation) *Model {
	m := &Model{
		base: map[viewkeeper.Name][]viewkeeper.Column{},
		kept: map[viewkeeper.Name][]viewkeeper.Column{},
	}
	for _, r := range base {
		m.base[r.Name] = slices.Clone(r.Columns)
	}
	return m
}

// Relation makes a base relation from a name and name, type pairs:
// Relation("main.t", "a", "INTEGER", "b", "VARCHAR"). It panics on a malformed
// name or an odd number of texts, which is the test's own mistake.
func Relation(name string, columns ...string) registry.Relation {
	n, err := viewkeeper.ParseName(name)
	if err != nil {
		panic(err)
	}
	r := registry.Relation{Name: n}
	for pair := range slices.Chunk(columns, 2) {
		r.Columns = append(r.Columns, viewkeeper.Column{Name: pair[0], Type: pair[1]})
	}
	return r
}

// Unknown reports whether err is the model's "I do not know this", which says
// nothing about the dialect.
func Unknown(err *registry.PlanError) bool {
	return err != nil && err.Code == viewkeeper.CodeNotAllowed
}

// Describe names the engine "model 1" and lists the base.
func (m *Model) Describe(ctx context.Context) (*registry.Engine, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	e := &registry.Engine{Name: "model 1", Answers: "model"}
	h := sha256.New()
	for _, n := range slices.SortedFunc(maps.Keys(m.base), viewkeeper.Name.Compare) {
		e.Relations = append(e.Relations, registry.Relation{Name: n, Columns: slices.Clone(m.base[n])})
		fmt.Fprintf(h, "%s %q\n", n, m.base[n])
	}
	e.BaseDigest = hex.EncodeToString(h.Sum(nil))
	return e, nil
}

// Parse analyses the queries.
func (m *Model) Parse(ctx context.Context, queries []registry.Query) ([]registry.Parsed, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	out := make([]registry.Parsed, len(queries))
	for i, q := range queries {
		tree, err := parseQuery(q.Text)
		if err != nil {
			out[i] = registry.Parsed{Err: err}
			continue
		}
		p := analyse(tree)
		if q.Strict && p.Volatile != nil {
			p = registry.Parsed{Err: p.Volatile}
		}
		out[i] = p
	}
	return out, nil
}

// Bind plans the queries over the base and the stubs.
func (m *Model) Bind(ctx context.Context, stubs []registry.Stub, queries []registry.Query) ([]registry.Bound, error) {
	if err := m.ready(ctx); err != nil {
		return nil, err
	}
	if m.trial == nil {
		m.trial = map[viewkeeper.Name][]viewkeeper.Column{}
	}
	for _, s := range stubs {
		m.trial[s.Name] = slices.Clone(s.Columns)
	}
	out := make([]registry.Bound, len(queries))
	for i, q := range queries {
		tree, err := parseQuery(q.Text)
		if err != nil {
			out[i].Err = err
			continue
		}
		cols, err := bindQuery(tree, q.Columns, m.find)
		if err != nil {
			out[i].Err = err
			continue
		}
		out[i].Columns = cols
		if q.Parquet {
			out[i].Parquet = parquetColumns(cols)
		}
	}
	return out, nil
}

func (m *Model) find(n viewkeeper.Name) ([]viewkeeper.Column, bool) {
	if cols, ok := m.trial[n]; ok {
		return cols, cols != nil
	}
	if cols, ok := m.kept[n]; ok {
		return cols, true
	}
	cols, ok := m.base[n]
	return cols, ok
}

// parquetColumns gives the types after a Parquet round trip: HUGEINT is stored as
// DOUBLE.
func parquetColumns(cols []viewkeeper.Column) []viewkeeper.Column {
	out := slices.Clone(cols)
	for i := range out {
		if upperType(out[i].Type) == "HUGEINT" {
			out[i].Type = "DOUBLE"
		}
	}
	return out
}

// Settle ends the trial.
func (m *Model) Settle(ctx context.Context, keep bool) error {
	if err := m.ready(ctx); err != nil {
		return err
	}
	if keep {
		for n, cols := range m.trial {
			if cols == nil {
				delete(m.kept, n)
			} else {
				m.kept[n] = cols
			}
		}
	}
	m.trial = nil
	return nil
}

// Reset empties the scratch catalog.
func (m *Model) Reset(ctx context.Context) error {
	if err := m.ready(ctx); err != nil {
		return err
	}
	m.trial = nil
	clear(m.kept)
	return nil
}

// Close makes every later call an error.
func (m *Model) Close() error {
	m.closed = true
	return nil
}

func (m *Model) ready(ctx context.Context) error {
	if m.closed {
		return &registry.LostError{Detail: "the model planner is closed"}
	}
	return ctx.Err()
}
