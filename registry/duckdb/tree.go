package duckdb

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
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

// parseSyntax reads the answer. The error is about the text that was parsed: the
// engine writes what is no JSON for some texts, and what is deeper than is read.
func parseSyntax(text string) (*syntax, error) {
	var s syntax
	err := json.Unmarshal([]byte(text), &s)
	if err != nil {
		s = syntax{}
		err = json.Unmarshal(withoutInfinities(text), &s)
	}
	if err != nil {
		return nil, fmt.Errorf("the engine's syntax tree of it can't be read (%w)", err)
	}
	return &s, nil
}

// notJSON are the values that the engine writes for constants like 1e999.
var notJSON = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?\b(?:Infinity|inf|NaN|nan)\b`)

// withoutInfinities writes null in place of numbers that JSON does not have.
func withoutInfinities(text string) []byte {
	return notJSON.ReplaceAllFunc([]byte(text), func(found []byte) []byte {
		if found[0] == '"' {
			return found
		}
		return []byte("null")
	})
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

// numeric gives the value of a numeric constant, or of constants that are added,
// multiplied and the like.
func numeric(n object) (float64, bool) {
	switch str(n, "class") {
	case "CAST":
		if text, ok := literal(child(n, "child")); ok {
			f, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			return f, err == nil
		}
		return numeric(child(n, "child"))
	case "FUNCTION":
		return computed(str(n, "function_name"), objects(n, "children"))
	}
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

// computed works out an operator over constants.
func computed(operator string, args []object) (float64, bool) {
	values := make([]float64, len(args))
	for i, a := range args {
		var ok bool
		if values[i], ok = numeric(a); !ok {
			return 0, false
		}
	}
	switch {
	case len(values) == 1 && operator == "-":
		return -values[0], true
	case len(values) == 1 && operator == "+":
		return values[0], true
	case len(values) != 2:
		return 0, false
	}
	a, b := values[0], values[1]
	switch operator {
	case "+":
		return a + b, true
	case "-":
		return a - b, true
	case "*":
		return a * b, true
	case "/", "//":
		return a / b, true
	case "^", "**", "pow", "power":
		return math.Pow(a, b), true
	case "<<":
		return a * math.Pow(2, b), true
	}
	return 0, false
}
