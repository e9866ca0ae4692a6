package ddl

import "strings"

// statement is a stretch of a script up to a semicolon.
type statement struct {
	// toks are its tokens, without comments and without the semicolon; all has the
	// comments as well.
	toks, all []Token
	// start and end are its span with the comments in it, without the semicolon.
	start, end int
	// semi is the end of the semicolon, or -1 when the script ends without one.
	semi int
	// trailer is the end of the comments that follow the semicolon on its own line,
	// which speak of this statement and not of the next; semi when there are none.
	trailer int
}

// first is the place of the statement's first token.
func (s statement) first() int { return s.toks[0].At }

// starts reports whether the statement begins with these words.
func (s statement) starts(words ...string) bool {
	if len(s.toks) < len(words) {
		return false
	}
	for i, w := range words {
		if !s.toks[i].Is(w) {
			return false
		}
	}
	return true
}

// opensSet reports whether the statement begins a change set. START TRANSACTION
// is not in the language, but whoever writes it means what follows as one unit, so
// that it is refused as one and never run in parts.
func (s statement) opensSet() bool { return s.starts("begin") || s.starts("start", "transaction") }

// closesSet reports whether the statement ends a change set, in whatever way.
func (s statement) closesSet() bool {
	return s.starts("commit") || s.starts("end") || s.starts("rollback") || s.starts("abort")
}

// statements cuts a lexed text at its semicolons. Stretches without a token are
// left out, and comments at the end that belong to no statement with them.
func statements(text string, all []Token) []statement {
	var (
		out []statement
		lo  = -1 // where the statement being read begins in all, -1 between statements
	)
	flush := func(hi, semi int) {
		s := statement{toks: withoutComments(all[lo:hi]), all: all[lo:hi], start: all[lo].At, end: all[hi-1].End(), semi: semi, trailer: semi}
		if len(s.toks) > 0 {
			out = append(out, s)
		}
		lo = -1
	}
	for i, t := range all {
		switch {
		case t.Kind == Semicolon:
			if lo >= 0 {
				flush(i, t.End())
			}
		case lo >= 0:
		case t.Kind == comment && len(out) > 0 && sameLine(text, out[len(out)-1].trailer, t.At):
			out[len(out)-1].trailer = t.End()
		default:
			lo = i
		}
	}
	if lo >= 0 {
		flush(len(all), -1)
	}
	return out
}

// sameLine reports whether nothing but white space without a newline, and further
// semicolons, lies between two places.
func sameLine(text string, from, to int) bool {
	return from <= to && !strings.ContainsAny(text[from:to], "\r\n")
}
