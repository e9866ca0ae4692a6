package registry

import (
	"fmt"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// A rename must change the meaning of nothing. The names of tables in a text do
// more than find the table: a table without an alias can be referred to by its
// name (v.a, v.*, and v alone as a row), with its schema too (s.v.a). So:
//
//   - Each reference to the definition gets the new name at its place, with the
//     schema that it had, or with one when the bare new name finds something else
//     there, maybe a CTE, which has no schema.
//   - A bare name of something else, which the new name would come before, gets its
//     schema, also in the text of the renamed definition itself.
//   - When the old or the new name occurs elsewhere in that query, a reference
//     without an alias gets the old name as its alias. All that could refer to it
//     by name still does, nothing else can begin to, and the names of output
//     columns stay. Otherwise nothing can tell, and the text stays plain.
//   - A column written with schema and table cannot live beside an alias; there
//     the qualifiers are rewritten instead, if they are the only occurrences.
//   - After that the planner has the last word: every rewritten text must build
//     as before, give the same columns, and read the same but for the new name.
//
// Whatever cannot be done so (a reference from within a macro of the base, a
// syntax without room for an alias) refuses the rename with RENAME_INEXACT.

// move renames the definition itself: a drop row under the old name, and its
// text, with the new name in it, under the new one.
func (j *judgment) move(s *viewkeeper.Rename) *viewkeeper.Error {
	old := j.before.get(s.From)
	d := *old.row.Definition
	d.Name = s.To
	create := old.source.create
	if create == nil {
		return viewkeeper.ErrorAt(s.FromOffset, viewkeeper.CodeRenameInexact,
			"the text of %s cannot be read (%s), so the name in it cannot be changed; replace it first", s.From, old.failure.reason)
	}
	at, end, ok := lastName(d.SQL, create.NameOffset, len(d.SQL))
	if !ok {
		return viewkeeper.ErrorAt(s.FromOffset, viewkeeper.CodeRenameInexact, "the name of %s cannot be found in its text; replace it first", s.From)
	}
	edits, why := j.rewriteEdits(old, s)
	if why != "" && old.ok() {
		return viewkeeper.ErrorAt(s.FromOffset, viewkeeper.CodeRenameInexact, "%s cannot be renamed exactly to %s: %s; choose another name", s.From, s.To, why)
	}
	d.SQL, _ = ddl.ApplyEdits(d.SQL, append(edits, ddl.Edit{At: at, End: end, Text: identifier(s.To.View, false)}))
	j.renames[s.From] = s.To
	j.put(&write{row: j.row(s.From, nil, nil), action: viewkeeper.ActionRenamed, at: s.FromOffset})
	j.put(&write{row: j.row(s.To, &d, old), action: viewkeeper.ActionRenamed, at: s.ToOffset, renamed: true})
	return nil
}

// lastName finds the last identifier of the name, bare or with its schema, that
// begins at from.
func lastName(text string, from, to int) (at, end int, ok bool) {
	toks, _ := ddl.Tokens(text[from:to])
	i := 0
	for i+2 < len(toks) && toks[i].IsName() && toks[i+1].Text == "." && toks[i+2].IsName() {
		i += 2
	}
	if i >= len(toks) || !toks[i].IsName() {
		return 0, 0, false
	}
	return from + toks[i].At, from + toks[i].End(), true
}

// rewrite gives the readers of a renamed definition its new name.
func (j *judgment) rewrite(s *viewkeeper.Rename, owned map[viewkeeper.Name]viewkeeper.Statement) *viewkeeper.Error {
	for _, e := range j.before.readers(s.From) {
		n := e.name()
		if !e.readsDefinition(s.From) { // the base hides the definition from it
			continue
		}
		if n == s.From { // it reads itself, is broken, and stays so
			continue
		}
		if w := j.writes[n]; w != nil && w.action == viewkeeper.ActionDropped {
			continue // it goes with the same set
		}
		if other := owned[n]; other != nil || j.writes[n] != nil {
			return viewkeeper.ErrorAt(s.FromOffset, viewkeeper.CodeDuplicateTarget,
				"renaming %s rewrites %s, which is the target of another statement of the change set; make two change sets of it", s.From, n)
		}
		edits, why := j.rewriteEdits(e, s)
		if why != "" {
			if !e.ok() { // broken before, broken after: it blocks nothing
				continue
			}
			return j.inexact(s.FromOffset, s.From, n, why)
		}
		d := *e.row.Definition
		d.SQL, _ = ddl.ApplyEdits(d.SQL, edits)
		j.put(&write{row: j.row(n, &d, e), action: viewkeeper.ActionReplaced, at: -1, rewritten: true})
	}
	return nil
}

func (j *judgment) inexact(at int, from, reader viewkeeper.Name, why string) *viewkeeper.Error {
	return viewkeeper.ErrorAt(at, viewkeeper.CodeRenameInexact,
		"%s reads %s and cannot be rewritten exactly: %s; change it so that it can be, or create the new name, move the readers and drop the old one", reader, from, why)
}

// rewriteEdits are the edits that a rename makes to the queries of a definition,
// at their places in its SQL, or why it cannot.
func (j *judgment) rewriteEdits(e *entry, s *viewkeeper.Rename) (edits []ddl.Edit, why string) {
	src := e.source
	for p := range src.parts {
		r := rewriting{judgment: j, entry: e, part: p, from: s.From, to: s.To}
		if why := r.run(); why != "" {
			return nil, why
		}
		for _, ed := range r.edits {
			at, end, ok := src.span(p, ed.At, ed.End, e.sql())
			if !ok {
				return nil, "the reference stands where the literal around it hides its text"
			}
			edits = append(edits, ddl.Edit{At: at, End: end, Text: ed.Text})
		}
	}
	return edits, ""
}

// span maps a stretch of a part's text to the definition's SQL, where it must
// stand letter by letter. An empty one lies behind the byte before it.
func (s *source) span(part, at, end int, sql string) (from, to int, ok bool) {
	if at == end {
		from = s.place(part, noEdits, at-1) + 1
		return from, from, from > 0
	}
	from, to = s.place(part, noEdits, at), s.place(part, noEdits, end-1)+1
	return from, to, from >= 0 && to <= len(sql) && from < to && sql[from:to] == s.parts[part].text[at:end]
}

// rewriting works out the edits of one part.
type rewriting struct {
	*judgment
	entry    *entry
	part     int
	from, to viewkeeper.Name
	edits    []ddl.Edit
	// maybeCTE says that the new name may be a CTE's in the query.
	maybeCTE bool
}

// run fills edits, or says why it cannot.
func (r *rewriting) run() (why string) {
	src := r.entry.source
	var mine []int // the references to be rewritten
	for i := range src.refs {
		if ref := &src.refs[i]; ref.part == r.part && r.entry.refs[i].name == r.from {
			if !ref.inText() {
				return fmt.Sprintf("it reads it through the macro %s of the base", plainName(ref.Macro.String()))
			}
			mine = append(mine, i)
		}
	}
	text := src.parts[r.part].text
	r.uncapture(text)
	if len(mine) == 0 {
		return ""
	}
	toks, _ := ddl.Tokens(text)
	within := func(at int) bool {
		return slices.ContainsFunc(mine, func(i int) bool { return src.refs[i].At <= at && at < src.refs[i].End })
	}
	// Where else do the names stand that a table can be meant by, which of that is
	// before a column, and which of that has the schema, too? What follows a dot is
	// a column or a field, unless it is schema.name before another dot.
	others, qualifiers, withSchema := 0, []ddl.Token(nil), false
	for i, t := range toks {
		n := viewkeeper.Fold(t.Name())
		if !t.IsName() || within(t.At) || n != r.from.View && n != r.to.View || t.Kind == ddl.Word && reserved[n] {
			continue
		}
		before, after := i > 0 && toks[i-1].Text == ".", i+1 < len(toks) && toks[i+1].Text == "."
		schema := before && after && i >= 2 && toks[i-2].IsName() && viewkeeper.Fold(toks[i-2].Name()) == r.from.Schema
		if before && !schema {
			continue
		}
		others++
		if n == r.to.View && i+1 < len(toks) && (toks[i+1].Is("as") || toks[i+1].Text == "(") {
			r.maybeCTE = true
		}
		if n == r.from.View && after {
			qualifiers = append(qualifiers, t)
			withSchema = withSchema || schema
		}
	}
	if withSchema {
		if len(qualifiers) < others {
			return fmt.Sprintf("it names columns with schema and table (%s) and uses one of the two names otherwise as well", r.from)
		}
		for _, t := range qualifiers {
			r.edits = append(r.edits, ddl.Edit{At: t.At, End: t.End(), Text: identifier(r.to.View, t.Kind == ddl.QuotedName)})
		}
	}
	alias := others > 0 && !withSchema
	for _, i := range mine {
		if why := r.reference(&src.refs[i], text, toks, alias); why != "" {
			return why
		}
	}
	return ""
}

// uncapture writes the schema of what a bare name means where the new name would
// come before it.
func (r *rewriting) uncapture(text string) {
	src := r.entry.source
	for i := range src.refs {
		ref, now := &src.refs[i], r.entry.refs[i].name
		if ref.part != r.part || !ref.inText() || ref.Schema != "" || now.IsZero() || now == r.from && !r.entry.refs[i].base {
			continue
		}
		if slices.Index(ref.candidates, r.to) >= 0 && slices.Index(ref.candidates, r.to) < slices.Index(ref.candidates, now) {
			r.edits = append(r.edits, ddl.Edit{At: ref.At, End: ref.End, Text: identifier(now.Schema, false) + "." + text[ref.At:ref.End]})
		}
	}
}

// reference rewrites one reference, with an alias if it needs one and has none.
func (r *rewriting) reference(ref *ref, text string, toks []ddl.Token, alias bool) (why string) {
	at, end, ok := lastName(text, ref.At, ref.End)
	if !ok || end != ref.End {
		return "a reference is not where the planner says that it is"
	}
	name := identifier(r.to.View, text[at] == '"')
	if ref.Schema == "" && (r.maybeCTE || r.elsewhere()) {
		name = identifier(r.to.Schema, false) + "." + name
	}
	r.edits = append(r.edits, ddl.Edit{At: at, End: end, Text: name})
	if alias && !r.aliased(ref, toks) {
		r.edits = append(r.edits, ddl.Edit{At: end, End: end, Text: " AS " + text[at:end]})
	}
	return ""
}

// elsewhere reports whether the bare new name would find something else.
func (r *rewriting) elsewhere() bool {
	own := r.entry.name().Schema
	return own != r.to.Schema && r.existsAfter(viewkeeper.Name{Schema: own, View: r.to.View})
}

// aliased reports whether the text gives the reference an alias. A word behind
// it is one if the planner says that the alias is that word. A planner that names
// every source tells no alias from the table's own name, so that name counts only
// when it stands there again.
func (r *rewriting) aliased(ref *ref, toks []ddl.Token) bool {
	i := slices.IndexFunc(toks, func(t ddl.Token) bool { return t.At >= ref.End })
	if i < 0 {
		return false
	}
	next := toks[i]
	switch {
	case next.Is("as"), next.Kind == ddl.QuotedName:
		return true
	case next.Kind != ddl.Word:
		return false
	}
	for _, scope := range unpackScopes(r.entry.source.parts[r.part].scopes) {
		for _, source := range scope.Sources {
			if source.Reference == ref.index {
				return viewkeeper.Fold(source.Alias) == viewkeeper.Fold(next.Text)
			}
		}
	}
	return !mayFollow[viewkeeper.Fold(next.Text)]
}

// mayFollow are the keywords that may stand behind a table without an alias.
var mayFollow = keywords(`where group having order limit offset union except intersect window qualify join inner left right full cross
	natural asof positional anti semi on using tablesample select pivot unpivot fetch`)

// reserved are the keywords that are no names unless quoted.
var reserved = keywords(`all analyse analyze and any array as asc asymmetric both case cast check collate column constraint create default
	deferrable desc describe distinct do else end except false fetch for foreign from group having in initially intersect into lambda lateral
	leading limit not null offset on only or order pivot pivot_longer pivot_wider placing primary qualify references returning select show some
	summarize symmetric table then to trailing true union unique unpivot using variadic when where window with
	anti asof authorization binary collation concurrently cross freeze full glob ilike inner is isnull join left like map natural notnull outer
	overlaps positional right semi similar struct tablesample verbose
	between bigint bit boolean char character coalesce columns dec decimal exists extract float generated grouping_id inout int integer interval
	national nchar none nullif numeric out overlay position precision real row setof smallint substring time timestamp treat trim try_cast values
	varchar xmlattributes`)

func keywords(list string) map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(list) {
		m[w] = true
	}
	return m
}

// identifier writes a part of a definition's name in SQL, which needs quotes only
// where it is a keyword.
func identifier(part string, quoted bool) string {
	if quoted || reserved[part] {
		return viewkeeper.QuoteIdent(part)
	}
	return part
}

// renamedExactly checks, after the trial, that the renamed definition and its
// rewritten readers are what they were. Where something else of a change set
// broke one that reads the right things, that is for point 6 to say.
func (j *judgment) renamedExactly() *viewkeeper.Error {
	back := map[viewkeeper.Name]viewkeeper.Name{}
	for from, to := range j.renames {
		back[to] = from
	}
	_, set := j.stmt.(*viewkeeper.ChangeSet)
	for _, n := range j.order {
		w := j.writes[n]
		if !w.rewritten && !w.renamed {
			continue
		}
		was := n
		if w.renamed {
			was = back[n]
		}
		old, e := j.before.get(was), j.trial.after.get(n)
		if !old.ok() || j.lostIn(e) { // an engine that died says nothing of exactness
			continue
		}
		from, at := j.blame(old, n)
		why := ""
		switch {
		case !j.sameReads(old, e):
			why = "it would read something else"
			if e.source.err != nil {
				why = e.source.err.reason
			}
		case set && !j.inputsKept(e, back):
			continue
		case !e.ok():
			why = e.failure.reason
		case !sameColumns(old.columns, e.columns):
			why = fmt.Sprintf("it would give %s instead of %s", columnList(e.columns), columnList(old.columns))
		}
		switch {
		case why == "":
		case w.renamed:
			return viewkeeper.ErrorAt(at, viewkeeper.CodeRenameInexact, "%s cannot be renamed exactly to %s: %s; choose another name", was, n, why)
		default:
			return j.inexact(at, from, n, why)
		}
	}
	return nil
}

// lostIn reports whether e does not build because the engine died, on itself or
// on what it reads.
func (j *judgment) lostIn(e *entry) bool {
	if !e.ok() && !e.failure.root.IsZero() {
		e = j.trial.after.get(e.failure.root)
	}
	return e != nil && !e.ok() && engineLost(e.failure.code)
}

// blame finds the rename that touched a definition, and its place.
func (j *judgment) blame(old *entry, n viewkeeper.Name) (from viewkeeper.Name, at int) {
	for f, to := range j.renames {
		if to == n || old.readsName(f) {
			return f, j.writes[f].at
		}
	}
	return viewkeeper.Name{}, -1
}

// sameReads reports whether the new text reads what the old one read, place by
// place, but for the renames.
func (j *judgment) sameReads(old, e *entry) bool {
	return slices.EqualFunc(old.refs, e.refs, func(a, b resolved) bool {
		if to, ok := j.renames[a.name]; ok && !a.base {
			a.name = to
		}
		return a == b
	})
}

// inputsKept reports whether everything that e reads gives what it gave before.
func (j *judgment) inputsKept(e *entry, back map[viewkeeper.Name]viewkeeper.Name) bool {
	kept := true
	e.reads(func(_ int, target viewkeeper.Name) {
		was := target
		if from, ok := back[target]; ok {
			was = from
		}
		old, now := j.before.get(was), j.trial.after.get(target)
		kept = kept && old != nil && now != nil && old.ok() == now.ok() && sameColumns(old.columns, now.columns)
	})
	return kept
}
