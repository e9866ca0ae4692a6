package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// EngineText gives text as the engine must get it, of the same length, so that
// every place stays where it is. Literals, names and all other tokens keep their
// value; between tokens it changes what the engine would trip over:
//
//   - White space that its lexer does not know becomes ASCII spaces, byte for byte.
//     The engine strips most of these characters itself, one space for two or
//     three bytes, and reports places in what is left.
//   - Comments keep their delimiters and newlines only, and \' in E'...' is
//     written as two quotes, which is the same. The engine's stripping looks for quotes in
//     block comments and knows no backslash, so that an apostrophe in either would
//     make it strip spaces inside the next literal: SELECT /* it's */ 'a b' loses
//     a no-break space between a and b.
func EngineText(text string) string {
	all, _ := lex(text)
	var b strings.Builder
	b.Grow(len(text))
	engineText(&b, text, all, 0, len(text))
	return b.String()
}

// engineText writes [from, to) of src, whose tokens with the comments are toks.
func engineText(b *strings.Builder, src string, toks []Token, from, to int) {
	for _, t := range toks {
		if t.At < from {
			continue
		}
		if t.At >= to {
			break
		}
		engineSpace(b, src[from:t.At])
		switch {
		case t.Kind == comment:
			engineComment(b, t.Text)
		case t.Kind == String:
			engineEscapes(b, t)
		default:
			b.WriteString(t.Text)
		}
		from = t.End()
	}
	engineSpace(b, src[from:to])
}

// engineSpace writes the white space s.
func engineSpace(b *strings.Builder, s string) {
	for i := range len(s) {
		if c := s[i]; isASCIISpace(c) && c != '\v' {
			b.WriteByte(c)
		} else {
			b.WriteByte(' ')
		}
	}
}

// engineComment writes the comment s, emptied. The delimiters stay because a block
// comment, unlike white space, ends a literal that could go on in the next line.
func engineComment(b *strings.Builder, s string) {
	end := len(s)
	if strings.HasPrefix(s, "/*") && len(s) >= 4 && strings.HasSuffix(s, "*/") {
		end -= 2
	}
	b.WriteString(s[:2])
	for i := 2; i < end; i++ {
		if s[i] == '\n' || s[i] == '\r' {
			b.WriteByte(s[i])
		} else {
			b.WriteByte(' ')
		}
	}
	b.WriteString(s[end:])
}

// engineEscapes writes the literal t, and an escaped quote in it as two quotes.
func engineEscapes(b *strings.Builder, t Token) {
	s := t.Text
	if !t.escapes {
		b.WriteString(s)
		return
	}
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b.WriteByte(s[i])
			continue
		}
		if s[i+1] == '\'' {
			b.WriteString("''")
		} else {
			b.WriteString(s[i : i+2])
		}
		i++
	}
}

// fragmentOf gives src as a query: from its first token to its last, semicolons at
// its end left out. source leads from src to the submitted text. A text that does
// not lex is left as it is, for CheckBody to refuse.
func fragmentOf(src string, source viewkeeper.Fragment) viewkeeper.Fragment {
	all, bad := lex(src)
	if bad != nil {
		return viewkeeper.Fragment{Text: src, Map: source.Map}
	}
	toks := withoutComments(all)
	for len(toks) > 0 && toks[len(toks)-1].Kind == Semicolon {
		toks = toks[:len(toks)-1]
	}
	if len(toks) == 0 {
		return viewkeeper.Fragment{Map: []viewkeeper.Segment{{At: 0, Source: source.Source(0)}}}
	}
	from, to := toks[0].At, toks[len(toks)-1].End()
	var b strings.Builder
	b.Grow(to - from)
	engineText(&b, src, all, from, to)
	f := viewkeeper.Fragment{Text: b.String(), Map: []viewkeeper.Segment{{At: 0, Source: source.Source(from)}}}
	for _, s := range source.Map {
		if s.At > from && s.At < to {
			f.Map = append(f.Map, viewkeeper.Segment{At: s.At - from, Source: s.Source})
		}
	}
	return f
}

// Span gives the place in the submitted text of f.Text[at:end]. exact says that the
// submitted text holds these very bytes there, in one piece, so that an edit of one
// is an edit of the other; escapes and doubled quotes in a literal are why it may
// not.
func Span(submitted string, f viewkeeper.Fragment, at, end int) (from, to int, exact bool) {
	from = f.Source(at)
	if at >= end {
		return from, from, at == end
	}
	to = f.Source(end-1) + 1
	return from, to, from >= 0 && to <= len(submitted) && submitted[from:max(from, to)] == f.Text[at:end]
}

func withoutComments(toks []Token) []Token {
	out := make([]Token, 0, len(toks))
	for _, t := range toks {
		if t.Kind != comment {
			out = append(out, t)
		}
	}
	return out
}
