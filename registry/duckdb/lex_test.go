package duckdb

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/viewkeeper/viewkeeper/ddl"
)

// asSymbols gives ddl's tokens as this package's: operators byte by byte, a
// placeholder and a parameter as the symbols and the word that they are made of.
func asSymbols(text string) []token {
	tokens, _ := ddl.Tokens(text)
	var out []token
	for _, t := range tokens {
		switch t.Kind {
		case ddl.Word:
			out = append(out, token{tokenWord, t.At, t.End()})
		case ddl.QuotedName:
			out = append(out, token{tokenQuoted, t.At, t.End()})
		case ddl.String:
			if n := len(out) - 1; n >= 0 && out[n].kind == tokenString && continued(text[out[n].at:], out[n].end-out[n].at) > out[n].end-out[n].at && strings.ContainsAny(text[out[n].at:out[n].at+1], "eE") {
				out[n].end = t.End() // goes on
				continue
			}
			out = append(out, token{tokenString, t.At, t.End()})
		case ddl.Number:
			out = append(out, token{tokenNumber, t.At, t.End()})
		case ddl.Operator, ddl.Semicolon:
			for i := t.At; i < t.End(); i++ {
				out = append(out, token{tokenSymbol, i, i + 1})
			}
		case ddl.PlaceholderWord:
			out = append(out, token{tokenSymbol, t.At, t.At + 1}, token{tokenWord, t.At + 1, t.End() - 1}, token{tokenSymbol, t.End() - 1, t.End()})
		case ddl.Param:
			if t.Text[0] == '$' {
				out = append(out, token{tokenSymbol, t.At, t.End()})
				continue
			}
			out = append(out, token{tokenSymbol, t.At, t.At + 1})
			for _, rest := range lex(t.Text[1:]) { // ?1
				out = append(out, token{rest.kind, rest.at + t.At + 1, rest.end + t.At + 1})
			}
		}
	}
	return out
}

// TestLexAgreesWithDDL: the two tokenizers of the program see the same tokens at the
// same places in any text of these pieces, literals and comments that never end
// included. What lex.go says that they differ in is not among the pieces.
func TestLexAgreesWithDDL(t *testing.T) {
	pieces := []string{
		"a", "select", "é", "x$y", "_1", `"q""q"`, `"é;"`, `"`, "'it''s'", "'", "e'a\\'b'", "E'\\\\'", "'\\''", "e'a'\n'\\''", "E'b' -- c '\n ", "x'00'", "b'1'", "n'x'", "$$ ; ' $$", "$t$ $$ $t$", "$t$", "$$",
		" 1 ", " 1.5 ", " .5 ", " 1e5 ", " 1_000 ", " 2.5e-3 ", "?", " $1 ", " $name ", ";", "(", ")", "[", "]", "{", "}", " {begin} ", " {source} ",
		"::", ":=", "->", "->>", "<=", "=", "+", "-", "*", "/", "%", "||", "@", "#", "!", "~", "^", "&", ",", ".", "--", "-- c '\n", "/*", "*/", "/* /* ' */ */",
		" ", "\n", "\t", "\r", "\f", "\v", "\u00a0", "\u2003", "\u200b", "\u202f", "\u3000", "\ufeff", "\u2060",
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(rapid.SampledFrom(pieces), 0, 12).Draw(t, "pieces"), "")
		got, want := lex(text), asSymbols(text)
		for i := range max(len(got), len(want)) {
			if i >= len(got) || i >= len(want) || got[i] != want[i] {
				t.Fatalf("%q: lex has %v, ddl %v", text, got, want)
			}
		}
	})
}

// A literal that goes on hides nothing from the gate: the engine's parser is the
// judge of where it ends.
func TestContinuedLiterals(t *testing.T) {
	deep := strings.Repeat("(", 200) + "1" + strings.Repeat(")", 200)
	for _, literal := range []string{"E'a'\n'\\''", "E'a'\r\n-- it's\n'\\''", "e''\n'\\'' \n '\\''"} {
		text := "SELECT " + literal + ", " + deep
		tokens := lex(text)
		if got := tokens[1].text(text); got != literal {
			t.Errorf("%q was cut to %q", literal, got)
		}
		if refusal := precheckTokens(text, tokens, Limits{}.withDefaults()); refusal == nil {
			t.Errorf("%q hides brackets", literal)
		}
	}
	for text, want := range map[string]int{"E'a' '\\''": 2, "E'a'\n/* c */'b'": 2, "'a'\n'b'": 2, "E'a'\n'b'": 1} {
		if got := len(lex(text)); got != want {
			t.Errorf("%q: %d tokens, want %d", text, got, want)
		}
	}
}
