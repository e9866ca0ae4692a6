package duckdb

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Bounds on what the engine's parser is given. It is safe at any depth (its own
// limit is 1000), but takes quadratic time in the number of ANDs, in the depth of
// comments, and writes every grouping set out.
const (
	maxComments = 100  // nesting of comments
	maxChain    = 8000 // ANDs and ORs
	maxRollup   = 64   // expressions within all ROLLUPs and CUBEs
)

func planErrorf(code viewkeeper.Code, at int, format string, args ...any) *registry.PlanError {
	return &registry.PlanError{Code: code, Message: fmt.Sprintf(format, args...), At: at}
}

// precheck refuses what the engine's parser must not even see. The text may hold
// anything.
func precheck(text string, limits Limits) *registry.PlanError {
	if len(text) > limits.Bytes {
		return planErrorf(viewkeeper.CodeComplexity, -1, "the query is %d bytes long; the limit is %d", len(text), limits.Bytes)
	}
	if i := strings.IndexByte(text, 0); i >= 0 {
		return planErrorf(viewkeeper.CodeSyntax, i, "the query holds a NUL byte, which no text has")
	}
	if !utf8.ValidString(text) {
		for i, r := range text {
			if _, n := utf8.DecodeRuneInString(text[i:]); r == utf8.RuneError && n == 1 {
				return planErrorf(viewkeeper.CodeSyntax, i, "the query is not valid UTF-8")
			}
		}
	}
	if at := deepComment(text); at >= 0 {
		return planErrorf(viewkeeper.CodeComplexity, at, "comments are nested more than %d deep", maxComments)
	}
	return nil
}

// precheckTokens refuses what is too deep or too long for the parser, and the
// templates and parameters that it would only call a mistake of syntax.
func precheckTokens(text string, tokens []token, limits Limits) *registry.PlanError {
	depth, chain, rollup, rollupDepth := 0, 0, 0, -1
	for i, t := range tokens {
		if t.kind == tokenWord {
			if t.is(text, "and") || t.is(text, "or") {
				if chain++; chain > maxChain {
					return planErrorf(viewkeeper.CodeComplexity, t.at, "more than %d ANDs and ORs", maxChain)
				}
			}
			if (t.is(text, "rollup") || t.is(text, "cube")) && i+1 < len(tokens) && tokens[i+1].is(text, "(") && rollupDepth < 0 {
				rollupDepth = depth
				rollup++
			}
			continue
		}
		if t.kind != tokenSymbol {
			continue
		}
		switch text[t.at] {
		case '(', '[', '{':
			if text[t.at] == '{' && t.end < len(text) && strings.IndexByte("{%#", text[t.end]) >= 0 && !structKey(text, tokens[i+1:]) {
				return planErrorf(viewkeeper.CodeNotAllowed, t.at,
					"a template is left in: this is uncompiled dbt/Jinja; submit the compiled SQL, with the relation's own name here")
			}
			if depth++; depth > limits.Nesting {
				return planErrorf(viewkeeper.CodeComplexity, t.at, "brackets are nested more than %d deep", limits.Nesting)
			}
		case ')', ']', '}':
			if depth--; depth == rollupDepth {
				rollupDepth = -1
			}
		case ',':
			if rollupDepth >= 0 {
				if rollup++; rollup > maxRollup {
					return planErrorf(viewkeeper.CodeComplexity, t.at, "more than %d expressions in ROLLUP and CUBE", maxRollup)
				}
			}
		}
	}
	return nil
}

// structKey reports whether tokens, behind a {, begin with a struct as a map's
// key: MAP {{'a': 1}: 2}.
func structKey(text string, tokens []token) bool {
	return len(tokens) > 2 && tokens[0].is(text, "{") && tokens[1].kind != tokenSymbol && tokens[2].is(text, ":")
}

// deepComment finds a comment that is nested too deep, or gives -1.
func deepComment(text string) int {
	if strings.Count(text, "/*") <= maxComments {
		return -1
	}
	for i := 0; i < len(text); {
		if n := space(text[i:]); n > 0 {
			i += n
			continue
		}
		if n := comment(text[i:]); n > 0 {
			depth := 0
			for j := i; j < i+n-1; j++ {
				switch text[j : j+2] {
				case "/*":
					depth++
					j++
				case "*/":
					depth--
					j++
				}
				if depth > maxComments {
					return i
				}
			}
			i += n
			continue
		}
		_, n := scan(text[i:])
		i += n
	}
	return -1
}
