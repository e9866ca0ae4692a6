package registrytest

import (
	"slices"
	"strings"
)

// The engine's rules for types, as far as the subset needs them. A literal has a
// type of its own until it meets something else, as in the engine: s + 1 over a
// SMALLINT s is a SMALLINT.
const (
	typeIntegerLiteral = "INTEGER_LITERAL"
	typeStringLiteral  = "STRING_LITERAL"
)

// numeric is in the order of promotion.
func numericRank(t string) int {
	return slices.Index([]string{"TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE"}, t)
}

func isNumeric(t string) bool { return numericRank(t) >= 0 || t == typeIntegerLiteral }

func isIntegral(t string) bool {
	return t == typeIntegerLiteral || numericRank(t) >= 0 && numericRank(t) <= numericRank("HUGEINT")
}

func isTemporal(t string) bool { return t == "DATE" || strings.HasPrefix(t, "TIMESTAMP") }

// settle gives a literal the type that it has in an output column.
func settle(t string) string {
	switch t {
	case typeIntegerLiteral:
		return "INTEGER"
	case typeStringLiteral:
		return "VARCHAR"
	}
	return t
}

// knownType resolves a type's name to the engine's own, "" when the subset does
// not have it.
func knownType(t string) string {
	switch t {
	case "INT", "INTEGER", "INT4":
		return "INTEGER"
	case "BIGINT", "INT8", "LONG":
		return "BIGINT"
	case "TEXT", "VARCHAR", "STRING":
		return "VARCHAR"
	case "BOOLEAN", "BOOL":
		return "BOOLEAN"
	case "REAL", "FLOAT":
		return "FLOAT"
	case "TINYINT", "SMALLINT", "HUGEINT", "DOUBLE", "DATE", "TIMESTAMP":
		return t
	}
	return ""
}

// promote gives the common type of two numbers, "" when one is none.
func promote(a, b string) string {
	if !isNumeric(a) || !isNumeric(b) {
		return ""
	}
	switch {
	case a == typeIntegerLiteral && b == typeIntegerLiteral:
		return "INTEGER"
	case a == typeIntegerLiteral:
		return b
	case b == typeIntegerLiteral:
		return a
	case numericRank(a) > numericRank(b):
		return a
	}
	return b
}

// comparableTypes reports whether the engine compares the two without a cast.
// Equality takes any two; an order, and IN over a subquery, need a common type
// that both reach by an implicit cast.
func comparableTypes(op, a, b string) bool {
	switch {
	case op == "=" || op == "!=":
		return true
	case a == b || a == typeStringLiteral || b == typeStringLiteral:
		return true
	case a == "BOOLEAN" || b == "BOOLEAN":
		return isIntegral(a) || isIntegral(b)
	}
	return isNumeric(a) && isNumeric(b) || isTemporal(a) && isTemporal(b)
}

// unionType gives the type of a column of a set operation: the common type where
// there is one, and else the larger in the engine's order of all types.
func unionType(a, b string) (string, bool) {
	a, b = settle(a), settle(b)
	if a == b {
		return a, true
	}
	if t := promote(a, b); t != "" {
		return t, true
	}
	order := []string{"BOOLEAN", "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "FLOAT", "DOUBLE", "DATE", "TIMESTAMP", "VARCHAR"}
	i, j := slices.Index(order, a), slices.Index(order, b)
	if i < 0 || j < 0 {
		return "", false
	}
	return order[max(i, j)], true
}
