package ddl

// Piece is one unit of a script: a statement of the language, a change set from
// BEGIN to COMMIT, or a query.
type Piece struct {
	// Text is the piece as written, from its first comment or token to its
	// semicolon and the comments on that line; what lies between pieces is white
	// space, stray semicolons and comments that belong to none.
	Text string
	// Offset is where the piece starts in the script, in bytes.
	Offset int
	// Query says that it begins as a query does, to be answered and not decided.
	Query bool
}

// Split cuts a script into pieces. It is total: a text that is no SQL at all
// comes out in pieces that Parse refuses. A change set that is never closed
// reaches to the end of the script, so that no part of it is run by itself.
func Split(script string) []Piece {
	all, _ := lex(script)
	stmts := statements(script, all)
	var pieces []Piece
	for i := 0; i < len(stmts); {
		last := i
		if stmts[i].opensSet() {
			last = setEnd(stmts, i)
		}
		from, to := stmts[i].start, stmts[last].end
		if stmts[last].semi >= 0 {
			to = stmts[last].trailer
		}
		pieces = append(pieces, Piece{Text: script[from:to], Offset: from, Query: isQuery(stmts[i])})
		i = last + 1
	}
	return pieces
}

// setEnd gives the index of the statement that closes the change set which
// stmts[i] opens, or of the last one.
func setEnd(stmts []statement, i int) int {
	for j := i + 1; j < len(stmts); j++ {
		if stmts[j].closesSet() {
			return j
		}
	}
	return len(stmts) - 1
}

// Incomplete reports whether a prompt should wait for more lines: the text ends
// inside a literal, a quoted name, a comment or a change set, or its last
// statement has no semicolon yet. A text without a token is complete.
func Incomplete(script string) bool {
	all, err := lex(script)
	if err != nil {
		return true
	}
	stmts := statements(script, all)
	if len(stmts) == 0 {
		return false
	}
	if stmts[len(stmts)-1].semi < 0 {
		return true
	}
	for i := 0; i < len(stmts); i++ {
		if stmts[i].opensSet() {
			if i = setEnd(stmts, i); !stmts[i].closesSet() {
				return true
			}
		}
	}
	return false
}

// isQuery reports whether s begins as a query does, parentheses aside.
func isQuery(s statement) bool {
	for _, t := range s.toks {
		if t.isOp("(") {
			continue
		}
		return isQueryWord(t)
	}
	return false
}
