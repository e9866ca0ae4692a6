package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// isQueryWord reports whether t begins a query: what a door answers instead of
// handing it to the catalog.
func isQueryWord(t Token) bool {
	if t.Kind != Word {
		return false
	}
	switch viewkeeper.Fold(t.Text) {
	case "select", "from", "with", "values", "table", "pivot", "unpivot", "pivot_wider", "pivot_longer",
		"show", "describe", "desc", "explain", "summarize":
		return true
	}
	return false
}

// foreign says what a statement is that is not of the language, and where its
// purpose is served instead; "" when its first word is unknown.
func foreign(toks []Token) (what, wayOut string) {
	first := toks[0]
	if first.isOp("(") || isQueryWord(first) {
		what = "a query"
		if first.Is("explain") || first.Is("describe") || first.Is("desc") || first.Is("show") || first.Is("summarize") {
			what = strings.ToUpper(first.Text)
		}
		return what, "queries are answered by POST /v1/query and by viewkeeper sql"
	}
	if first.Kind != Word {
		return "", ""
	}
	word := strings.ToUpper(first.Text)
	switch word {
	case "INSERT", "UPDATE", "DELETE", "MERGE", "TRUNCATE":
		return word, "it changes rows, and the catalog holds no rows: only definitions"
	case "COPY", "EXPORT", "IMPORT":
		return word, "files are read by a view, with read_parquet or read_csv under a granted folder, and never written"
	case "ATTACH", "DETACH", "USE", "INSTALL", "LOAD":
		return word, "what definitions may reach is given by the base, at the start of a node"
	case "SET", "RESET", "PRAGMA":
		return word, "settings are the node's, the same for every definition; see viewkeeper config"
	case "CALL", "EXECUTE", "PREPARE", "DEALLOCATE", "VACUUM", "CHECKPOINT", "ANALYZE", "REINDEX":
		return word, "it acts on one engine, and the catalog is shared by all of them"
	case "GRANT", "REVOKE":
		return word, "who may write is decided by the rights on the catalog's topics"
	case "COMMIT", "END":
		return word, "no change set is open; begin one with BEGIN;"
	case "ROLLBACK", "ABORT", "SAVEPOINT", "RELEASE":
		return word, "a change set counts as a whole or not at all; to take it back, do not send it"
	case "START":
		return word, "a change set is written BEGIN; ...; COMMIT;"
	case "CREATE", "DROP", "ALTER", "COMMENT":
		return word, ""
	}
	return "", ""
}

// notOurs is the refusal of a statement that is not of the language.
func notOurs(toks []Token) *viewkeeper.Error {
	const list = "CREATE [MATERIALIZED] VIEW, DROP VIEW, ALTER VIEW, COMMENT ON VIEW, or BEGIN; ...; COMMIT;"
	first := toks[0]
	what, wayOut := foreign(toks)
	if what == "" {
		if near := Nearest(viewkeeper.Fold(first.Text), []string{"create", "drop", "alter", "comment", "begin", "commit"}); near != "" && first.Kind == Word {
			return viewkeeper.ErrorAt(first.At, viewkeeper.CodeSyntax, "%s begins no statement; did you mean %s?", first.Text, strings.ToUpper(near))
		}
		return viewkeeper.ErrorAt(first.At, viewkeeper.CodeSyntax, "%s begins no statement of the catalog; write %s", shown(first), list)
	}
	return viewkeeper.ErrorAt(first.At, viewkeeper.CodeSyntax, "%s is not a statement of the catalog: %s", what, wayOut)
}

// shown is a token as a message shows it.
func shown(t Token) string {
	const limit = 40
	s := t.Text
	if len(s) > limit {
		s = strings.ToValidUTF8(s[:limit], "") + "…"
	}
	switch t.Kind {
	case Word, Number, String:
		return s
	}
	return "“" + s + "”"
}

// Nearest gives the candidate that s is most likely a misspelling of: the first of those
// with the fewest slips, at most one in four letters. It gives "" when there is none, and
// when s is longer than any name.
func Nearest(s string, candidates []string) string {
	best, bestDistance := "", 1+max(1, len(s)/4)
	if len(s) > 64 {
		return ""
	}
	for _, c := range candidates {
		if d := distance(s, c); d < bestDistance {
			best, bestDistance = c, d
		}
	}
	return best
}

// distance counts the insertions, removals, replacements and swaps of neighbours
// that lead from a to b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range rows[0] {
		rows[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			cost := 1
			if a[i-1] == b[j-1] {
				cost = 0
			}
			d := min(rows[i-1][j]+1, rows[i][j-1]+1, rows[i-1][j-1]+cost)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d = min(d, rows[i-2][j-2]+1)
			}
			rows[i][j] = d
		}
	}
	return rows[len(a)][len(b)]
}
