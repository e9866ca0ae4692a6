package ddl

import (
	"sort"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// Canonical text decides whether a statement changes anything: two definitions
// are the same exactly when their canonical texts are equal. It is itself a
// statement of the language, and its own canonical text.
//
//   - Comments and white space are gone, words are folded to lower case. A string
//     literal counts by its value, however it is quoted: the engine's parser is
//     handed the value alone.
//   - In the statement's own syntax (the view's name, the column list, the options'
//     names) "Foo" and foo are one name, since only a name can stand there.
//   - In a query a quoted name stays as it is. "current_date" is a column where
//     current_date is a function, "select" cannot lose its quotes, and the case of
//     "Foo" shows in the output; to call two texts different that are not costs one
//     more bind, the other mistake would lose somebody's change.
//   - The query options of a materialized definition are compared as queries, all
//     others by value. Options stand in the order of their names. What is left to
//     its default differs from the default written out: the tokens differ.

// canonicalPlain is the canonical text of a plain definition. columns are the
// tokens of its column list, parentheses included.
func canonicalPlain(c *viewkeeper.Create, columns, body []Token) string {
	var b strings.Builder
	b.Grow(len(c.Body.Text) + 64)
	b.WriteString("create view ")
	b.WriteString(c.Name.String())
	for _, t := range columns {
		b.WriteByte(' ')
		if t.IsName() {
			b.WriteString(ownName(t.Name()))
		} else {
			b.WriteString(t.Text)
		}
	}
	b.WriteString(" as ")
	canonicalTokens(&b, body)
	return b.String()
}

// canonicalMaterialized is that of a materialized one; said tells that ON REPLACE
// was written.
func canonicalMaterialized(c *viewkeeper.Create, opts optionList, said bool) string {
	names := make([]string, 0, len(opts))
	for name := range opts {
		names = append(names, name)
	}
	sort.Strings(names)
	var b strings.Builder
	b.WriteString("create materialized view ")
	b.WriteString(c.Name.String())
	b.WriteString(" with (")
	for i, name := range names {
		if i > 0 {
			b.WriteString(",")
		}
		b.WriteString(" " + name + " = ")
		switch o := opts[name]; name {
		case optExtract, optCountSrc, optMerge:
			b.WriteString(quoteString(CanonicalQuery(o.value.Text)))
		case optUpdateGroup:
			b.WriteString(viewkeeper.Fold(o.value.Text))
		default:
			b.WriteString(quoteString(o.value.Text))
		}
	}
	b.WriteString(" )")
	if said {
		b.WriteString(" on replace " + strings.ToLower(string(c.Materialized.OnReplace)))
	}
	return b.String()
}

// CanonicalQuery gives the canonical text of a query by itself: equal for two
// queries exactly when their tokens are the same. A text that does not lex is its
// own.
func CanonicalQuery(text string) string {
	all, err := lex(text)
	if err != nil {
		return text
	}
	toks := withoutComments(all)
	for len(toks) > 0 && toks[len(toks)-1].Kind == Semicolon {
		toks = toks[:len(toks)-1]
	}
	var b strings.Builder
	canonicalTokens(&b, toks)
	return b.String()
}

// canonicalTokens writes tokens with one space between them, which keeps every
// two of them apart.
func canonicalTokens(b *strings.Builder, toks []Token) {
	for i := 0; i < len(toks); {
		if i > 0 {
			b.WriteByte(' ')
		}
		t := toks[i]
		n := 1
		switch t.Kind {
		case Word, Number, PlaceholderWord:
			b.WriteString(viewkeeper.Fold(t.Text))
		case String:
			n = canonicalString(b, toks[i:])
		default:
			b.WriteString(t.Text)
		}
		i += n
	}
}

// canonicalString writes the literal that toks begin with and gives the number of
// tokens that it takes. X'..', B'..' and N'..' are kinds of their own and keep
// their letter.
func canonicalString(b *strings.Builder, toks []Token) int {
	d, n, err := decodeString(toks)
	if err != nil {
		// No engine takes it, so it only has to stay what it is, and to go on in
		// the next line where it does.
		for n = 0; n < len(toks) && (n == 0 || toks[n].continues); n++ {
			if n > 0 {
				b.WriteByte('\n')
			}
			engineEscapes(b, toks[n])
		}
		return n
	}
	switch c := toks[0].Text[0]; c {
	case '\'', '$', 'e', 'E':
	default:
		b.WriteString(viewkeeper.Fold(string(c)))
	}
	b.WriteString(quoteString(d.text.String()))
	return n
}

// ownName writes a name of the statement's own syntax: folded and bare when it is
// plain, otherwise quoted and as it is.
func ownName(name string) string {
	if folded := viewkeeper.Fold(name); isPlain(folded) {
		return folded
	}
	return viewkeeper.QuoteIdent(name)
}

func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c != '_' && (c < 'a' || c > 'z') && (i == 0 || !isDigit(c)) {
			return false
		}
	}
	return s != ""
}
