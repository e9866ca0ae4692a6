package duckdb

import (
	"path"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// from walks a FROM item, and gives the indexes of its sources in the current
// scope.
func (w *walker) from(n object) []int {
	if n == nil || w.err != nil {
		return nil
	}
	kind := str(n, "type")
	fields, known := tableFields[kind]
	if key := unknownField(n, fields, commonFields, []field{{"sample", sample}}); !known || key != "" {
		w.unknown("a FROM item of kind "+kind, key, location(n))
		return nil
	}
	w.sample(child(n, "sample"))
	switch kind {
	case "EMPTY":
		return nil
	case "BASE_TABLE":
		return w.source(n, w.relation(n))
	case "TABLE_FUNCTION":
		w.tableFunction(child(n, "function"))
	case "SUBQUERY":
		w.subquery(child(n, "subquery"), location(n), 0)
	case "EXPRESSION_LIST":
		for _, row := range list(n, "values") {
			items, _ := row.([]any)
			for _, v := range items {
				if e, ok := v.(object); ok {
					w.expr(e)
				}
			}
		}
	case "JOIN":
		return w.join(n)
	case "PIVOT":
		return w.pivot(n)
	case "SHOW_REF":
		w.show(n)
	}
	return w.source(n, -1)
}

// source notes one item of the current scope's FROM clause.
func (w *walker) source(n object, ref int) []int {
	if w.scope < 0 {
		return nil
	}
	s := &w.out.Scopes[w.scope]
	alias := str(n, "alias")
	if alias == "" && ref < 0 {
		// A CTE, a file or a function goes by its own name.
		alias = str(n, "table_name")
		if alias == "" {
			alias = str(child(n, "function"), "function_name")
		}
		alias, _, _ = strings.Cut(path.Base(alias), ".")
	}
	s.Sources = append(s.Sources, registry.Source{Reference: ref, Alias: alias})
	return []int{len(s.Sources) - 1}
}

func (w *walker) join(n object) []int {
	w.out.Joins++
	if w.out.Joins > w.gate.limits.Joins {
		w.refuse(viewkeeper.CodeComplexity, location(n), "more than %d joins", w.gate.limits.Joins)
		return nil
	}
	left := w.from(child(n, "left"))
	right := w.from(child(n, "right"))
	using := strs(n, "using_columns")
	natural := str(n, "ref_type") == "NATURAL"
	w.asof = w.asof || str(n, "ref_type") == "ASOF"
	if w.scope >= 0 && (natural || len(using) > 0) {
		s := &w.out.Scopes[w.scope]
		s.Joins = append(s.Joins, registry.Join{Natural: natural, Using: using, Left: left, Right: right, At: location(n)})
	}
	w.clause = "join"
	w.expr(child(n, "condition"))
	return slices.Concat(left, right)
}

// pivot walks PIVOT and UNPIVOT with their values listed. What pivots groups.
func (w *walker) pivot(n object) []int {
	saved := w.position
	if len(list(n, "aggregates")) > 0 {
		w.layers++
		w.noteLayers()
	}
	w.scope = -1
	if saved.scope >= 0 {
		w.parent = saved.scope
	}
	if w.deeper(location(n)) {
		return nil
	}
	w.from(child(n, "source"))
	w.expressions(n, "aggregates")
	for _, p := range objects(n, "pivots") {
		if key := unknownField(p, []field{{"pivot_expressions", exprs}, {"unpivot_names", plain}, {"entries", plain}, {"pivot_enum", plain}}); key != "" {
			w.unknown("a PIVOT", key, location(n))
		}
		w.expressions(p, "pivot_expressions")
		if enum := str(p, "pivot_enum"); enum != "" {
			w.typeName("", "", enum)
		}
		for _, e := range objects(p, "entries") {
			w.expr(child(e, "star_expr"))
		}
	}
	w.position = saved
	return w.source(n, -1) // the columns are not those of what is pivoted
}

// show refuses SHOW, DESCRIBE and SUMMARIZE in a definition. A query may use them.
func (w *walker) show(n object) {
	if w.mode == forDefinition {
		w.refuse(viewkeeper.CodeNotOneQuery, w.wordAt("show", "describe", "desc", "summarize"), "the body must be a single SELECT; SHOW, DESCRIBE and SUMMARIZE are for queries")
		return
	}
	if q := child(n, "query"); q != nil {
		w.subquery(object{"node": q}, -1, 0)
	}
}

// relation walks a name in a FROM clause. It gives the index of the reference, or
// -1 when the name is a CTE's or a file.
func (w *walker) relation(n object) int {
	at := location(n)
	schema, name := viewkeeper.Fold(str(n, "schema_name")), viewkeeper.Fold(str(n, "table_name"))
	if c := str(n, "catalog_name"); c != "" {
		w.refuse(viewkeeper.CodeNotAllowed, at, "%s.%s.%s names a catalog; a relation is named view or schema.view", c, schema, name)
		return -1
	}
	if at := child(n, "at_clause"); at != nil {
		w.refuse(viewkeeper.CodeNotAllowed, location(n), "AT (...) asks for a version of %s, and there are none; leave it out", name)
		return -1
	}
	// recurring.x is what a recursive CTE has gathered so far.
	if schema == "" || schema == "recurring" {
		if c := w.visible.find(name); c != nil {
			c.uses = append(c.uses, cteUse{w.owner, w.layers})
			return -1
		}
	}
	w.out.Leaves++
	if schema == "" && !w.gate.base.has(viewkeeper.MakeName("", name)) && looksLikeFile(name) {
		w.file(str(n, "table_name"), at)
		return -1
	}
	if w.mode == forDefinition && w.gate.base.isCatalog(schema, name) {
		w.refuse(viewkeeper.CodeNotAllowed, at, "%s %s", shown(schema, name), nodeLocal)
		return -1
	}
	if w.mode == forQuery && slices.Contains(nodeViews, name) && !w.gate.base.has(viewkeeper.MakeName(schema, name)) && (schema == "" || w.gate.base.isCatalog(schema, name)) {
		w.refuse(viewkeeper.CodeNotAllowed, at, "%s %s", shown(schema, name), nodeSetting)
		return -1
	}
	if i := w.tokenAt(at); w.mode == forDefinition && w.macro.IsZero() && i >= 0 && w.tokens[i].kind == tokenString {
		// The engine takes it for a name, but not behind a schema.
		w.refuse(viewkeeper.CodeNotAllowed, at, "%s is text, and no file; a relation's name is written %s", w.tokens[i].text(w.text), viewkeeper.QuoteIdent(name))
		return -1
	}
	ref := registry.TableRef{Schema: schema, View: name, At: -1, End: -1, Macro: w.macro, Layers: w.layers}
	if w.macro.IsZero() {
		ref.At, ref.End = w.nameAt(at, schema, name)
	}
	w.refs = append(w.refs, walkedRef{ref, w.owner})
	return len(w.refs) - 1
}

func shown(schema, name string) string {
	if schema == "" {
		return viewkeeper.QuoteIdent(name)
	}
	return viewkeeper.Name{Schema: schema, View: name}.String()
}
