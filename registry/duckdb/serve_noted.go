package duckdb

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// begin starts a query's transaction on its own connection, and says which version it
// sees. All that the query may name is made there.
//
// While nothing is noted that is a BEGIN and a look. An Apply that notes moves noting
// before it commits, and the last view that is made moves it after: so when it is even
// and the same before the transaction and after its snapshot was taken, the snapshot
// has no noted view. Otherwise what the query may name is made first, and the
// snapshot is taken before anybody can change anything.
func (a *applied) begin(ctx context.Context, c *conn, q *checkedQuery) (appliedAt, error) {
	before := a.noting.Load()
	if before%2 == 0 {
		at, err := beginAt(ctx, c)
		if err != nil || a.noting.Load() == before {
			return at, err
		}
		if err := c.script(ctx, "ROLLBACK"); err != nil {
			return appliedAt{}, err
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return appliedAt{}, ErrClosed
	}
	if err := a.make(ctx, a.named(q)); err != nil {
		return appliedAt{}, err
	}
	return beginAt(ctx, c)
}

// make makes noted views with what they read. One that the engine refuses stays noted;
// the query then finds that it is not there, and whoever gives it again learns why.
// mu is held.
func (a *applied) make(ctx context.Context, names []viewkeeper.Name) error {
	err := a.makeAll(ctx, names)
	if registry.AsRefused(err) == nil || len(names) == 1 {
		return notRefused(err)
	}
	for _, name := range names {
		if err := notRefused(a.makeAll(ctx, []viewkeeper.Name{name})); err != nil {
			return err
		}
	}
	return nil
}

func notRefused(err error) error {
	if registry.AsRefused(err) != nil {
		return nil
	}
	return err
}

// makeAll makes noted views, all or none.
func (a *applied) makeAll(ctx context.Context, names []viewkeeper.Name) error {
	if len(names) == 0 {
		return nil
	}
	p := a.newPlan(false)
	p.asks = names
	return a.carryOut(ctx, p, a.version)
}

// named gives the noted views that a query may name, in the order in which they were
// given: those whose name is a word of the text (more than it reads, perhaps), or one
// of what the gate found that it reads, or a macro of the base. A text that may list
// what there is names them all.
func (a *applied) named(q *checkedQuery) []viewkeeper.Name {
	words := map[string]bool{}
	for _, r := range q.walker.refs {
		words[r.View] = true
	}
	text := q.text
	tokens := lex(text)
	for i, t := range tokens {
		name, ok := t.name(text)
		if !ok {
			continue
		}
		name = viewkeeper.Fold(name)
		if lists(name) || name == "describe" && (i+1 == len(tokens) || tokens[i+1].is(text, ")") || tokens[i+1].is(text, ";")) {
			return a.inOrder(func(viewkeeper.Name) bool { return true })
		}
		words[name] = true
	}
	for _, m := range a.gate.gate.base.described.Macros {
		for _, r := range m.References {
			words[r.View] = true
		}
	}
	return a.inOrder(func(n viewkeeper.Name) bool { return words[n.View] })
}

// lists reports whether a query with this word may show which views there are.
func lists(word string) bool {
	return word == "show" || word == "tables" || word == "information_schema" || strings.HasPrefix(word, "duckdb_") ||
		strings.HasPrefix(word, "pg_") || strings.HasPrefix(word, "sqlite_") || strings.HasPrefix(word, "pragma_")
}

func (a *applied) inOrder(want func(viewkeeper.Name) bool) []viewkeeper.Name {
	var out []viewkeeper.Name
	for n := range maps.Keys(a.notes) {
		if want(n) {
			out = append(out, n)
		}
	}
	slices.SortFunc(out, func(x, y viewkeeper.Name) int {
		return cmp.Or(cmp.Compare(a.notes[x].place, a.notes[y].place), x.Compare(y))
	})
	return out
}
