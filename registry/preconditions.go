package registry

import (
	"fmt"
	"slices"

	"github.com/viewkeeper/viewkeeper"
)

// preconditions is points 2 and 3, and those of 8 and 9 that need no planner: it
// works out what the statement writes, or why it may not, against the catalog
// before. What changes nothing writes nothing.
func (j *judgment) preconditions() *viewkeeper.Error {
	statements := []viewkeeper.Statement{j.stmt}
	if set, ok := j.stmt.(*viewkeeper.ChangeSet); ok {
		statements = set.Statements
	}
	owned, err := owners(statements)
	if err != nil {
		return err
	}
	var cascades []viewkeeper.Name
	var renames []*viewkeeper.Rename
	for _, st := range statements {
		var err *viewkeeper.Error
		switch s := st.(type) {
		case *viewkeeper.Create:
			err = j.create(s)
		case *viewkeeper.Drop:
			err = j.drop(s)
			if s.Cascade {
				cascades = append(cascades, s.Names...)
			}
		case *viewkeeper.Rename:
			renames = append(renames, s)
			err = j.rename(s)
		case *viewkeeper.Comment:
			err = j.comment(s)
		default:
			err = viewkeeper.Errorf(viewkeeper.CodeSyntax, "a change set holds no other one")
		}
		if err != nil {
			return err
		}
	}
	j.cascade(cascades, owned)
	for _, s := range renames {
		if err := j.rewrite(s, owned); err != nil {
			return err
		}
	}
	return nil
}

// owners gives who owns each target, and refuses a target of two statements. A
// name twice in one DROP is one target.
func owners(statements []viewkeeper.Statement) (map[viewkeeper.Name]viewkeeper.Statement, *viewkeeper.Error) {
	owned := map[viewkeeper.Name]viewkeeper.Statement{}
	for _, st := range statements {
		for i, n := range st.Targets() {
			if first := owned[n]; first != nil && first != st {
				return nil, viewkeeper.ErrorAt(targetPlace(st, i), viewkeeper.CodeDuplicateTarget,
					"%s is the target of two statements of the change set; say once what is to become of it", n)
			}
			owned[n] = st
		}
	}
	return owned, nil
}

// targetPlace is where the i-th target stands in the submitted text.
func targetPlace(st viewkeeper.Statement, i int) int {
	switch s := st.(type) {
	case *viewkeeper.Create:
		return s.NameOffset
	case *viewkeeper.Drop:
		return s.Offsets[i]
	case *viewkeeper.Rename:
		return []int{s.FromOffset, s.ToOffset}[i]
	case *viewkeeper.Comment:
		return s.NameOffset
	}
	return -1
}

func (j *judgment) put(w *write) {
	if j.writes[w.row.Name] == nil {
		j.order = append(j.order, w.row.Name)
	}
	j.writes[w.row.Name] = w
}

// row makes the row of a definition as this statement leaves it; a nil definition
// is a drop. What a newer program wrote into the row before, if there was one,
// stays in it: this one cannot know what it is about.
func (j *judgment) row(name viewkeeper.Name, d *viewkeeper.Definition, old *entry) viewkeeper.Row {
	r := viewkeeper.Row{Name: name, Version: j.version, Epoch: j.catalog.options.Epoch, Definition: d}
	if old != nil && d != nil {
		r.Extra, r.Format = old.row.Extra, old.row.Format
	}
	return r
}

func (j *judgment) create(s *viewkeeper.Create) *viewkeeper.Error {
	refuse := func(code viewkeeper.Code, format string, args ...any) *viewkeeper.Error {
		return viewkeeper.ErrorAt(s.NameOffset, code, format, args...)
	}
	kind := j.kind(s.Name)
	if kind == viewkeeper.KindRelation {
		return refuse(viewkeeper.CodeName, "%s is reserved: the base has a relation of that name; choose another name", s.Name)
	}
	old := j.before.get(s.Name)
	if old == nil {
		if err := j.expect(s.Name, s.NameOffset); err != nil {
			return err
		}
		j.put(&write{
			row:    j.row(s.Name, &viewkeeper.Definition{Name: s.Name, Kind: s.Kind, SQL: s.SQL, ID: j.version}, nil),
			action: viewkeeper.ActionCreated, at: s.NameOffset, create: s,
		})
		return nil
	}
	if !s.OrReplace && !s.IfNotExists {
		return refuse(viewkeeper.CodeExists, "%s exists already, as a %s; say CREATE OR REPLACE to replace it, or IF NOT EXISTS to leave it as it is", s.Name, kind.Noun())
	}
	if kind != s.Kind {
		return refuse(viewkeeper.CodeWrongKind, "%s is a %s, not a %s; drop it first, in one change set with its readers if it has any", s.Name, kind.Noun(), s.Kind.Noun())
	}
	if err := j.expect(s.Name, s.NameOffset); err != nil {
		return err
	}
	same := old.source.create != nil && old.source.create.Canonical == s.Canonical
	switch {
	case s.IfNotExists:
		j.same = append(j.same, fmt.Sprintf("%s exists already", s.Name))
		if !same {
			j.d.Warnings = append(j.d.Warnings, viewkeeper.Warning{
				Code: viewkeeper.WarnExistingDiffers, Name: s.Name,
				Message:  fmt.Sprintf("%s exists already with another text, and stays as it is; say CREATE OR REPLACE to replace it", s.Name),
				Position: viewkeeper.PositionAt(j.sub.SQL, s.NameOffset),
			})
		}
	case same:
		j.same = append(j.same, fmt.Sprintf("%s has this text already", s.Name))
	default:
		d := *old.row.Definition
		d.SQL, d.Kind = s.SQL, s.Kind
		j.put(&write{row: j.row(s.Name, &d, old), action: viewkeeper.ActionReplaced, at: s.NameOffset, create: s})
	}
	return nil
}

// expect holds the statement to the version that its sender expects. Only a
// statement with one target has one.
func (j *judgment) expect(name viewkeeper.Name, at int) *viewkeeper.Error {
	want := j.sub.ExpectVersion
	if want == nil {
		return nil
	}
	var have viewkeeper.Version
	if e := j.before.get(name); e != nil {
		have = e.row.Version
	}
	switch {
	case have == *want:
		return nil
	case have == 0:
		return viewkeeper.ErrorAt(at, viewkeeper.CodeStaleVersion, "expected version %s of %s, which does not exist; look at its history and try again", *want, name)
	case *want == 0:
		return viewkeeper.ErrorAt(at, viewkeeper.CodeStaleVersion, "expected that %s does not exist, and it does, at version %s; look at it and try again", name, have)
	}
	return viewkeeper.ErrorAt(at, viewkeeper.CodeStaleVersion, "expected version %s of %s, which is at version %s; look at what changed and try again", *want, name, have)
}

func (j *judgment) drop(s *viewkeeper.Drop) *viewkeeper.Error {
	for i, n := range s.Names {
		at := s.Offsets[i]
		kind := j.target(n)
		switch {
		case kind == "" && !s.IfExists:
			return viewkeeper.ErrorAt(at, viewkeeper.CodeNotFound, "there is no %s; say DROP ... IF EXISTS if that is all right", n)
		case kind == viewkeeper.KindRelation:
			return viewkeeper.ErrorAt(at, viewkeeper.CodeWrongKind, "%s is a base relation, which no statement can drop; it belongs to the base that the nodes are started with", n)
		case kind != "" && s.Kind != viewkeeper.KindDefinition && kind != s.Kind:
			say := "DROP VIEW"
			if kind == viewkeeper.KindMaterialized {
				say = "DROP MATERIALIZED VIEW"
			}
			return viewkeeper.ErrorAt(at, viewkeeper.CodeWrongKind, "%s is a %s; say %s", n, kind.Noun(), say)
		}
		if err := j.expect(n, at); err != nil {
			return err
		}
		if kind == "" {
			j.same = append(j.same, fmt.Sprintf("there is no %s to drop", n))
			continue
		}
		j.put(&write{row: j.row(n, nil, nil), action: viewkeeper.ActionDropped, at: at})
	}
	return nil
}

// rename checks the names and moves the definition itself; rewrite sees to its
// readers, once it is known which of them stay.
func (j *judgment) rename(s *viewkeeper.Rename) *viewkeeper.Error {
	switch j.target(s.From) {
	case "":
		return viewkeeper.ErrorAt(s.FromOffset, viewkeeper.CodeNotFound, "there is no %s to rename; vk.definitions lists what there is", s.From)
	case viewkeeper.KindRelation:
		return viewkeeper.ErrorAt(s.FromOffset, viewkeeper.CodeWrongKind, "%s is a base relation, which no statement can rename; it belongs to the base that the nodes are started with", s.From)
	}
	switch kind := j.kind(s.To); kind {
	case "":
	case viewkeeper.KindRelation:
		return viewkeeper.ErrorAt(s.ToOffset, viewkeeper.CodeName, "%s is reserved: the base has a relation of that name; choose another name", s.To)
	default:
		return viewkeeper.ErrorAt(s.ToOffset, viewkeeper.CodeExists, "%s exists already, as a %s; choose another name, or drop it first", s.To, kind.Noun())
	}
	if err := j.expect(s.From, s.FromOffset); err != nil {
		return err
	}
	return j.move(s)
}

func (j *judgment) comment(s *viewkeeper.Comment) *viewkeeper.Error {
	switch j.target(s.Name) {
	case "":
		return viewkeeper.ErrorAt(s.NameOffset, viewkeeper.CodeNotFound, "there is no %s to comment on; vk.definitions lists what there is", s.Name)
	case viewkeeper.KindRelation:
		return viewkeeper.ErrorAt(s.NameOffset, viewkeeper.CodeWrongKind, "%s is a base relation, and only definitions have comments here", s.Name)
	}
	if err := j.expect(s.Name, s.NameOffset); err != nil {
		return err
	}
	old := j.before.get(s.Name)
	d := *old.row.Definition
	if sameComment(d.Comment, s.Text) {
		j.same = append(j.same, fmt.Sprintf("%s has this comment already", s.Name))
		return nil
	}
	d.Comment = s.Text
	j.put(&write{row: j.row(s.Name, &d, old), action: viewkeeper.ActionCommented, at: s.NameOffset})
	return nil
}

func sameComment(a, b *string) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// cascade drops, with the dropped names, who cannot do without them: each reader
// with a reference that would stand for nothing, and its readers in turn. What
// another statement of the set is about is left to that statement; a reader that
// would find another relation of that name stays, and is judged by that. What it
// would find may itself go later on, so this goes round until nobody is left.
func (j *judgment) cascade(from []viewkeeper.Name, owned map[viewkeeper.Name]viewkeeper.Statement) {
	gone := slices.DeleteFunc(slices.Clone(from), func(n viewkeeper.Name) bool { return j.before.get(n) == nil })
	for settled := -1; settled < len(gone); {
		settled = len(gone)
		for i := 0; i < len(gone); i++ {
			for _, e := range j.before.readers(gone[i]) {
				if j.writes[e.name()] != nil || owned[e.name()] != nil || !j.orphaned(e, gone[i]) {
					continue
				}
				j.put(&write{row: j.row(e.name(), nil, nil), action: viewkeeper.ActionDropped, at: -1})
				gone = append(gone, e.name())
			}
		}
	}
}

// orphaned reports whether a reference of e to the dropped name n finds nothing
// in its place.
func (j *judgment) orphaned(e *entry, n viewkeeper.Name) bool {
	for i, r := range e.refs {
		s := &e.source.refs[i]
		if r.name == n && !r.base && !s.Unused && !slices.ContainsFunc(s.candidates, j.existsAfter) {
			return true
		}
	}
	return false
}

// existsAfter reports whether a name will stand for something when all writes
// known so far are done.
func (j *judgment) existsAfter(n viewkeeper.Name) bool {
	if _, base := j.base.relations[n]; base { // also where it hides a definition
		return true
	}
	if w := j.writes[n]; w != nil {
		return w.row.Live()
	}
	return j.before.get(n) != nil
}
