package duckdb

import (
	"encoding/json"
	"fmt"
	"math"
)

// object is one object of the JSON that the engine's parser gives for a query.
type object = map[string]any

// maxTree is the largest tree that is read, in bytes of JSON. Grouping sets are
// written out in it, and can make some kilobytes of text a hundred megabytes.
const maxTree = 32 << 20

// syntax is what json_serialize_sql answers: either the statements or an error.
type syntax struct {
	Statements []struct {
		Node object `json:"node"`
	} `json:"statements"`
	Error        bool   `json:"error"`
	ErrorType    string `json:"error_type"`
	ErrorMessage string `json:"error_message"`
	Position     string `json:"position"`
}

func parseSyntax(text string) (*syntax, error) {
	var s syntax
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return nil, fmt.Errorf("duckdb: the engine's syntax tree is no JSON: %w", err)
	}
	return &s, nil
}

func child(n object, key string) object {
	o, _ := n[key].(object)
	return o
}

func list(n object, key string) []any {
	l, _ := n[key].([]any)
	return l
}

func objects(n object, key string) []object {
	l := list(n, key)
	out := make([]object, 0, len(l))
	for _, v := range l {
		if o, ok := v.(object); ok {
			out = append(out, o)
		}
	}
	return out
}

func str(n object, key string) string {
	s, _ := n[key].(string)
	return s
}

func strs(n object, key string) []string {
	var out []string
	for _, v := range list(n, key) {
		if s, ok := v.(string); ok {
			out = append(out, s)
		}
	}
	return out
}

func flag(n object, key string) bool {
	b, _ := n[key].(bool)
	return b
}

// location is the place that the parser notes for a node, or -1: many nodes that
// it makes up itself have none, which it writes as the largest number of 64 bits.
func location(n object) int {
	f, ok := n["query_location"].(float64)
	if !ok || f < 0 || f > math.MaxInt32 {
		return -1
	}
	return int(f)
}

// place is the first place in an expression: that of an operator is the operator's
// own, behind its left side.
func place(n object) int {
	at := location(n)
	visitExpressions(n, func(c object) {
		if p := place(c); p >= 0 && (at < 0 || p < at) {
			at = p
		}
	})
	return at
}

// empty reports whether a value says nothing: what the parser writes for a clause
// that is not there.
func empty(v any) bool {
	switch v := v.(type) {
	case nil:
		return true
	case string:
		return v == ""
	case bool:
		return !v
	case []any:
		return len(v) == 0
	case object:
		return len(v) == 0
	}
	return false
}

// literal gives the value of a constant of text.
func literal(n object) (string, bool) {
	if str(n, "class") != "CONSTANT" {
		return "", false
	}
	v := child(n, "value")
	if str(child(v, "type"), "id") != "VARCHAR" || flag(v, "is_null") {
		return "", false
	}
	s, ok := v["value"].(string)
	return s, ok
}

// number gives the value of a numeric constant.
func numeric(n object) (float64, bool) {
	if str(n, "class") != "CONSTANT" {
		return 0, false
	}
	v := child(n, "value")
	f, ok := v["value"].(float64)
	if info := child(child(v, "type"), "type_info"); ok && str(info, "type") == "DECIMAL_TYPE_INFO" {
		scale, _ := info["scale"].(float64)
		f /= math.Pow(10, scale)
	}
	return f, ok
}
