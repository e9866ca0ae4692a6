package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// query is one query of a definition, with what a message calls it.
type query struct {
	what     string
	fragment viewkeeper.Fragment
	at       int // its place in the submitted text, for what has no place within
	wants    []string
}

// queries lists those of c in the order that the law looks at them.
func queries(c *viewkeeper.Create) []query {
	if m := c.Materialized; m != nil {
		return []query{
			{optExtract, m.Extract, m.Places[optExtract], []string{Begin, End}},
			{optCountSrc, m.CountSrc, m.Places[optCountSrc], []string{Begin, End}},
			{optMerge, m.Merge, m.Places[optMerge], []string{Source}},
		}
	}
	return []query{{"the body", c.Body, c.Body.Source(0), nil}}
}

// CheckBody refuses what tokens alone show that the queries of c may not be or
// hold (point 4 of the law): NOT_ONE_QUERY for an empty query, two of them, or a
// statement that is none; NOT_ALLOWED for a template left in, which in a plain
// definition includes {begin}, {end} and {source}; SYNTAX for a literal or a
// comment within an option that does not end; PLACEHOLDER for one in upper case. Offsets are those of the text that c
// was parsed from. What it lets through is for the engine's parser to judge.
func CheckBody(c *viewkeeper.Create) error {
	for _, q := range queries(c) {
		if err := checkQuery(c, q); err != nil {
			err.Name = c.Name
			return err
		}
	}
	return nil
}

// CheckPlaceholders refuses a materialized definition whose queries lack a
// placeholder that they need or hold one that means nothing there, with code
// PLACEHOLDER (point 5 of the law). For a plain definition it has nothing to say.
// Call it before the engine sees the queries: to the engine a placeholder that
// nobody filled is a mistake of syntax.
func CheckPlaceholders(c *viewkeeper.Create) error {
	if c.Materialized == nil {
		return nil
	}
	for _, q := range queries(c) {
		if err := checkPlaceholders(c, q); err != nil {
			err.Name = c.Name
			return err
		}
	}
	return nil
}

func checkQuery(c *viewkeeper.Create, q query) *viewkeeper.Error {
	all, bad := lex(q.fragment.Text)
	if bad != nil {
		return viewkeeper.ErrorAt(q.fragment.Source(bad.Offset), viewkeeper.CodeSyntax, "%s of %s: %s", q.what, c.Name, bad.Message)
	}
	toks := withoutComments(all)
	if len(toks) == 0 {
		return viewkeeper.ErrorAt(q.at, viewkeeper.CodeNotOneQuery, "%s of %s is empty; it must be exactly one query", q.what, c.Name)
	}
	for i, t := range toks {
		if t.Kind == Semicolon && i+1 < len(toks) {
			rest := statement{toks: toks[i+1:]}
			return viewkeeper.ErrorAt(q.fragment.Source(rest.first()), viewkeeper.CodeNotOneQuery,
				"%s of %s must be exactly one query, and %s follows it behind a semicolon; leave that out", q.what, c.Name, describe(rest))
		}
	}
	first := toks[0]
	for _, t := range toks {
		if first = t; !t.isOp("(") {
			break
		}
	}
	if what, _ := foreign([]Token{first}); what != "" && (!isQueryWord(first) || first.Is("explain")) {
		return viewkeeper.ErrorAt(q.fragment.Source(first.At), viewkeeper.CodeNotOneQuery,
			"%s of %s must be a single SELECT that changes nothing, and this is %s", q.what, c.Name, what)
	}
	if c.Materialized != nil {
		if t, word := misspelt(toks); word != "" {
			return viewkeeper.ErrorAt(q.fragment.Source(t.At), viewkeeper.CodePlaceholder,
				"%s of %s holds {%s}; a placeholder is written in lower case, {%s}", q.what, c.Name, word, viewkeeper.Fold(word))
		}
	}
	if at, message := template(toks); at >= 0 {
		return viewkeeper.ErrorAt(q.fragment.Source(at), viewkeeper.CodeNotAllowed, "%s of %s %s", q.what, c.Name, message)
	}
	if c.Materialized == nil {
		if refs := Placeholders(q.fragment.Text); len(refs) > 0 {
			return viewkeeper.ErrorAt(q.fragment.Source(refs[0].At), viewkeeper.CodeNotAllowed,
				"%s of %s holds {%s}, which only the queries of a materialized view may; write the value itself", q.what, c.Name, refs[0].Name)
		}
	}
	return nil
}

// braced gives the word of {word} when that begins at toks[i], its parts unparted,
// else "".
func braced(toks []Token, i int) string {
	if toks[i].isOp("{") && follows(toks, i, 1).Kind == Word && follows(toks, i, 2).isOp("}") {
		return toks[i+1].Text
	}
	return ""
}

// follows gives the nth token behind toks[i] if nothing parts it from there, else
// the zero Token.
func follows(toks []Token, i, n int) Token {
	for k := i; k < i+n; k++ {
		if k+1 >= len(toks) || toks[k+1].At != toks[k].End() {
			return Token{}
		}
	}
	return toks[i+n]
}

// misspelt finds a placeholder that is not in lower case.
func misspelt(toks []Token) (Token, string) {
	for i, t := range toks {
		if word := braced(toks, i); word != "" {
			switch viewkeeper.Fold(word) {
			case Begin, End, Source:
				return t, word
			}
		}
	}
	return Token{}, ""
}

// template finds what a template engine should have replaced before the text was
// sent, outside literals, which may well hold somebody's braces as data. The place
// is -1 when there is none.
func template(toks []Token) (int, string) {
	const uncompiled = "; this is uncompiled dbt or Jinja: compile it, and send what comes out"
	const unset = "; replace it by its value before the text is sent"
	for i, t := range toks {
		next := follows(toks, i, 1)
		switch {
		case t.isOp("{") && next.isOp("{") && !isStructKey(toks[i+2:]):
			return t.At, "still holds a template, {{ ... }}" + uncompiled
		case t.isOp("{") && next.Kind == Operator && (next.Text[0] == '%' || next.Text[0] == '#'):
			return t.At, "still holds a template, {" + next.Text[:1] + " ... " + next.Text[:1] + "}" + uncompiled
		case t.isOp("$") && (next.isOp("{") || next.Kind == PlaceholderWord):
			return t.At, "still holds a template, ${...}" + unset
		case braced(toks, i) != "":
			return t.At, "still holds a template, {" + braced(toks, i) + "}" + unset
		}
	}
	return -1, ""
}

// isStructKey reports whether toks, which follow "{{", begin a struct that is the
// key of a map, MAP {{'a': 1}: 2}, which is the engine's and no template.
func isStructKey(toks []Token) bool {
	return len(toks) > 1 && (toks[0].IsName() || toks[0].Kind == String) && toks[1].isOp(":")
}

func checkPlaceholders(c *viewkeeper.Create, q query) *viewkeeper.Error {
	const meaning = "{begin} and {end} stand for the time range that is extracted or counted, {source} for the partitions that are merged"
	seen := map[string]bool{}
	for _, p := range Placeholders(q.fragment.Text) {
		wanted := false
		for _, w := range q.wants {
			wanted = wanted || w == p.Name
		}
		switch {
		case !wanted && p.InLiteral && p.Name == Source:
			// Text that happens to look like it.
		case !wanted:
			return viewkeeper.ErrorAt(q.fragment.Source(p.At), viewkeeper.CodePlaceholder,
				"%s of %s holds {%s}, which has no meaning there: %s", q.what, c.Name, p.Name, meaning)
		case p.Name == Source && p.InLiteral:
			return viewkeeper.ErrorAt(q.fragment.Source(p.At), viewkeeper.CodePlaceholder,
				"%s of %s has {source} in a string literal, where no relation can stand; write FROM {source}", q.what, c.Name)
		}
		seen[p.Name] = true
	}
	var missing []string
	for _, w := range q.wants {
		if !seen[w] {
			missing = append(missing, "{"+w+"}")
		}
	}
	if len(missing) > 0 {
		return viewkeeper.ErrorAt(q.at, viewkeeper.CodePlaceholder,
			"%s of %s lacks %s: %s", q.what, c.Name, strings.Join(missing, " and "), meaning)
	}
	return nil
}
