package registry

import (
	"errors"
	"fmt"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
)

// judgment is one submission on its way through the law, in the order of
// docs/language.md: form (here), preconditions.go, then a trial and what comes out of
// it (verdict.go).
type judgment struct {
	catalog *Catalog
	base    *Base
	sub     viewkeeper.Submission
	version viewkeeper.Version
	before  *graph
	d       viewkeeper.Decision

	stmt viewkeeper.Statement
	// writes are what the statement makes of the catalog, by name; order is the
	// names as the statement has them, what follows from them last.
	writes  map[viewkeeper.Name]*write
	order   []viewkeeper.Name
	renames map[viewkeeper.Name]viewkeeper.Name
	// same collects why parts of the statement change nothing.
	same []string

	trial *trial
	rows  []viewkeeper.Row
	// next is the catalog after the statement, nil when it does not change.
	next *Factory
}

// write is what becomes of one name.
type write struct {
	row    viewkeeper.Row
	action viewkeeper.Action
	// at is where the statement names it, -1 when it does not.
	at int
	// create is the statement that gives the text, nil for what only follows.
	create *viewkeeper.Create
	// rewritten says that a rename changed the text; renamed that it is the
	// renamed definition itself, under its new name.
	rewritten, renamed bool
}

func newJudgment(c *Catalog, s viewkeeper.Submission) *judgment {
	j := &judgment{
		catalog: c, base: c.base, sub: s, before: c.current.graph,
		version: c.options.VersionBase + viewkeeper.Version(s.Offset) + 1,
		writes:  map[viewkeeper.Name]*write{},
		renames: map[viewkeeper.Name]viewkeeper.Name{},
	}
	j.d = viewkeeper.Decision{
		StatementID: s.ID, Version: j.version, Offset: s.Offset,
		Author: s.Author, Reason: s.Reason, At: s.At,
		Owner: c.options.Owner, Epoch: c.options.Epoch,
		Engine: c.base.engine.Name, BaseDigest: c.base.engine.BaseDigest,
		SQL: s.SQL,
	}
	return j
}

// outcome is what was decided.
func (j *judgment) outcome() *Outcome {
	j.d.Normalize()
	return &Outcome{Decision: j.d, Rows: j.rows}
}

// refuse decides against the statement.
func (j *judgment) refuse(e *viewkeeper.Error) {
	j.d.Verdict, j.d.Code, j.d.Message = viewkeeper.Refused, e.Code, e.Message
	j.d.Position = nil
	if !j.sub.Tombstone {
		j.d.Position = viewkeeper.PositionAt(j.sub.SQL, e.Offset)
	}
	j.rows, j.d.Rows = nil, nil
}

// form is point 1: what can be said of the statement alone. Whether the key of a
// single statement names something else is part of it, and needs the catalog.
func (j *judgment) form() *viewkeeper.Error {
	if j.sub.HeaderError != "" {
		return viewkeeper.Errorf(viewkeeper.CodeOption, "%s", j.sub.HeaderError)
	}
	var err error
	if j.sub.Tombstone {
		var drop *viewkeeper.Drop // a nil one must not become a Statement
		if drop, err = ddl.ParseTombstone(j.sub.Key); err == nil {
			j.stmt = drop
		}
	} else {
		j.stmt, err = j.base.options.Sizes.Parse(j.sub.SQL)
	}
	if err != nil {
		return asError(err)
	}
	if j.sub.ExpectVersion != nil {
		if _, set := j.stmt.(*viewkeeper.ChangeSet); set {
			return viewkeeper.Errorf(viewkeeper.CodeOption, "expect_version is not for a change set; leave it out, or send the statements one by one")
		}
		if n := len(targets(j.stmt)); n != 1 {
			return viewkeeper.Errorf(viewkeeper.CodeOption,
				"expect_version is for a statement with exactly one target, and this one has %d; leave it out, or send statements one by one", n)
		}
	}
	return j.key()
}

// targets is what expect_version can mean: a rename is about one definition.
func targets(stmt viewkeeper.Statement) []viewkeeper.Name {
	if s, ok := stmt.(*viewkeeper.Rename); ok {
		return []viewkeeper.Name{s.From}
	}
	return slices.Compact(slices.SortedFunc(slices.Values(stmt.Targets()), viewkeeper.Name.Compare))
}

// key refuses the key of another definition: compaction keeps the last record of
// a key, and whoever reads that one takes it for this statement's.
func (j *judgment) key() *viewkeeper.Error {
	if _, set := j.stmt.(*viewkeeper.ChangeSet); set {
		return nil
	}
	name, err := viewkeeper.ParseName(j.sub.Key)
	if err != nil || slices.Contains(j.stmt.Targets(), name) {
		return nil
	}
	if kind := j.kind(name); kind != "" {
		return viewkeeper.Errorf(viewkeeper.CodeKeyMismatch,
			"the record's key names the %s %s, and the statement is about %s; use the statement's own name as the key, or a text that names nothing",
			kind.Noun(), name, nameList(j.stmt.Targets()))
	}
	return nil
}

// kind is what a name stands for before the statement, "" when for nothing.
func (j *judgment) kind(name viewkeeper.Name) viewkeeper.Kind {
	if _, ok := j.base.relations[name]; ok {
		return viewkeeper.KindRelation
	}
	if e := j.before.get(name); e != nil {
		return e.kind()
	}
	return ""
}

// target is the kind of what a statement about an existing name is about: the
// definition, also where a base relation hides it, since somebody has to be able
// to drop or rename it.
func (j *judgment) target(name viewkeeper.Name) viewkeeper.Kind {
	if e := j.before.get(name); e != nil {
		return e.kind()
	}
	return j.kind(name)
}

func asError(err error) *viewkeeper.Error {
	var e *viewkeeper.Error
	if errors.As(err, &e) {
		return e
	}
	return viewkeeper.Errorf(viewkeeper.CodeSyntax, "%v", err)
}

// nameList shows names in a message: "a", "a and b", "a, b and 7 more".
func nameList(names []viewkeeper.Name) string {
	const most = 5
	rest := 0
	if len(names) > most {
		rest = len(names) - most + 1
		names = names[:most-1]
	}
	out := ""
	for i, n := range names {
		switch {
		case i == 0:
		case i == len(names)-1 && rest == 0:
			out += " and "
		default:
			out += ", "
		}
		out += n.String()
	}
	if rest > 0 {
		out += fmt.Sprintf(" and %d more", rest)
	}
	return out
}
