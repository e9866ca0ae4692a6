package duckdb

import (
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// call walks a function in an expression.
func (w *walker) call(n object) int {
	at := location(n)
	if flag(n, "export_state") {
		w.refuse(viewkeeper.CodeNotAllowed, at, "EXPORT_STATE %s", ownInternals)
		return 0
	}
	if m := w.baseMacro(n); m != nil {
		return w.follow(m, n, at)
	}
	name := w.function(n, at)
	size := 1
	e := w.gate.engineMacro(name)
	if e == nil {
		size += w.fields(n, expressionFields["FUNCTION"])
	} else {
		size += e.fixed + w.expr(child(n, "filter")) + w.fields(n, []field{{"order_bys", ordered}})
		for i, c := range objects(n, "children") {
			size += max(1, e.uses(i)) * w.expr(c)
		}
		w.bounded(size, at, name)
	}
	w.amplifies(n, name, at)
	return size
}

// baseMacro finds the macro of the base that a call means, or nil. Without a
// schema that is one of main; a definition's own schema does not count, since the
// engine would not look there.
func (w *walker) baseMacro(n object) *macro {
	schema, name := str(n, "schema"), str(n, "function_name")
	if str(n, "catalog") != "" {
		schema = ""
	}
	if m := w.gate.base.macros[viewkeeper.MakeName(schema, name)]; m != nil {
		return m
	}
	// x.addone() may be a method call on a column x.
	return w.gate.base.macros[viewkeeper.MakeName("", name)]
}

// function judges the name of a function that is not the base's, and gives it
// folded.
func (w *walker) function(n object, at int) string {
	schema, name := viewkeeper.Fold(str(n, "schema")), viewkeeper.Fold(str(n, "function_name"))
	if schema == "pg_catalog" && name != "pg_typeof" {
		w.refuse(viewkeeper.CodeNotAllowed, at, "pg_catalog.%s() %s", name, nodeLocal)
		return name
	}
	// Any other name before it may be that of a column: what.is() calls is(what).
	if schema != "" && schema != "main" && schema != "system" && w.scope >= 0 && str(n, "catalog") == "" {
		w.column(object{"column_names": []any{str(n, "schema")}, "query_location": n["query_location"]})
	}
	j := w.gate.functions.scalar[name]
	if e := w.gate.engineMacro(name); e != nil && j.standing == unlisted {
		j = e.judgement
	}
	if name == "age" && len(list(n, "children")) == 1 {
		j = judgement{standing: volatile, reason: dependsOnTime + "; give it two arguments"}
	}
	if args := objects(n, "children"); name == "timezone" && len(args) == 2 && str(child(args[1], "cast_type"), "id") == "TIME WITH TIME ZONE" {
		// A time of day has no date, so the zone's offset is that of today.
		j = judgement{standing: volatile, reason: dependsOnTime + " when it moves a TIME WITH TIME ZONE; use a TIMESTAMP WITH TIME ZONE"}
	}
	w.judged(j, name+"()", at)
	if strings.HasPrefix(name, "list_aggr") || strings.HasPrefix(name, "array_aggr") || name == "aggregate" {
		w.namedAggregate(n, at)
	}
	return name
}

func (w *walker) judged(j judgement, what string, at int) {
	switch j.standing {
	case volatile:
		w.noteVolatile(at, what, j.reason)
	case refused:
		if w.mode == forQuery && j.queries {
			return // a client may ask what there is
		}
		if w.mode == forQuery && j.reason == nodeLocal {
			j.reason = nodeSetting
		}
		if w.mode == forBase {
			w.noteVolatile(at, what, j.reason)
		}
		w.refuse(viewkeeper.CodeNotAllowed, at, "%s %s", what, j.reason)
	}
}

// namedAggregate judges the aggregate that list_aggregate(l, 'name') names.
func (w *walker) namedAggregate(n object, at int) {
	args := objects(n, "children")
	if len(args) < 2 {
		return
	}
	name, ok := literal(args[1])
	if !ok {
		w.refuse(viewkeeper.CodeNotAllowed, at, "the aggregate's name must be a literal here")
		return
	}
	w.judged(w.gate.functions.scalar[viewkeeper.Fold(name)], name+"()", at)
}

// tableFunction walks a function in a FROM clause.
func (w *walker) tableFunction(n object) {
	at, name := location(n), viewkeeper.Fold(str(n, "function_name"))
	if m := w.baseMacro(n); m != nil && m.table {
		w.follow(m, n, at) // what its body scans counts
		return
	}
	w.out.Leaves++
	reader := slices.Contains(fileReaders, name)
	j := w.gate.functions.table[name]
	if e := w.gate.engineMacro(name); e != nil && j.standing == unlisted {
		j = e.judgement
	}
	switch {
	case !w.macro.IsZero() && j.reason == readsRaw:
		// The base grants what its macros read; the lock-down bounds it.
	default:
		if j.standing == unlisted && w.gate.functions.scalar[name].standing == refused {
			j = w.gate.functions.scalar[name]
		}
		w.judged(j, name+"()", at)
	}
	for i, arg := range objects(n, "children") {
		option, value := "", arg
		if str(arg, "class") == "COMPARISON" && len(strs(child(arg, "left"), "column_names")) == 1 {
			option, value = strs(child(arg, "left"), "column_names")[0], child(arg, "right")
		} else if alias := str(arg, "alias"); alias != "" {
			option = alias
		}
		switch {
		case reader && i == 0 && option == "":
			w.paths(name, value, at)
		case reader && option != "":
			w.readerOption(name, viewkeeper.Fold(option), value, at)
		}
		w.expr(value)
	}
}

// readerOption looks at a named argument of a file reader.
func (w *walker) readerOption(reader, option string, value object, at int) {
	switch option {
	case "store_rejects", "rejects_table", "rejects_scan", "encryption_config":
		w.refuse(viewkeeper.CodeNotAllowed, at, "%s with %s keeps state beyond the query; leave it out", reader, option)
	case "columns", "types", "dtypes", "column_types":
		// Types are named in text here.
		visitExpressions(value, func(c object) {
			if name, ok := literal(c); ok {
				w.typeName("", "", name)
			}
		})
	}
}

// follow walks the body of a macro of the base in place of its call.
func (w *walker) follow(m *macro, n object, at int) int {
	args := objects(n, "children")
	sizes := make([]int, len(args))
	for i, a := range args {
		sizes[i] = w.expr(a)
	}
	if w.err != nil {
		return 0
	}
	if w.macroDepth >= maxMacroDepth {
		w.refuse(viewkeeper.CodeComplexity, at, "the macro %s calls itself, or goes more than %d macros deep", m.name, maxMacroDepth)
		return 0
	}
	saved, macro, macroAt, parameters := w.position, w.macro, w.macroAt, w.parameters
	defer func() {
		w.position, w.macro, w.macroAt, w.parameters = saved, macro, macroAt, parameters
		w.macroDepth--
	}()
	w.macroDepth++
	if w.macro.IsZero() {
		w.macro, w.macroAt = m.name, at
		w.macros[m.name] = true
		w.calls = append(w.calls, at)
	}
	w.scope, w.lambdas = -1, nil
	size := 1
	for _, b := range m.bodies {
		if len(args) > len(b.parameters) || len(args) < b.required() && len(m.bodies) > 1 {
			continue // another overload
		}
		w.parameters = map[string]int{}
		for i, p := range b.parameters {
			w.parameters[p.name] = 1
			if i < len(sizes) && str(args[i], "alias") == "" {
				w.parameters[p.name] = sizes[i]
			} else if p.fallback != nil {
				w.parameters[p.name] = w.expr(p.fallback)
			}
		}
		for i, a := range args {
			if name := viewkeeper.Fold(str(a, "alias")); name != "" {
				w.parameters[name] = sizes[i]
			}
		}
		if m.table {
			w.queryNode(b.tree)
		} else {
			size += w.expr(b.tree)
		}
	}
	w.bounded(size, at, m.name.String())
	return size
}

// bounded refuses a macro call that expands to more than the binder can take.
func (w *walker) bounded(size, at int, name string) {
	if size > maxExpansion {
		w.refuse(viewkeeper.CodeComplexity, at, "the call of %s expands to %d expressions, since the macro uses its arguments more than once; the limit is %d", name, size, maxExpansion)
	}
}
