package registry

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// source is what a definition's text says by itself, and over one base: it looks
// at no other definition, so it is made once for a text and kept.
type source struct {
	create *viewkeeper.Create // nil when the text does not parse
	parts  []part
	// err is why the text is no good whatever the catalog holds, or nil. Then
	// there are no refs.
	err *failure
	// refs is every place where a part reads a relation, and what the base's
	// macros that it calls read. {source} is none of them.
	refs []ref
	// candidates is every name that a ref may resolve to: sorted, once each.
	candidates []viewkeeper.Name
}

// part is one query of a definition: the body of a plain one, or one of the
// three queries of a materialized one.
type part struct {
	role     role
	fragment viewkeeper.Fragment
	// text is the fragment with its placeholders filled; fill leads back.
	text   string
	fill   ddl.OffsetMap
	parsed Parsed // without its scopes
	scopes string // packed
}

type role uint8

const (
	roleBody role = iota
	roleExtract
	roleCount
	roleMerge
)

// option names the option that holds the query, for messages.
func (r role) option() string {
	return [...]string{"the body", "extract_query", "count_src_query", "merge_partitions_query"}[r]
}

// ref is one reference of a part. candidates are the names that it may stand
// for; the first that exists is the one.
type ref struct {
	TableRef
	part       int
	index      int // in the part's Parsed.References, -1 for a macro's
	candidates []viewkeeper.Name
}

// inText reports whether the reference stands in the definition's own text.
func (r *ref) inText() bool { return r.Macro.IsZero() && r.At >= 0 }

// The range that {begin} and {end} stand for while a definition is judged. Any
// would do, as long as it is one that every timestamp type can hold.
const (
	sampleBegin = "2013-01-01 00:00:00+00"
	sampleEnd   = "2013-01-02 00:00:00+00"
)

// sourcePrefix begins the name of the stub that {source} stands for. No
// definition may have such a name.
const sourcePrefix = "__source_"

// sourceStub names the relation that {source} stands for in name's merge query.
func sourceStub(name viewkeeper.Name) viewkeeper.Name {
	return viewkeeper.Name{Schema: name.Schema, View: sourcePrefix + name.View}
}

// noEdits leads back from a text that was not edited.
var noEdits ddl.OffsetMap

// rowLimits bounds nothing: what was accepted once is read whatever the limits
// are now, and a rename may have made it longer.
var rowLimits = ddl.Limits{MaxBody: math.MaxInt, MaxChangeSet: math.MaxInt}

// readSource parses a row's text; the parts' queries are still to be parsed by
// the planner (see queries and finish).
func readSource(row viewkeeper.Row) (s *source) {
	defer func() {
		if p := recover(); p != nil {
			s = &source{err: panicked(p)}
		}
	}()
	stmt, err := rowLimits.Parse(row.Definition.SQL)
	if err != nil {
		return &source{err: formFailure(err)}
	}
	create, ok := stmt.(*viewkeeper.Create)
	switch {
	case !ok:
		return &source{err: failAt(-1, StageParse, viewkeeper.CodeSyntax, "the row's text is not a CREATE statement")}
	case create.Name != row.Name:
		return &source{err: failAt(create.NameOffset, StageParse, viewkeeper.CodeName,
			fmt.Sprintf("the row of %s holds the text of %s", row.Name, create.Name))}
	}
	s = &source{create: create}
	if m := create.Materialized; m == nil {
		s.parts = []part{{role: roleBody, fragment: create.Body}}
	} else {
		s.parts = []part{
			{role: roleExtract, fragment: m.Extract},
			{role: roleCount, fragment: m.CountSrc},
			{role: roleMerge, fragment: m.Merge},
		}
	}
	err = ddl.CheckBody(create)
	if err == nil {
		err = ddl.CheckPlaceholders(create)
	}
	if err != nil {
		s.err = formFailure(err)
		return s
	}
	for i := range s.parts {
		p := &s.parts[i]
		switch p.role {
		case roleBody:
			p.text = p.fragment.Text
		case roleMerge:
			p.text, p.fill = ddl.Fill(p.fragment.Text, map[string]string{"source": sourceStub(create.Name).SQL()})
		default:
			p.text, p.fill = ddl.Fill(p.fragment.Text, map[string]string{"begin": sampleBegin, "end": sampleEnd})
		}
	}
	return s
}

// formFailure turns ddl's error into a failure at its place in the text.
func formFailure(err error) *failure {
	var e *viewkeeper.Error
	if errors.As(err, &e) {
		return failAt(e.Offset, StageParse, e.Code, e.Message)
	}
	return failAt(-1, StageParse, viewkeeper.CodeSyntax, err.Error())
}

// panicked is the failure of a definition on which this program itself failed.
func panicked(p any) *failure {
	return failAt(-1, StageParse, viewkeeper.CodeInternal, fmt.Sprintf("viewkeeper itself failed on it, which is a mistake of the program: %v", p))
}

// queries gives what the planner is to parse, one for each part.
func (s *source) queries() []Query {
	if s.err != nil {
		return nil
	}
	qs := make([]Query, len(s.parts))
	for i, p := range s.parts {
		qs[i] = s.query(p, p.text)
	}
	return qs
}

// query makes the planner's query of a part's text.
func (s *source) query(p part, text string) Query {
	q := Query{Text: text, Schema: s.create.Name.Schema, Strict: p.role != roleBody}
	if p.role == roleBody {
		q.Columns = s.create.Columns
	}
	return q
}

// finish takes the planner's answers to queries and works out the references.
func (s *source) finish(base *Base, parsed []Parsed) {
	if s.err != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			s.err, s.refs, s.candidates = panicked(p), nil, nil
		}
	}()
	for i := range s.parts {
		p := &s.parts[i]
		p.parsed = parsed[i]
		if p.parsed.Scopes != nil {
			p.scopes, p.parsed.Scopes = packScopes(p.parsed.Scopes), nil
		}
		if e := p.parsed.Err; e != nil && s.err == nil {
			s.err = s.planFailure(i, noEdits, e, StageParse)
		}
	}
	if s.err != nil {
		return
	}
	own := sourceStub(s.create.Name)
	for i := range s.parts {
		p := &s.parts[i]
		seen := map[viewkeeper.Name]bool{}
		for at, t := range p.parsed.References {
			if p.role == roleMerge && t.Schema == own.Schema && t.View == own.View {
				continue
			}
			s.refer(i, at, t)
		}
		for _, m := range p.parsed.Macros {
			macro := base.macros[m]
			if macro == nil {
				continue
			}
			for _, t := range macro.References {
				n := viewkeeper.MakeName(t.Schema, t.View)
				if seen[n] {
					continue
				}
				seen[n] = true
				t.At, t.End, t.Macro = -1, -1, m
				s.refer(i, -1, t)
			}
		}
	}
	slices.SortFunc(s.candidates, viewkeeper.Name.Compare)
	s.candidates = slices.Compact(s.candidates)
}

// refer adds a reference. What a text names without a schema is in its
// definition's own schema first, then in main; what a macro of the base names so
// is in main.
func (s *source) refer(part, index int, t TableRef) {
	r := ref{TableRef: t, part: part, index: index}
	if t.Schema == "" && r.inText() && s.create.Name.Schema != viewkeeper.DefaultSchema {
		r.candidates = append(r.candidates, viewkeeper.Name{Schema: s.create.Name.Schema, View: t.View})
	}
	r.candidates = append(r.candidates, viewkeeper.MakeName(t.Schema, t.View))
	s.refs = append(s.refs, r)
	s.candidates = append(s.candidates, r.candidates...)
}

// mayRead reports whether name is among the candidates.
func (s *source) mayRead(name viewkeeper.Name) bool {
	_, ok := slices.BinarySearchFunc(s.candidates, name, viewkeeper.Name.Compare)
	return ok
}

// place maps an offset in a part's text, after edits that m leads back from, to
// the definition's SQL.
func (s *source) place(part int, m ddl.OffsetMap, offset int) int {
	p := &s.parts[part]
	return p.fragment.Source(p.fill.Source(m.Source(offset)))
}

// planFailure turns the planner's no into a failure. VOLATILE and COMPLEXITY are
// rules, whoever finds them broken.
func (s *source) planFailure(part int, m ddl.OffsetMap, e *PlanError, stage Stage) *failure {
	if e.Code == viewkeeper.CodeVolatile || e.Code == viewkeeper.CodeComplexity {
		stage = StageValidate
	}
	reason := e.Message
	if r := s.parts[part].role; r != roleBody {
		reason = r.option() + ": " + reason
	}
	return failAt(s.place(part, m, e.At), stage, e.Code, reason)
}

// qualify gives a part's text with a schema before every unqualified name of a
// relation, so that no search path can matter.
func (s *source) qualify(part int, refs []resolved) (string, ddl.OffsetMap) {
	var edits []ddl.Edit
	for i := range s.refs {
		r := &s.refs[i]
		if r.part != part || !r.inText() || r.Schema != "" {
			continue
		}
		schema := refs[i].name.Schema
		if schema == "" { // nothing there: let the planner say so
			schema = viewkeeper.DefaultSchema
		}
		edits = append(edits, ddl.Edit{At: r.At, End: r.At, Text: viewkeeper.QuoteIdent(schema) + "."})
	}
	return ddl.ApplyEdits(s.parts[part].text, edits)
}

// reads lists what the definition's own text reads, each thing once.
func (e *entry) references() []viewkeeper.Reference {
	s := e.source
	var out []viewkeeper.Reference
	for i := range s.refs {
		r := &s.refs[i]
		if !r.inText() {
			continue
		}
		n, kind := e.refs[i].name, viewkeeper.KindDefinition
		switch {
		case n.IsZero(): // what is not there can only come as a definition
			n = r.candidates[len(r.candidates)-1]
		case e.refs[i].base:
			kind = viewkeeper.KindRelation
		}
		out = append(out, viewkeeper.Reference{Name: n.String(), Kind: kind})
	}
	for i := range s.parts {
		p := &s.parts[i].parsed
		for _, m := range p.Macros {
			out = append(out, viewkeeper.Reference{Name: m.String(), Kind: viewkeeper.KindMacro})
		}
		for _, t := range p.Types {
			out = append(out, viewkeeper.Reference{Name: t, Kind: viewkeeper.KindType})
		}
		for _, f := range p.Files {
			out = append(out, viewkeeper.Reference{Name: f, Kind: viewkeeper.KindFile})
		}
	}
	return sortReferences(out)
}

// plainName leaves out main, for a message: that is how macros are called. An answer
// writes every name as schema.name.
func plainName(s string) string {
	return strings.TrimPrefix(s, viewkeeper.DefaultSchema+".")
}

func sortReferences(refs []viewkeeper.Reference) []viewkeeper.Reference {
	slices.SortFunc(refs, compareReferences)
	return slices.Compact(refs)
}

func compareReferences(a, b viewkeeper.Reference) int {
	if c := strings.Compare(string(a.Kind), string(b.Kind)); c != 0 {
		return c
	}
	return strings.Compare(a.Name, b.Name)
}
