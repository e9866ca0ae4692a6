package ddl

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// loose is the refusal of a second statement outside a change set. When it could
// be a statement of its own, the person meant two; otherwise the query before it
// has grown a tail, and is not one query any more.
func loose(first viewkeeper.Statement, next statement) *viewkeeper.Error {
	create, ok := first.(*viewkeeper.Create)
	if ok && create.Kind == viewkeeper.KindView && !isOurs(next) {
		err := viewkeeper.ErrorAt(next.first(), viewkeeper.CodeNotOneQuery,
			"the body of %s must be exactly one query, and %s follows it behind a semicolon; leave that out", create.Name, describe(next))
		err.Name = create.Name
		return err
	}
	if !isOurs(next) {
		return viewkeeper.ErrorAt(next.first(), viewkeeper.CodeSyntax,
			"a record holds one statement, and %s follows it; leave that out", describe(next))
	}
	return viewkeeper.ErrorAt(next.first(), viewkeeper.CodeSyntax,
		"a second statement begins here (%s); send it by itself, or put both between BEGIN; and COMMIT; to make them one change set", describe(next))
}

// describe shows the beginning of a statement.
func describe(s statement) string {
	var words []string
	for _, t := range s.toks[:min(3, len(s.toks))] {
		words = append(words, strings.Trim(shown(t), "“”"))
	}
	if len(s.toks) > 3 {
		words = append(words, "…")
	}
	return strings.Join(words, " ")
}

// isOurs reports whether s begins as a statement of the language.
func isOurs(s statement) bool {
	switch {
	case s.starts("create"), s.starts("drop"), s.starts("alter"), s.starts("comment", "on"):
		for _, t := range s.toks[:min(6, len(s.toks))] {
			if t.Is("view") {
				return true
			}
		}
		return false
	}
	return s.opensSet() || s.closesSet()
}

// parseSet reads BEGIN; ...; COMMIT;.
func (l Limits) parseSet(text string, stmts []statement) (viewkeeper.Statement, error) {
	if err := boundary(stmts[0], "begin"); err != nil {
		return nil, err
	}
	end := setEnd(stmts, 0)
	if end == 0 || !stmts[end].closesSet() {
		return nil, viewkeeper.ErrorAt(stmts[0].first(), viewkeeper.CodeSyntax,
			"the change set that begins here is not closed; end it with COMMIT;")
	}
	set := &viewkeeper.ChangeSet{}
	for _, s := range stmts[1:end] {
		if s.opensSet() {
			return nil, viewkeeper.ErrorAt(s.first(), viewkeeper.CodeSyntax,
				"a change set holds no other one; leave this BEGIN out")
		}
		st, err := l.parseOne(text, s)
		if err != nil {
			return nil, err
		}
		set.Statements = append(set.Statements, st)
	}
	if err := boundary(stmts[end], "commit"); err != nil {
		return nil, err
	}
	if len(set.Statements) == 0 {
		return nil, viewkeeper.ErrorAt(stmts[0].first(), viewkeeper.CodeSyntax, "the change set is empty; put statements between BEGIN; and COMMIT;")
	}
	if rest := stmts[end+1:]; len(rest) > 0 {
		return nil, viewkeeper.ErrorAt(rest[0].first(), viewkeeper.CodeSyntax,
			"%s follows the end of the change set; a record holds one change set, so put it before COMMIT or send it by itself", describe(rest[0]))
	}
	return set, nil
}

// boundary checks that s is exactly BEGIN or COMMIT, with TRANSACTION or WORK
// when somebody's fingers put it there.
func boundary(s statement, word string) error {
	switch {
	case !s.starts(word):
		return notOurs(s.toks)
	case len(s.toks) == 1, len(s.toks) == 2 && (s.toks[1].Is("transaction") || s.toks[1].Is("work")):
		return nil
	}
	return viewkeeper.ErrorAt(s.toks[1].At, viewkeeper.CodeSyntax,
		"%s stands alone, and %s follows it; write %s;", strings.ToUpper(word), shown(s.toks[1]), strings.ToUpper(word))
}
