package duckdb

import (
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// expressions walks a list of expressions, and gives their size.
func (w *walker) expressions(n object, key string) int {
	size := 0
	for _, e := range objects(n, key) {
		size += w.expr(e)
	}
	return size
}

// fields walks what the fields of a node hold, and gives the size of that.
func (w *walker) fields(n object, fields []field) int {
	size := 0
	for _, f := range fields {
		switch f.role {
		case expr:
			size += w.expr(child(n, f.key))
		case exprs:
			size += w.expressions(n, f.key)
		case orders:
			for _, o := range objects(n, f.key) {
				size += w.expr(child(o, "expression"))
			}
		case ordered:
			for _, o := range objects(child(n, f.key), "orders") {
				size += w.expr(child(o, "expression"))
			}
		case cases:
			for _, c := range objects(n, f.key) {
				size += w.expr(child(c, "when_expr")) + w.expr(child(c, "then_expr"))
			}
		case pairs:
			for _, p := range objects(n, f.key) {
				size += w.expr(child(p, "value"))
			}
		case typed:
			w.typeOf(child(n, f.key))
		}
	}
	return size
}

// expr walks an expression. It gives the number of nodes that the engine's binder
// will see: a macro's argument counts as often as the macro's body uses it.
func (w *walker) expr(n object) int {
	if n == nil || w.err != nil {
		return 0
	}
	class := str(n, "class")
	fields, known := expressionFields[class]
	if key := unknownField(n, fields, commonFields); !known || key != "" {
		w.unknown("an expression of kind "+class, key, location(n))
		return 0
	}
	if w.nodes++; w.nodes > maxNodes {
		w.refuse(viewkeeper.CodeComplexity, -1, "the query has more than %d expressions", maxNodes)
		return 0
	}
	nesting := w.nesting
	defer func() { w.nesting = nesting }()
	if w.deeper(location(n)) {
		return 0
	}
	switch class {
	case "COLUMN_REF":
		return w.column(n)
	case "FUNCTION":
		return w.call(n)
	case "WINDOW":
		w.function(n, location(n))
	case "PARAMETER":
		w.refuse(viewkeeper.CodeNotAllowed, w.parameterAt(), "a parameter, $%s, is left in; write its value", str(n, "identifier"))
		return 0
	case "POSITIONAL_REFERENCE":
		if !w.writes("#") {
			break // ARRAY(SELECT ...) is one to the parser
		}
		w.refuse(viewkeeper.CodeNotAllowed, location(n), "#%v names a column by its place, which shifts when a column is added; write its name", n["index"])
		return 0
	case "SUBQUERY":
		layers := 0
		if str(n, "subquery_type") == "EXISTS" {
			layers = 1
		}
		w.expr(child(n, "child"))
		w.subquery(child(n, "subquery"), location(n), layers)
		return 1
	case "LAMBDA":
		return w.lambda(n)
	case "STAR":
		if w.stars++; w.stars > maxStars {
			w.refuse(viewkeeper.CodeComplexity, location(n), "more than %d stars; name the columns", maxStars)
			return 0
		}
	}
	return 1 + w.fields(n, fields)
}

// column walks a column's name.
func (w *walker) column(n object) int {
	names := strs(n, "column_names")
	if len(names) == 0 {
		return 1
	}
	first := viewkeeper.Fold(names[0])
	if len(names) == 1 {
		if size, ok := w.parameters[first]; ok {
			return size
		}
	}
	if w.lambdas.binds(first) {
		return 1
	}
	at := location(n)
	if j, special := specialColumns[first]; special && len(names) == 1 {
		switch {
		case j.standing == volatile:
			w.noteVolatile(at, first, j.reason+"; if it is a column, name its relation too")
		case w.mode == forDefinition:
			w.refuse(viewkeeper.CodeNotAllowed, at, "%s %s; if it is a column, name its relation too", first, j.reason)
		}
	}
	if w.scope >= 0 && (len(names) == 1 || !w.isSource(first)) {
		s := &w.out.Scopes[w.scope]
		s.Columns = append(s.Columns, registry.ColumnUse{Name: names[0], At: at, Clause: w.clause})
	}
	return 1
}

// isSource reports whether a name before a dot is that of a relation of the
// current scope, and not of a struct column.
func (w *walker) isSource(name string) bool {
	for _, s := range w.out.Scopes[w.scope].Sources {
		if viewkeeper.Fold(s.Alias) == name {
			return true
		}
		if s.Reference >= 0 && s.Alias == "" && (w.refs[s.Reference].View == name || w.refs[s.Reference].Schema == name) {
			return true
		}
	}
	return false
}

// lambda walks a lambda; its parameters are no columns.
func (w *walker) lambda(n object) int {
	saved := w.lambdas
	defer func() { w.lambdas = saved }()
	l := &lambda{outer: saved, depth: 1}
	if saved != nil {
		l.depth = saved.depth + 1
	}
	if l.depth > maxLambdas {
		w.refuse(viewkeeper.CodeComplexity, location(n), "lambdas are nested more than %d deep", maxLambdas)
		return 0
	}
	lhs := child(n, "lhs")
	isLambda := true
	var parameter func(object)
	parameter = func(p object) {
		switch names := strs(p, "column_names"); {
		case str(p, "class") == "COLUMN_REF" && len(names) == 1:
			l.names = append(l.names, viewkeeper.Fold(names[0]))
		case str(p, "class") == "FUNCTION" && str(p, "function_name") == "row":
			for _, c := range objects(p, "children") {
				parameter(c)
			}
		default:
			isLambda = false
		}
	}
	parameter(lhs)
	if !isLambda {
		// The arrow is also the operator that takes a value out of JSON.
		return 1 + w.expr(lhs) + w.expr(child(n, "expr"))
	}
	if w.jsonArrow(n) {
		w.column(lhs)
		return 2 + w.expr(child(n, "expr"))
	}
	w.lambdas = l
	return 2 + w.expr(child(n, "expr"))
}

// jsonArrow reports whether x -> y is the JSON operator: with a constant on its
// right it can't be a lambda that anybody would write.
func (w *walker) jsonArrow(n object) bool {
	return str(child(n, "expr"), "class") == "CONSTANT" && str(child(n, "lhs"), "class") == "COLUMN_REF"
}

// typeOf walks a type for the user types that it names.
func (w *walker) typeOf(t object) {
	info := child(t, "type_info")
	if info == nil {
		return
	}
	if str(info, "type") == "UNBOUND_TYPE_INFO" {
		w.typeName(str(info, "catalog"), str(info, "schema"), str(info, "name"))
	}
	w.typeOf(child(info, "child_type"))
	for _, c := range objects(info, "child_types") {
		w.typeOf(child(c, "second"))
	}
	for _, m := range objects(info, "user_type_modifiers") {
		if str(m, "class") != "" {
			w.expr(m)
		}
	}
}

// typeName notes a type of the base. Any other name is the engine's to know.
func (w *walker) typeName(catalog, schema, name string) {
	if catalog != "" && w.mode != forBase {
		w.refuse(viewkeeper.CodeNotAllowed, w.wordAt(catalog), "the type %s.%s.%s names a catalog; a type is named type or schema.type", catalog, schema, name)
		return
	}
	if full := viewkeeper.MakeName(schema, name); w.gate.base.types[full] {
		w.types[full.String()] = true
	}
}

// writes reports whether the text itself has a symbol.
func (w *walker) writes(symbol string) bool {
	for _, t := range w.tokens {
		if t.kind == tokenSymbol && t.is(w.text, symbol) {
			return true
		}
	}
	return false
}

// parameterAt is the place of the first parameter: the parser gives it none.
func (w *walker) parameterAt() int {
	for _, t := range w.tokens {
		if t.kind == tokenSymbol && (w.text[t.at] == '?' || w.text[t.at] == '$') {
			return t.at
		}
	}
	return -1
}
