package duckdb

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// baseStatement is one statement of the base.
type baseStatement struct {
	number int // from 1
	text   string
	tokens []token // of text
	// kind is schema, type, table, view, macro or insert.
	kind string
	// name is the object's; of a schema, View is "".
	name viewkeeper.Name
}

// splitBase splits the base into statements and checks that each is of a kind
// that a base may hold: what creates an object or fills a table of its own.
func splitBase(sql string) ([]baseStatement, error) {
	sql = flattenSpaces(sql)
	tokens := lex(sql)
	var out []baseStatement
	for start := 0; start < len(tokens); {
		end := start
		for end < len(tokens) && !tokens[end].is(sql, ";") {
			end++
		}
		if end > start {
			at, stop := tokens[start].at, tokens[end-1].end
			s := baseStatement{number: len(out) + 1, text: sql[at:stop]}
			s.tokens = make([]token, 0, end-start)
			for _, t := range tokens[start:end] {
				s.tokens = append(s.tokens, token{t.kind, t.at - at, t.end - at})
			}
			if err := s.classify(); err != nil {
				return nil, err
			}
			out = append(out, s)
		}
		start = end + 1
	}
	return out, nil
}

// classify finds the statement's kind and the name of its object.
func (s *baseStatement) classify() error {
	const allowed = "a base holds CREATE SCHEMA, TYPE, TABLE, VIEW, MACRO and INSERT"
	i := 0
	word := func(w string) bool {
		if i < len(s.tokens) && s.tokens[i].is(s.text, w) {
			i++
			return true
		}
		return false
	}
	switch {
	case word("insert"):
		s.kind = "insert"
		if word("or") {
			i++
		}
		word("into")
	case word("create"):
		if word("or") {
			word("replace")
		}
		if word("recursive") && !s.tokens[min(i, len(s.tokens)-1)].is(s.text, "view") {
			return errorInBase(s.number, s.text, "%s", allowed)
		}
		for _, kind := range []string{"schema", "type", "table", "view", "macro", "function"} {
			if word(kind) {
				s.kind = strings.Replace(kind, "function", "macro", 1)
				break
			}
		}
		if word("if") {
			word("not")
			word("exists")
		}
	}
	if s.kind == "" {
		return errorInBase(s.number, s.text, "%s; temporary objects would not be seen by every connection", allowed)
	}
	parts := nameParts(s.text, s.tokens[i:])
	if len(parts) == 0 || len(parts) > 2 || s.kind == "schema" && len(parts) > 1 {
		return errorInBase(s.number, s.text, "the name must be name or schema.name")
	}
	s.name = viewkeeper.MakeName("", parts[0])
	if len(parts) == 2 {
		s.name = viewkeeper.MakeName(parts[0], parts[1])
	}
	if s.kind == "schema" {
		s.name = viewkeeper.Name{Schema: viewkeeper.Fold(parts[0])}
	}
	if slices.Contains(reservedSchemas, s.name.Schema) {
		return errorInBase(s.number, s.text, "the schema %s is reserved; choose another", s.name.Schema)
	}
	return nil
}

// nameParts reads a.b.c at the start of tokens.
func nameParts(text string, tokens []token) []string {
	var parts []string
	for i := 0; i < len(tokens); i += 2 {
		name, ok := tokens[i].name(text)
		if !ok {
			return parts
		}
		parts = append(parts, name)
		if i+1 >= len(tokens) || !tokens[i+1].is(text, ".") {
			return parts
		}
	}
	return parts
}

// run executes the statement, with the paths of files written out in full.
func (s *baseStatement) run(ctx context.Context, g *gate) error {
	text, err := s.resolved(ctx, g)
	if err != nil {
		return err
	}
	err = g.conn.exec(ctx, text)
	var engine *engineError
	if errors.As(err, &engine) {
		return errorInBase(s.number, s.text, "%s", g.lake.hide(tidy(engine.Message)))
	}
	return err
}

func (s *baseStatement) resolved(ctx context.Context, g *gate) (string, error) {
	var files []fileRef
	for _, p := range s.parts() {
		if !mayNameFiles(p.text) {
			continue
		}
		prefix := ""
		if s.kind == "macro" && !p.table {
			prefix = "SELECT "
		}
		w, refusal, err := g.walk(ctx, prefix+p.text, forBase)
		if err != nil {
			return "", err
		}
		if refusal != nil {
			continue // the engine says it better
		}
		for _, f := range w.files {
			if f.at >= 0 {
				shift := p.at - len(prefix)
				f.at, f.end = f.at+shift, f.end+shift
				files = append(files, f)
			}
		}
	}
	text, _ := withFullPaths(s.text, files)
	return text, nil
}
