package registry

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// warn is the second half of point 7: what builds, and may not mean what was
// meant. New texts are looked at by themselves; of the others only what a change
// below them made different.
func (j *judgment) warn() {
	for _, n := range slices.SortedFunc(maps.Keys(j.trial.touched), viewkeeper.Name.Compare) {
		e := j.trial.after.get(n)
		if e == nil || !e.ok() {
			continue
		}
		l := &linter{judgment: j, entry: e, write: j.writes[n], old: j.before.get(n)}
		l.isNew = l.write != nil && l.write.create != nil
		if !l.isNew && l.old == nil { // renamed: the text was looked at when it was new
			continue
		}
		for p := range e.source.parts {
			l.part, l.scopes = p, unpackScopes(e.source.parts[p].scopes)
			l.run()
		}
	}
	for _, c := range j.trial.captures {
		j.captured(c)
	}
}

// captured warns of a reference that finds another relation than before, since an
// object came in front of that or went.
func (j *judgment) captured(c capture) {
	e := j.trial.after.get(c.reader)
	if e == nil || c.from.IsZero() || c.to.IsZero() || j.renames[c.from] == c.to {
		return
	}
	l := &linter{judgment: j, entry: e, write: j.writes[c.reader]}
	l.add(viewkeeper.WarnNameCaptured, e.source.refPlace(c.ref),
		"%s now means %s in %s, where it meant %s; write the schema if that is not wanted", e.source.refs[c.ref].View, c.to, e.name(), c.from)
}

// linter looks at one part of one definition.
type linter struct {
	*judgment
	entry *entry
	old   *entry // the definition before, nil for a new name
	write *write
	isNew bool // the statement gives the text
	part  int
	// scopes are those of the part.
	scopes []Scope
}

// add warns at a place in the definition's text; for a text that came with the
// statement that is shown in the submitted one.
func (l *linter) add(code viewkeeper.Code, offset int, format string, args ...any) {
	w := viewkeeper.Warning{Code: code, Name: l.entry.name(), Message: fmt.Sprintf(format, args...)}
	if l.write != nil && l.write.create != nil {
		if offset >= 0 {
			offset += l.write.create.Offset
		}
		w.Position = viewkeeper.PositionAt(l.sub.SQL, offset)
	} else {
		w.Position = viewkeeper.PositionAt(l.entry.sql(), offset)
	}
	l.d.Warnings = append(l.d.Warnings, w)
}

func (l *linter) parsed() *Parsed { return &l.entry.source.parts[l.part].parsed }

// at maps a place in the part's text to the definition's.
func (l *linter) at(offset int) int {
	return l.entry.source.place(l.part, noEdits, offset)
}

func (l *linter) run() {
	role := l.entry.source.parts[l.part].role
	if l.isNew && (role == roleBody || role == roleExtract) {
		l.outputNames()
	}
	l.unusedCTEs()
	for i := range l.scopes {
		s := &l.scopes[i]
		l.outerColumns(i)
		if l.isNew {
			continue
		}
		l.shifts(s)
		l.commonColumns(s)
		l.aliases(s)
	}
}

// outputNames warns of columns whose names the engine makes up: for an expression
// without one, and for a name that comes twice.
func (l *linter) outputNames() {
	create := l.entry.source.create
	if len(create.Columns) > 0 {
		seen := map[string]bool{}
		for _, c := range create.Columns {
			if seen[viewkeeper.Fold(c)] {
				l.add(viewkeeper.WarnDuplicateColumn, create.NameOffset, "the column list of %s has %s twice, and the engine renames one of them; give each a name of its own", l.entry.name(), c)
			}
			seen[viewkeeper.Fold(c)] = true
		}
	}
	first := true
	for i := range l.scopes {
		s := &l.scopes[i]
		if !s.Output || !first && s.SetOperation { // the first side of a set operation names its columns
			continue
		}
		first = false
		seen := map[string]bool{}
		for _, c := range create.Columns { // the rest keep the query's names beside them
			seen[viewkeeper.Fold(c)] = true
		}
		if s.Star && len(s.Joins) == 0 && len(create.Columns) == 0 {
			for k := range s.Sources {
				for _, c := range l.sourceColumns(l.after(), s, k) {
					l.duplicate(seen, c.Name, -1)
				}
			}
		}
		for k, item := range s.Items {
			if k >= len(create.Columns) && item.Name == "" {
				l.add(viewkeeper.WarnUnnamedColumn, l.at(item.At), "a column of %s has no name of its own, and the one that the engine makes up may differ by version; give it one with AS", l.entry.name())
			}
			if item.Name != "" && k >= len(create.Columns) && !(s.Star && len(create.Columns) > 0) {
				l.duplicate(seen, item.Name, l.at(item.At))
			}
		}
	}
}

func (l *linter) duplicate(seen map[string]bool, name string, at int) {
	if seen[viewkeeper.Fold(name)] {
		l.add(viewkeeper.WarnDuplicateColumn, at, "%s has more than one column %s, and the engine renames all but the first; give each a name of its own with AS", l.entry.name(), name)
	}
	seen[viewkeeper.Fold(name)] = true
}

// unusedCTEs warns of a relation that is not there in a CTE that nothing reads:
// the engine never looks.
func (l *linter) unusedCTEs() {
	for i := range l.entry.source.refs {
		r := &l.entry.source.refs[i]
		if r.part != l.part || !r.Unused || !l.entry.refs[i].name.IsZero() {
			continue
		}
		if !l.isNew && l.old != nil && (i >= len(l.old.refs) || l.old.refs[i].name.IsZero()) {
			continue
		}
		l.add(viewkeeper.WarnUnusedCTE, l.entry.source.refPlace(i), "a CTE that nothing reads reads %s, which does not exist; leave the CTE out, or correct it before it is used", r.candidates[len(r.candidates)-1])
	}
}

// world is where columns are looked up: the catalog before or after.
type world struct {
	graph *graph
	refs  []resolved
}

func (l *linter) after() world { return world{l.trial.after, l.entry.refs} }

// earlier is the world that the unchanged text was in before. Only for !isNew.
func (l *linter) earlier() world { return world{l.before, l.old.refs} }

// sourceColumns gives the columns of a FROM item, nil when they are not known:
// it is no plain relation, or that is not there.
func (l *linter) sourceColumns(w world, s *Scope, source int) []viewkeeper.Column {
	index := s.Sources[source].Reference
	if index < 0 {
		return nil
	}
	for i := range l.entry.source.refs {
		r := &l.entry.source.refs[i]
		if r.part == l.part && r.index == index {
			if i >= len(w.refs) {
				return nil
			}
			cols, _ := w.graph.columns(l.base, w.refs[i].name)
			return cols
		}
	}
	return nil
}

// has reports whether a FROM item has a column; known says whether that can be told.
func (l *linter) has(w world, s *Scope, source int, column string) (has, known bool) {
	cols := l.sourceColumns(w, s, source)
	return findColumn(cols, column) >= 0, cols != nil
}

// outerColumns warns of a column of a subquery that none of the subquery's own
// relations has, and one outside does: it means something, but often another thing.
// Of an old text, only when that is news.
func (l *linter) outerColumns(scope int) {
	s := &l.scopes[scope]
	if s.Parent < 0 || len(s.Sources) == 0 {
		return
	}
	for _, use := range s.Columns {
		if !l.fromOutside(l.after(), scope, use.Name) || slices.ContainsFunc(s.Items, func(it Item) bool { return it.Aliased && it.Name == use.Name }) {
			continue
		}
		if !l.isNew && l.fromOutside(l.earlier(), scope, use.Name) {
			continue
		}
		l.add(viewkeeper.WarnOuterColumn, l.at(use.At), "%s is no column of what the subquery reads, and is taken from the query around it; write it with its table if that is meant", use.Name)
	}
}

// fromOutside reports whether an unqualified column can only be one of an
// enclosing scope.
func (l *linter) fromOutside(w world, scope int, column string) bool {
	scopes := l.scopes
	s := &scopes[scope]
	for k := range s.Sources {
		if has, known := l.has(w, s, k, column); has || !known {
			return false
		}
	}
	for p := s.Parent; p >= 0 && p < len(scopes); p = scopes[p].Parent {
		for k := range scopes[p].Sources {
			if has, _ := l.has(w, &scopes[p], k, column); has {
				return true
			}
		}
	}
	return false
}

// shifts warns of a star whose columns moved under names or partners that go by
// position: those of a column list, or of a set operation.
func (l *linter) shifts(s *Scope) {
	list := s.Output && len(l.entry.source.create.Columns) > 0
	if !s.Star || !list && !s.SetOperation {
		return
	}
	for k := range s.Sources {
		was, is := l.sourceColumns(l.earlier(), s, k), l.sourceColumns(l.after(), s, k)
		if was == nil || is == nil || sameNames(was, is[:min(len(was), len(is))]) {
			continue
		}
		what := "the column list names them by position"
		if !list {
			what = "the set operation matches them by position"
		}
		l.add(viewkeeper.WarnColumnsShift, l.sourcePlace(s, k), "the columns of * in %s change from %s to %s, and %s; name the columns in place of *",
			l.entry.name(), columnList(was), columnList(is), what)
	}
}

func sameNames(a, b []viewkeeper.Column) bool {
	return slices.EqualFunc(a, b, func(x, y viewkeeper.Column) bool { return viewkeeper.Fold(x.Name) == viewkeeper.Fold(y.Name) })
}

// sourcePlace is where a FROM item's name stands, or -1.
func (l *linter) sourcePlace(s *Scope, source int) int {
	if i := s.Sources[source].Reference; i >= 0 && i < len(l.parsed().References) {
		return l.at(l.parsed().References[i].At)
	}
	return -1
}

// commonColumns warns of a NATURAL or USING join whose sides gain a common column.
func (l *linter) commonColumns(s *Scope) {
	for _, join := range s.Joins {
		was, is := l.common(l.earlier(), s, join), l.common(l.after(), s, join)
		if was == nil || is == nil {
			continue
		}
		var gained []string
		for c := range is {
			if !was[c] && !slices.ContainsFunc(join.Using, func(u string) bool { return viewkeeper.Fold(u) == c }) {
				gained = append(gained, c)
			}
		}
		if len(gained) == 0 {
			continue
		}
		slices.Sort(gained)
		kind, effect := "USING", "which it does not join on"
		if join.Natural {
			kind, effect = "NATURAL", "and joins on it, too"
		}
		l.add(viewkeeper.WarnCommonColumn, l.at(join.At), "both sides of a %s join in %s now have %s, %s; write out what it is to join on, and which columns it is to give",
			kind, l.entry.name(), strings.Join(gained, ", "), effect)
	}
}

// common gives the columns that both sides of a join have, nil when a side is not
// known.
func (l *linter) common(w world, s *Scope, join Join) map[string]bool {
	side := func(sources []int) map[string]bool {
		out := map[string]bool{}
		for _, k := range sources {
			cols := l.sourceColumns(w, s, k)
			if cols == nil {
				return nil
			}
			for _, c := range cols {
				out[viewkeeper.Fold(c.Name)] = true
			}
		}
		return out
	}
	left, right := side(join.Left), side(join.Right)
	if left == nil || right == nil {
		return nil
	}
	maps.DeleteFunc(left, func(c string, _ bool) bool { return !right[c] })
	return left
}

// aliases warns of an alias that the text uses like a column, when something
// below gains a column of that name, which comes first.
func (l *linter) aliases(s *Scope) {
	for _, item := range s.Items {
		if !item.Aliased || item.Name == "" {
			continue
		}
		for _, use := range s.Columns {
			// ORDER BY takes the alias before any column.
			if use.Clause == "order" || viewkeeper.Fold(use.Name) != viewkeeper.Fold(item.Name) {
				continue
			}
			for k := range s.Sources {
				was, known := l.has(l.earlier(), s, k, use.Name)
				is, _ := l.has(l.after(), s, k, use.Name)
				if known && !was && is {
					l.add(viewkeeper.WarnAliasCaptured, l.at(use.At), "%s meant the alias %s in %s, and now means the new column of that name; rename the alias, or write the column with its table",
						use.Name, item.Name, l.entry.name())
				}
			}
		}
	}
}
