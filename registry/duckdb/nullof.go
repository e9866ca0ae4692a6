package duckdb

import (
	"fmt"
	"strings"
)

// nullOf gives an expression of a type, for an empty relation. For most types
// that is a cast of NULL. A struct without names, which row(1, 2) gives, has a
// type that the engine prints and can't read, so what holds one is put together
// from its parts.
func nullOf(t string) string {
	if !strings.Contains(t, "STRUCT(") || !hasUnnamed(t) {
		return "NULL::" + t
	}
	if element, size, ok := listType(t); ok {
		e := nullOf(element)
		if size == 0 {
			return "[" + e + "]"
		}
		return "array_value(" + strings.TrimSuffix(strings.Repeat(e+", ", size), ", ") + ")"
	}
	if inside, ok := constructor(t, "MAP"); ok && len(inside) == 2 {
		return "map([" + nullOf(inside[0]) + "], [" + nullOf(inside[1]) + "])"
	}
	inside, ok := constructor(t, "STRUCT")
	if !ok {
		return "NULL::" + t
	}
	parts := make([]string, len(inside))
	if name, _ := fieldOf(inside[0]); name == "" {
		for i, f := range inside {
			parts[i] = nullOf(f)
		}
		return "row(" + strings.Join(parts, ", ") + ")"
	}
	for i, f := range inside {
		name, ft := fieldOf(f)
		parts[i] = name + " := " + nullOf(ft)
	}
	return "struct_pack(" + strings.Join(parts, ", ") + ")"
}

// hasUnnamed reports whether a type has a struct without names in it.
func hasUnnamed(t string) bool {
	if element, _, ok := listType(t); ok {
		return hasUnnamed(element)
	}
	if inside, ok := constructor(t, "MAP"); ok {
		return len(inside) == 2 && (hasUnnamed(inside[0]) || hasUnnamed(inside[1]))
	}
	if inside, ok := constructor(t, "STRUCT"); ok {
		for _, f := range inside {
			name, ft := fieldOf(f)
			if name == "" || hasUnnamed(ft) {
				return true
			}
		}
	}
	return false
}

// listType takes T[] and T[n] apart.
func listType(t string) (element string, size int, ok bool) {
	open := strings.LastIndexByte(t, '[')
	if !strings.HasSuffix(t, "]") || open < 0 {
		return "", 0, false
	}
	if n := t[open+1 : len(t)-1]; n != "" {
		if _, err := fmt.Sscanf(n, "%d", &size); err != nil {
			return "", 0, false
		}
	}
	return t[:open], size, true
}

// constructor takes NAME(a, b) apart.
func constructor(t, name string) ([]string, bool) {
	if !strings.HasPrefix(t, name+"(") || !strings.HasSuffix(t, ")") {
		return nil, false
	}
	t = t[len(name)+1 : len(t)-1]
	var parts []string
	start := 0
	depth := 0
	for _, tok := range lex(t) {
		if tok.kind != tokenSymbol {
			continue
		}
		switch t[tok.at] {
		case '(':
			depth++
		case ')':
			depth--
		case ',':
			if depth == 0 {
				parts = append(parts, strings.TrimSpace(t[start:tok.at]))
				start = tok.end
			}
		}
	}
	return append(parts, strings.TrimSpace(t[start:])), true
}

// fieldOf takes a struct's field apart; the name is "" when it has none.
func fieldOf(f string) (name, fieldType string) {
	tokens := lex(f)
	if len(tokens) < 2 || tokens[1].kind == tokenSymbol || tokens[1].is(f, "with") {
		return "", f
	}
	return f[:tokens[0].end], strings.TrimSpace(f[tokens[0].end:])
}
