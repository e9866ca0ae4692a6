package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// fragmentOf gives the part [from, to) of src as the engine gets it: from its
// first token to its last, a closing semicolon left out, and with white space
// that the engine does not know replaced by as many spaces. source leads from
// src to the submitted text.
func fragmentOf(src string, source viewkeeper.Fragment) viewkeeper.Fragment {
	toks, _ := lex(src)
	return fragmentOfTokens(src, withoutComments(toks), source)
}

func fragmentOfTokens(src string, toks []Token, source viewkeeper.Fragment) viewkeeper.Fragment {
	for len(toks) > 0 && toks[len(toks)-1].Kind == Semicolon {
		toks = toks[:len(toks)-1]
	}
	if len(toks) == 0 {
		return viewkeeper.Fragment{Map: []viewkeeper.Segment{{At: 0, Source: source.Source(0)}}}
	}
	from := toks[0].At
	var b strings.Builder
	done := from
	for _, t := range toks {
		plainSpaces(&b, src[done:t.At])
		b.WriteString(t.Text)
		done = t.End()
	}
	f := viewkeeper.Fragment{Text: b.String(), Map: []viewkeeper.Segment{{At: 0, Source: source.Source(from)}}}
	for _, s := range source.Map {
		if s.At > from && s.At < done {
			f.Map = append(f.Map, viewkeeper.Segment{At: s.At - from, Source: s.Source})
		}
	}
	return f
}

func withoutComments(toks []Token) []Token {
	out := toks[:0:0]
	for _, t := range toks {
		if t.Kind != comment {
			out = append(out, t)
		}
	}
	return out
}
