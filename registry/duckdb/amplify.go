package duckdb

import (
	"math"

	"github.com/viewkeeper/viewkeeper"
)

// The engine works out many constant arguments when it prepares a query (those of
// LIMIT, of table functions, of casts, and what length() and its like are given),
// whatever the optimizer is set to. While it does, memory_limit and interrupts do
// not count: length(repeat('a', 500000000)) took 4 s and 500 MB, unnest(range(100000000))
// in a FROM clause 65 s, length(lpad('a', 1000000000, 'b')) never ended.
//
// What amplifies a literal is bounded here. What is computed first,
// repeat('a', 1000 * 1000 * 1000), is beyond a walk of the tree: for that there
// are the kill timer and the memory watchdog of the engine's own process.
const (
	maxMade     = 1 << 20   // bytes that one call makes of literals
	maxListed   = 1_000_000 // elements that one call makes
	maxBrackets = 100       // nesting of brackets in a structure given as text
)

// amplifies refuses a call that makes something large out of literals.
func (w *walker) amplifies(n object, name string, at int) {
	args := objects(n, "children")
	switch name {
	case "repeat", "lpad", "rpad", "list_resize", "array_resize", "bitstring", "range", "generate_series", "printf", "format":
		if size := made(n); size > maxMade {
			w.refuse(viewkeeper.CodeComplexity, at, "%s() would make a value of %.0f bytes or elements out of constants; the limit is %d", name, size, maxMade)
		}
	case "from_json", "from_json_strict", "json_transform", "json_transform_strict":
		if len(args) < 2 {
			return
		}
		structure, ok := literal(args[1])
		switch {
		case !ok && w.mode != forBase:
			w.refuse(viewkeeper.CodeNotAllowed, at, "the structure given to %s() must be a literal", name)
		case bracketDepth(structure) > maxBrackets:
			// Deep enough, this overflows the engine's stack.
			w.refuse(viewkeeper.CodeComplexity, at, "the structure given to %s() is nested more than %d deep", name, maxBrackets)
		}
	}
}

// made estimates the size of a value that is made of literals alone, in bytes or
// elements: 0 when it depends on a column or on what this function does not know.
func made(n object) float64 {
	if s, ok := literal(n); ok {
		return float64(len(s))
	}
	if str(n, "class") == "CAST" {
		return made(child(n, "child"))
	}
	args := objects(n, "children")
	number := func(i int) float64 {
		if i >= len(args) {
			return 0
		}
		f, _ := numeric(args[i])
		return f
	}
	switch name := viewkeeper.Fold(str(n, "function_name")); name {
	case "repeat":
		if len(args) == 2 {
			return max(1, made(args[0])) * number(1)
		}
	case "lpad", "rpad", "list_resize", "array_resize", "bitstring":
		return number(1)
	case "range", "generate_series":
		from, to, step := 0.0, number(0), 1.0
		if len(args) > 1 {
			from, to = number(0), number(1)
		}
		if len(args) > 2 {
			step = number(2)
		}
		if step != 0 && (to-from)/step > 0 {
			return (to - from) / step * maxMade / maxListed
		}
	case "printf", "format":
		if len(args) > 0 {
			if f, ok := literal(args[0]); ok {
				return largestNumber(f)
			}
		}
	case "concat", "||", "list_concat", "list_value", "replace", "concat_ws", "upper", "lower", "reverse", "trim":
		sum := 0.0
		for _, a := range args {
			sum += made(a)
		}
		return sum
	}
	return 0
}

// largestNumber finds the largest number in a format: it may be a width.
func largestNumber(format string) float64 {
	largest, current := 0.0, 0.0
	for i := range len(format) {
		if digit(format[i]) {
			current = math.Min(current*10+float64(format[i]-'0'), math.MaxInt32)
			largest = max(largest, current)
		} else {
			current = 0
		}
	}
	return largest
}

func bracketDepth(s string) int {
	depth, deepest := 0, 0
	for i := range len(s) {
		switch s[i] {
		case '[', '{':
			depth++
			deepest = max(deepest, depth)
		case ']', '}':
			depth--
		}
	}
	return deepest
}
