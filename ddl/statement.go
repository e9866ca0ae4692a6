package ddl

import "strings"

// statement is a stretch of a script up to a semicolon.
type statement struct {
	// toks are its tokens, without comments and without the semicolon.
	toks []Token
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
		out  []statement
		toks = make([]Token, 0, len(all))
		cur  = statement{start: -1, semi: -1}
	)
	flush := func() {
		cur.toks = toks[len(toks)-countTokens(cur, toks):]
		if len(cur.toks) > 0 {
			out = append(out, cur)
		}
		cur = statement{start: -1, semi: -1}
	}
	for _, t := range all {
		switch {
		case t.Kind == Semicolon:
			if cur.start >= 0 {
				cur.semi, cur.trailer = t.End(), t.End()
				flush()
			}
			continue
		case t.Kind == comment && cur.start < 0 && len(out) > 0 && sameLine(text, out[len(out)-1].trailer, t.At):
			out[len(out)-1].trailer = t.End()
			continue
		case t.Kind != comment:
			toks = append(toks, t)
		}
		if cur.start < 0 {
			cur.start = t.At
		}
		cur.end = t.End()
	}
	if cur.start >= 0 {
		flush()
	}
	return out
}

func countTokens(s statement, toks []Token) int {
	n := 0
	for n < len(toks) && toks[len(toks)-1-n].At >= s.start {
		n++
	}
	return n
}

// sameLine reports whether nothing but white space without a newline, and further
// semicolons, lies between two places.
func sameLine(text string, from, to int) bool {
	return from <= to && !strings.ContainsAny(text[from:to], "\r\n")
}
