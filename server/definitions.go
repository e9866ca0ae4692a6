package server

import (
	"net/http"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// definition is a definition as /v1/definitions shows it.
type definition struct {
	Name viewkeeper.Name `json:"name"`
	Kind viewkeeper.Kind `json:"kind"`
	// ID is the version of the statement that created the name; Version that of
	// the one that changed the row last.
	ID      viewkeeper.Version     `json:"id"`
	Version viewkeeper.Version     `json:"version"`
	Columns []viewkeeper.Column    `json:"columns"`
	Reads   []viewkeeper.Reference `json:"reads"`
	ReadBy  []viewkeeper.Name      `json:"read_by"`
	State   string                 `json:"state"`
	// Failure is why a broken one does not build.
	Failure       *failure `json:"failure,omitempty"`
	SQL           string   `json:"sql"`
	Comment       *string  `json:"comment"`
	HistoryLength int      `json:"history_length"`
}

func (s *Server) definition(f *registry.Factory, d *registry.Definition) definition {
	row := d.Row.Definition
	out := definition{
		Name: row.Name, Kind: row.Kind, ID: row.ID, Version: d.Row.Version,
		Columns: emptyIfNil(d.Columns), Reads: emptyIfNil(d.Reads), ReadBy: emptyIfNil(f.ReadBy(row.Name)),
		State: d.State(), SQL: row.SQL, Comment: row.Comment, HistoryLength: s.cfg.Node.HistoryLength(row.Name),
	}
	if d.Failure != nil {
		broken := newFailure(d.Failure)
		out.Failure = &broken
	}
	return out
}

// emptyIfNil keeps null out of the answers' lists.
func emptyIfNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// The pages of the listings.
const (
	defaultPage = 1000
	maxPage     = 10000
)

// getDefinitions lists the definitions of one factory in the order of their names.
// A page is of one version, the next page may be of a later one.
func (s *Server) getDefinitions(w http.ResponseWriter, r *http.Request) *Problem {
	p := params{r: r}
	like := p.text("like")
	kind := p.oneOf("kind", "", string(viewkeeper.KindView), string(viewkeeper.KindMaterialized))
	state := p.oneOf("state", "", "ok", "broken")
	limit := p.count("limit", defaultPage, maxPage)
	after := p.name("after")
	if p.problem != nil {
		return p.problem
	}
	f, problem := s.current(w)
	if problem != nil {
		return problem
	}
	answer := struct {
		Definitions []definition     `json:"definitions"`
		Next        *viewkeeper.Name `json:"next"`
	}{Definitions: []definition{}}
	for d := range f.DefinitionsAfter(after) {
		row := d.Row.Definition
		if kind != "" && string(row.Kind) != kind || state != "" && d.State() != state || like != "" && !likeName(like, row.Name) {
			continue
		}
		if len(answer.Definitions) == limit {
			last := answer.Definitions[limit-1].Name
			answer.Next = &last
			break
		}
		answer.Definitions = append(answer.Definitions, s.definition(f, d))
	}
	writeJSON(w, http.StatusOK, answer)
	return nil
}

func (s *Server) getDefinition(w http.ResponseWriter, r *http.Request) *Problem {
	name, problem := pathName(r)
	if problem != nil {
		return problem
	}
	f, problem := s.current(w)
	if problem != nil {
		return problem
	}
	d, ok := f.Definition(name)
	if !ok {
		return unknownName(f, name)
	}
	writeJSON(w, http.StatusOK, s.definition(f, d))
	return nil
}

func unknownName(f *registry.Factory, name viewkeeper.Name) *Problem {
	if _, ok := f.Base().Relation(name); ok {
		return problemf(http.StatusNotFound, viewkeeper.CodeNotFound, "%s is a base relation, not a definition; DESCRIBE %s in a query shows its columns", name, name)
	}
	return problemf(http.StatusNotFound, viewkeeper.CodeNotFound, "there is no definition %s at version %s; GET /v1/definitions lists them", name, f.Version())
}

// likeName matches a LIKE pattern against the name, and for the schema main also
// against the name without it. Case counts for nothing, as in names.
func likeName(pattern string, name viewkeeper.Name) bool {
	pattern = viewkeeper.Fold(pattern)
	return like(pattern, name.String()) || name.Schema == viewkeeper.DefaultSchema && like(pattern, name.View)
}

// like is SQL's LIKE: % is any text, _ one byte, which suffices for names.
func like(pattern, s string) bool {
	before, rest, wild := strings.Cut(pattern, "%")
	if len(s) < len(before) {
		return false
	}
	for i := range len(before) {
		if before[i] != '_' && before[i] != s[i] {
			return false
		}
	}
	s = s[len(before):]
	if !wild {
		return s == ""
	}
	for i := range len(s) + 1 {
		if like(rest, s[i:]) {
			return true
		}
	}
	return false
}
