package duckdb

import (
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// selectNode walks one SELECT. Its layers count for what is under it: one for a
// GROUP BY or aggregates without one, one for window functions.
func (w *walker) selectNode(n object) {
	if len(list(n, "group_sets")) > maxGroupSets {
		w.refuse(viewkeeper.CodeComplexity, -1, "GROUP BY makes more than %d grouping sets", maxGroupSets)
		return
	}
	if items := len(list(n, "select_list")); items > maxColumns {
		// The engine makes equal names different in quadratic time: 30,000 of them took
		// it over 10 s, so that they are counted before it sees them.
		w.refuse(viewkeeper.CodeComplexity, -1, "a SELECT list has %d columns; the limit is %d", items, maxColumns)
		return
	}
	if len(list(n, "group_expressions")) > 0 || str(n, "aggregate_handling") == "FORCE_AGGREGATES" || w.aggregates(n) {
		w.layers++
	}
	if hasWindow(n) {
		w.layers++
	}
	w.noteLayers()
	if w.macro.IsZero() {
		w.scope = len(w.out.Scopes)
		w.out.Scopes = append(w.out.Scopes, registry.Scope{Parent: w.parent, Output: w.output, SetOperation: w.setOp})
	}
	scope := w.scope

	w.clause = "join"
	w.from(child(n, "from_table"))
	w.clause = "select"
	for _, item := range objects(n, "select_list") {
		w.selectItem(item)
	}
	w.clause = "where"
	w.expr(child(n, "where_clause"))
	w.clause = "group"
	w.expressions(n, "group_expressions")
	w.clause = "having"
	w.expr(child(n, "having"))
	w.clause = "qualify"
	w.expr(child(n, "qualify"))
	w.sample(child(n, "sample"))
	w.scope = scope
}

func (w *walker) selectItem(item object) {
	if w.scope >= 0 {
		s := &w.out.Scopes[w.scope]
		if hasStar(item) {
			s.Star = true
		}
		if str(item, "class") != "STAR" {
			i := registry.Item{Name: str(item, "alias"), At: place(item)}
			i.Aliased = i.Name != ""
			if names := strs(item, "column_names"); !i.Aliased && len(names) > 0 {
				i.Name = names[len(names)-1]
			}
			s.Items = append(s.Items, i)
		}
	}
	w.expr(item)
}

// sample walks a TABLESAMPLE or USING SAMPLE. Without a seed it is random.
func (w *walker) sample(s object) {
	if s == nil {
		return
	}
	if seed, ok := s["seed"].(float64); !ok || seed < 0 {
		w.noteVolatile(w.wordAt("sample", "tablesample"), "a sample without a seed", givesRandom+"; give it one with REPEATABLE (n)")
	}
}

// wordAt finds a word in the text, for what the parser gives no place for.
func (w *walker) wordAt(words ...string) int {
	if !w.macro.IsZero() {
		return -1
	}
	for _, t := range w.tokens {
		for _, word := range words {
			if t.is(w.text, word) {
				return t.at
			}
		}
	}
	return -1
}

// hasWindow reports whether a SELECT computes a window function itself.
func hasWindow(n object) bool {
	found := false
	var look func(object)
	look = func(e object) {
		if found = found || str(e, "class") == "WINDOW"; !found {
			visitExpressions(e, look)
		}
	}
	for _, e := range objects(n, "select_list") {
		look(e)
	}
	look(child(n, "qualify"))
	for _, m := range objects(n, "modifiers") {
		for _, o := range objects(m, "orders") {
			look(child(o, "expression"))
		}
	}
	return found
}

// aggregates reports whether a SELECT computes an aggregate itself. One that a macro
// of the base hides is not seen.
func (w *walker) aggregates(n object) bool {
	found := false
	var look func(object)
	look = func(e object) {
		if str(e, "class") == "FUNCTION" && w.gate.functions.aggregates[viewkeeper.Fold(str(e, "function_name"))] {
			found = true
		}
		if !found {
			visitExpressions(e, look)
		}
	}
	for _, e := range objects(n, "select_list") {
		look(e)
	}
	look(child(n, "having"))
	return found
}

// hasStar reports whether an item expands to columns that the text does not name.
func hasStar(e object) bool {
	found := str(e, "class") == "STAR"
	visitExpressions(e, func(c object) { found = found || hasStar(c) })
	return found
}
