package ddl

import "strings"

// The names of the placeholders.
const (
	Begin  = "begin"  // the start of a time range, inclusive
	End    = "end"    // its end, exclusive
	Source = "source" // a relation
)

// Placeholder is one place where a query holds {begin}, {end} or {source}.
type Placeholder struct {
	// Name is [Begin], [End] or [Source].
	Name string
	// At and End are its place, braces included.
	At, End int
	// InLiteral says that it stands in a string literal.
	InLiteral bool

	escapes, doubles bool // what a quote and a backslash must become there
	behind, before   bool // whether the token on that side is a literal
}

// Placeholders finds the placeholders of a query, in order. They are written
// exactly so, in lower case and without spaces. In comments and quoted names
// there are none.
func Placeholders(text string) []Placeholder {
	all, _ := lex(text)
	toks := withoutComments(all)
	var refs []Placeholder
	for i, t := range toks {
		switch t.Kind {
		case PlaceholderWord:
			refs = append(refs, Placeholder{
				Name: t.Text[1 : len(t.Text)-1], At: t.At, End: t.End(),
				behind: i > 0 && toks[i-1].Kind == String,
				before: i+1 < len(toks) && toks[i+1].Kind == String,
			})
		case String:
			for k := 0; k < len(t.Text); k++ {
				if t.Text[k] != '{' {
					continue
				}
				for _, name := range [...]string{Begin, End, Source} {
					if strings.HasPrefix(t.Text[k+1:], name+"}") {
						refs = append(refs, Placeholder{
							Name: name, At: t.At + k, End: t.At + k + len(name) + 2,
							InLiteral: true, escapes: t.escapes, doubles: t.Text[0] != '$',
						})
					}
				}
			}
		}
	}
	return refs
}

// Fill puts values in place of the placeholders that it has one for, by name.
// Inside a literal that is the value's text. Outside one, [Begin] and [End]
// become a literal of the same text, untyped so that it compares with every type
// of timestamp, and [Source] becomes the value as it is, which must be the text of
// a relation: a name, or a query in parentheses.
func Fill(text string, values map[string]string) (string, OffsetMap) {
	var edits []Edit
	for _, p := range Placeholders(text) {
		value, ok := values[p.Name]
		if !ok {
			continue
		}
		switch {
		case p.InLiteral:
			if p.escapes {
				value = strings.ReplaceAll(value, `\`, `\\`)
			}
			if p.doubles {
				value = strings.ReplaceAll(value, `'`, `''`)
			}
		case p.Name != Source:
			value = apart(text, p, quoteString(value))
		default:
			value = apart(text, p, value)
		}
		edits = append(edits, Edit{At: p.At, End: p.End, Text: value})
	}
	return ApplyEdits(text, edits)
}

// apart keeps value from fusing with a neighbour: x{begin} is not x'...', a literal
// in hexadecimal, and two literals in two lines are not to be one.
func apart(text string, p Placeholder, value string) string {
	const barrier = "/**/" // unlike white space, it ends a literal for good
	switch {
	case p.behind:
		value = barrier + value
	case p.At > 0 && fuses(text[p.At-1]):
		value = " " + value
	}
	switch {
	case p.before:
		value += barrier
	case p.End < len(text) && fuses(text[p.End]):
		value += " "
	}
	return value
}

func fuses(c byte) bool {
	return c == '"' || c == '$' || c == '}' || c == '{' || isDigit(c) || isWordStart(string([]byte{c}))
}

func quoteString(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }
