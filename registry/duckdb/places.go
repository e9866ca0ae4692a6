package duckdb

import (
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// tokenAt gives the index of the token that begins at a place, or -1.
func (w *walker) tokenAt(at int) int {
	i, found := slices.BinarySearchFunc(w.tokens, at, func(t token, at int) int { return t.at - at })
	if !found {
		return -1
	}
	return i
}

// nameAt finds the tokens of a relation's name from the place that the parser
// gives, and returns the place of the whole name. The tokens must spell that name,
// or the place is not trusted: -1.
func (w *walker) nameAt(at int, schema, name string) (int, int) {
	i := w.tokenAt(at)
	if i < 0 {
		return -1, -1
	}
	want := []string{name}
	if schema != "" {
		want = []string{schema, name}
	}
	end := -1
	for k, part := range want {
		if k > 0 {
			if i >= len(w.tokens) || !w.tokens[i].is(w.text, ".") {
				return -1, -1
			}
			i++
		}
		if i >= len(w.tokens) || !w.spells(w.tokens[i], part) {
			return -1, -1
		}
		end = w.tokens[i].end
		i++
	}
	return at, end
}

// spells reports whether a token stands for a name, which is folded. FROM 't' is
// another way to write FROM "t".
func (w *walker) spells(t token, name string) bool {
	if got, ok := t.name(w.text); ok {
		return viewkeeper.Fold(got) == name
	}
	return t.kind == tokenString
}
