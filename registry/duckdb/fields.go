package duckdb

// What a field of a node holds. A node or a field that is not listed here is one
// that the gate does not know, and it lets nothing through that it does not know.

type role uint8

const (
	plain   role = iota // names, flags, values: nothing to walk
	expr                // an expression, or null
	exprs               // a list of expressions
	query               // a statement {"node": ...}
	queryOf             // a query node
	table               // a FROM item
	orders              // a list of {"expression": ...}
	ordered             // an ORDER_MODIFIER
	typed               // a type
	cases               // WHEN and THEN
	pairs               // a list of {"key", "value": expression}
	rows                // a list of lists of expressions
	sample              // a sample clause
)

type field struct {
	key  string
	role role
}

// common are the fields of every expression and every FROM item.
var commonFields = []field{{"class", plain}, {"type", plain}, {"alias", plain}, {"query_location", plain}}

// expressionFields lists, by class, the fields of an expression in the order that
// they are walked in.
var expressionFields = map[string][]field{
	"BETWEEN":     {{"input", expr}, {"lower", expr}, {"upper", expr}},
	"CASE":        {{"case_checks", cases}, {"else_expr", expr}},
	"CAST":        {{"child", expr}, {"cast_type", typed}, {"try_cast", plain}},
	"COLLATE":     {{"child", expr}, {"collation", plain}},
	"COLUMN_REF":  {{"column_names", plain}},
	"COMPARISON":  {{"left", expr}, {"right", expr}},
	"CONJUNCTION": {{"children", exprs}},
	"CONSTANT":    {{"value", plain}},
	"DEFAULT":     {},
	"FUNCTION": {
		{"function_name", plain}, {"schema", plain}, {"catalog", plain}, {"children", exprs}, {"filter", expr},
		{"order_bys", ordered}, {"distinct", plain}, {"is_operator", plain}, {"export_state", plain},
	},
	"LAMBDA":               {{"lhs", expr}, {"expr", expr}, {"syntax_type", plain}},
	"OPERATOR":             {{"children", exprs}},
	"PARAMETER":            {{"identifier", plain}},
	"POSITIONAL_REFERENCE": {{"index", plain}},
	"STAR": {
		{"relation_name", plain}, {"exclude_list", plain}, {"replace_list", pairs}, {"columns", plain},
		{"expr", expr}, {"qualified_exclude_list", plain}, {"rename_list", plain},
	},
	"SUBQUERY": {{"subquery_type", plain}, {"child", expr}, {"subquery", query}, {"comparison_type", plain}},
	"WINDOW": {
		{"function_name", plain}, {"schema", plain}, {"catalog", plain}, {"children", exprs}, {"partitions", exprs},
		{"orders", orders}, {"start", plain}, {"end", plain}, {"start_expr", expr}, {"end_expr", expr},
		{"offset_expr", expr}, {"default_expr", expr}, {"ignore_nulls", plain}, {"filter_expr", expr},
		{"exclude_clause", plain}, {"distinct", plain}, {"arg_orders", orders},
	},
}

// tableFields lists the fields of FROM items by type, sample and alias left out.
var tableFields = map[string][]field{
	"BASE_TABLE": {
		{"catalog_name", plain}, {"schema_name", plain}, {"table_name", plain}, {"column_name_alias", plain}, {"at_clause", plain},
	},
	"EMPTY":           {},
	"EXPRESSION_LIST": {{"values", rows}, {"expected_names", plain}, {"expected_types", plain}},
	"JOIN": {
		{"left", table}, {"right", table}, {"condition", expr}, {"join_type", plain}, {"ref_type", plain},
		{"using_columns", plain}, {"delim_flipped", plain}, {"duplicate_eliminated_columns", plain},
	},
	"PIVOT": {
		{"source", table}, {"aggregates", exprs}, {"unpivot_names", plain}, {"pivots", plain}, {"groups", plain},
		{"column_name_alias", plain}, {"include_nulls", plain},
	},
	"SHOW_REF": {
		{"table_name", plain}, {"query", queryOf}, {"show_type", plain}, {"catalog_name", plain}, {"schema_name", plain},
	},
	"SUBQUERY":       {{"subquery", query}, {"column_name_alias", plain}},
	"TABLE_FUNCTION": {{"function", expr}, {"column_name_alias", plain}, {"with_ordinality", plain}},
}

// nodeFields lists the fields of query nodes by type.
var nodeFields = map[string][]field{
	"SELECT_NODE": {
		{"modifiers", plain}, {"cte_map", plain}, {"select_list", exprs}, {"from_table", table}, {"where_clause", expr},
		{"group_expressions", exprs}, {"group_sets", plain}, {"aggregate_handling", plain}, {"having", expr},
		{"sample", sample}, {"qualify", expr},
	},
	"SET_OPERATION_NODE": {
		{"modifiers", plain}, {"cte_map", plain}, {"setop_type", plain}, {"left", queryOf}, {"right", queryOf},
		{"setop_all", plain}, {"children", plain},
	},
	"RECURSIVE_CTE_NODE": {
		{"modifiers", plain}, {"cte_map", plain}, {"cte_name", plain}, {"union_all", plain}, {"left", queryOf},
		{"right", queryOf}, {"aliases", plain}, {"key_targets", exprs},
	},
}

// modifierFields lists the fields of ORDER BY, LIMIT and DISTINCT.
var modifierFields = map[string][]field{
	"ORDER_MODIFIER":         {{"orders", orders}},
	"LIMIT_MODIFIER":         {{"limit", expr}, {"offset", expr}},
	"LIMIT_PERCENT_MODIFIER": {{"limit", expr}, {"offset", expr}},
	"DISTINCT_MODIFIER":      {{"distinct_on_targets", exprs}},
}

// unknownField gives a field of n that is set and not known, or "".
func unknownField(n object, known ...[]field) string {
	worst := ""
next:
	for key, v := range n {
		for _, fields := range known {
			for _, f := range fields {
				if f.key == key {
					continue next
				}
			}
		}
		if !empty(v) && (worst == "" || key < worst) {
			worst = key
		}
	}
	return worst
}

// visitExpressions calls f for the expressions right under an expression, those
// of its subqueries left out.
func visitExpressions(n object, f func(object)) {
	for _, fd := range expressionFields[str(n, "class")] {
		switch fd.role {
		case expr:
			if c := child(n, fd.key); c != nil {
				f(c)
			}
		case exprs:
			for _, c := range objects(n, fd.key) {
				f(c)
			}
		case orders:
			for _, o := range objects(n, fd.key) {
				f(child(o, "expression"))
			}
		case ordered:
			for _, o := range objects(child(n, fd.key), "orders") {
				f(child(o, "expression"))
			}
		case cases:
			for _, c := range objects(n, fd.key) {
				f(child(c, "when_expr"))
				f(child(c, "then_expr"))
			}
		case pairs:
			for _, p := range objects(n, fd.key) {
				f(child(p, "value"))
			}
		}
	}
}
