package registrytest_test

import (
	"fmt"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// change is one statement of the random comparison.
type change struct {
	kind     string // create, drop, rename, comment
	def      *definition
	names    []viewkeeper.Name // of a drop; from and to of a rename; of a comment
	ifExists bool
	cascade  bool
	comment  *string
}

func (c change) text() string {
	switch c.kind {
	case "create":
		return c.def.text()
	case "drop":
		var names []string
		for _, n := range c.names {
			names = append(names, n.String())
		}
		text := "DROP VIEW "
		if c.ifExists {
			text += "IF EXISTS "
		}
		text += strings.Join(names, ", ")
		if c.cascade {
			text += " CASCADE"
		}
		return text
	case "rename":
		return fmt.Sprintf("ALTER VIEW %s RENAME TO %s", c.names[0], c.names[1].View)
	}
	if c.comment == nil {
		return fmt.Sprintf("COMMENT ON VIEW %s IS NULL", c.names[0])
	}
	return fmt.Sprintf("COMMENT ON VIEW %s IS '%s'", c.names[0], strings.ReplaceAll(*c.comment, "'", "''"))
}

func textOf(set []change) string {
	if len(set) == 1 {
		return set[0].text()
	}
	parts := []string{"BEGIN"}
	for _, c := range set {
		parts = append(parts, c.text())
	}
	return strings.Join(append(parts, "COMMIT;"), ";\n")
}

// expectation is what the law must say, by this file's own reading of it.
type expectation struct {
	// refused is set when a precondition refuses, with the codes that may come:
	// more than one when several things are wrong in a set.
	refused []viewkeeper.Code
	// unchanged says that all of the statement is.
	unchanged bool
	// post is the catalog after it, written the names that it creates or replaces
	// with a body, touched those whose row changes, moved the renames.
	post    definitions
	written map[viewkeeper.Name]bool
	touched map[viewkeeper.Name]bool
	moved   map[viewkeeper.Name]viewkeeper.Name // new name → old name
	dropped []viewkeeper.Name
	// inexact says that a rename captures a name that somebody means otherwise, so
	// that it may be refused for that alone.
	inexact bool
}

// expect works out what a statement does to the catalog before anything is built.
func expect(set []change, defs definitions, base tables) *expectation {
	// Each statement alone first: whatever of it refuses may be what refuses all.
	var refused []viewkeeper.Code
	alone := newExpectation(defs)
	alone.duplicates(set, defs, base)
	refused = append(refused, alone.refused...)
	for _, c := range set {
		alone := newExpectation(defs)
		alone.precondition(c, defs, base)
		refused = append(refused, alone.refused...)
	}
	e := newExpectation(defs)
	if e.refused = refused; refused != nil {
		return e
	}
	// Renames last: whether a reader's bare name still means the same is a matter of
	// what is there in the end.
	changes := 0
	for _, renames := range []bool{false, true} {
		for _, c := range set {
			if (c.kind == "rename") == renames && e.precondition(c, defs, base) {
				changes++
			}
		}
	}
	if len(e.moved) > 0 {
		e.rewrite(defs, base)
	}
	e.unchanged = changes == 0
	e.inexact = e.captures(defs, base)
	return e
}

func newExpectation(defs definitions) *expectation {
	return &expectation{
		post:    defs.clone(),
		written: map[viewkeeper.Name]bool{}, touched: map[viewkeeper.Name]bool{},
		moved: map[viewkeeper.Name]viewkeeper.Name{},
	}
}

// captures reports whether a set that renames something makes a ref of a
// definition that it does not write mean another thing.
func (e *expectation) captures(defs definitions, base tables) bool {
	if len(e.moved) == 0 {
		return false
	}
	for n, d := range e.post {
		was := n
		if old, ok := e.moved[n]; ok {
			was = old
		}
		if defs[was] == nil || e.written[n] {
			continue
		}
		after := meanings(d, e.post, base)
		for i, m := range meanings(defs[was], defs, base) {
			if back, ok := e.moved[after[i]]; ok {
				after[i] = back
			}
			if after[i] != m {
				return true
			}
		}
	}
	return false
}

func (e *expectation) refuse(code viewkeeper.Code) { e.refused = append(e.refused, code) }

// duplicates holds a set to one statement a name, the readers that a rename
// rewrites included.
func (e *expectation) duplicates(set []change, defs definitions, base tables) {
	dropped := map[viewkeeper.Name]bool{} // who goes in the same set is not rewritten
	for _, c := range set {
		for _, n := range c.names {
			dropped[n] = dropped[n] || c.kind == "drop"
		}
	}
	owned := map[viewkeeper.Name]int{}
	for i, c := range set {
		mine := map[viewkeeper.Name]bool{}
		for _, n := range c.targets() {
			mine[n] = true
		}
		if c.kind == "rename" {
			for _, n := range defs.names() {
				if names, _ := reads(defs[n], defs, base); slices.Contains(names, c.names[0]) && base[c.names[0]] == nil && !dropped[n] {
					mine[n] = true
				}
			}
		}
		for n := range mine {
			if before, ok := owned[n]; ok && before != i {
				e.refuse(viewkeeper.CodeDuplicateTarget)
			}
			owned[n] = i
		}
	}
}

func (c change) targets() []viewkeeper.Name {
	if c.kind == "create" {
		return []viewkeeper.Name{c.def.name}
	}
	return c.names
}

// precondition checks one statement against the catalog before the set, and puts
// its effect into post. It reports whether the statement changes anything.
func (e *expectation) precondition(c change, defs definitions, base tables) bool {
	switch c.kind {
	case "create":
		return e.create(c, defs, base)
	case "drop":
		return e.drop(c, defs, base)
	case "rename":
		return e.rename(c, defs, base)
	}
	n := c.names[0]
	d := defs[n]
	switch {
	case base[n] != nil && d == nil: // a definition that the base hides can be got out of the way
		e.refuse(viewkeeper.CodeWrongKind)
		return false
	case d == nil:
		e.refuse(viewkeeper.CodeNotFound)
		return false
	case d.comment == nil && c.comment == nil || d.comment != nil && c.comment != nil && *d.comment == *c.comment:
		return false
	}
	e.edit(n).comment = c.comment
	return true
}

// edit gives a definition of post that may be changed.
func (e *expectation) edit(n viewkeeper.Name) *definition {
	d := e.post[n].clone()
	e.post[n] = d
	e.touched[n] = true
	return d
}

func (e *expectation) create(c change, defs definitions, base tables) bool {
	n := c.def.name
	old := defs[n]
	replace := c.def.head == "CREATE OR REPLACE VIEW"
	switch {
	case base[n] != nil:
		e.refuse(viewkeeper.CodeWrongKind)
		e.refuse(viewkeeper.CodeExists)
		e.refuse(viewkeeper.CodeName)
		return false
	case old != nil && c.def.head == "CREATE VIEW IF NOT EXISTS":
		return false
	case old != nil && !replace:
		e.refuse(viewkeeper.CodeExists)
		return false
	case old != nil && old.same(c.def):
		return false
	}
	d := c.def.clone()
	if old != nil {
		d.comment = old.comment
	}
	e.post[n] = d
	e.written[n], e.touched[n] = true, true
	return true
}

func (e *expectation) drop(c change, defs definitions, base tables) bool {
	changed := false
	var gone []viewkeeper.Name
	for _, n := range c.names {
		switch {
		case base[n] != nil && defs[n] == nil:
			e.refuse(viewkeeper.CodeWrongKind)
		case defs[n] != nil:
			gone = append(gone, n)
			changed = true
		case !c.ifExists:
			e.refuse(viewkeeper.CodeNotFound)
		}
	}
	for _, n := range gone {
		delete(e.post, n)
		e.touched[n] = true
	}
	// CASCADE takes who reads something that is gone and finds nothing in its
	// place, until there is no such reader left.
	for again := c.cascade; again; {
		again = false
		for _, n := range e.post.names() {
			d := e.post[n]
			lost := false
			for i, m := range meanings(d, defs, base) {
				_, there := resolve(*d.body.refs()[i], n, e.post, base)
				lost = lost || !there && defs[m] != nil && base[m] == nil
			}
			if lost {
				delete(e.post, n)
				e.touched[n] = true
				gone = append(gone, n)
				again = true
			}
		}
	}
	e.dropped = append(e.dropped, gone...)
	return changed
}

// rename moves the definition; who reads it follows in rewrite.
func (e *expectation) rename(c change, defs definitions, base tables) bool {
	oldName, newName := c.names[0], c.names[1]
	switch {
	case base[oldName] != nil && defs[oldName] == nil:
		e.refuse(viewkeeper.CodeWrongKind)
		return false
	case defs[oldName] == nil:
		e.refuse(viewkeeper.CodeNotFound)
		return false
	case oldName == newName || defs[newName] != nil || base[newName] != nil:
		e.refuse(viewkeeper.CodeExists)
		e.refuse(viewkeeper.CodeWrongKind)
		e.refuse(viewkeeper.CodeDuplicateTarget)
		e.refuse(viewkeeper.CodeName)
		return false
	}
	moved := e.post[oldName].clone()
	moved.name = newName
	delete(e.post, oldName)
	e.post[newName] = moved
	e.touched[oldName], e.touched[newName] = true, true
	e.moved[newName] = oldName
	return true
}

// rewrite gives the renamed definitions and their readers the new names. All that
// they read stays what it was: where a bare name would mean something else after
// the change, it gets its schema.
func (e *expectation) rewrite(defs definitions, base tables) {
	renamed := map[viewkeeper.Name]viewkeeper.Name{} // old name → new name
	for to, from := range e.moved {
		renamed[from] = to
	}
	for _, n := range defs.names() {
		meant := meanings(defs[n], defs, base)
		now := n
		if to, ok := renamed[n]; ok {
			now = to
		}
		// A name that the base has means the base's relation, which keeps it.
		follows := func(m viewkeeper.Name) bool { return base[m] == nil && renamed[m] != viewkeeper.Name{} }
		affected := now != n || slices.ContainsFunc(meant, follows)
		if !affected || e.post[now] == nil {
			continue // the latter goes in the same set
		}
		d := e.edit(now)
		for i, r := range d.body.refs() {
			if to := renamed[meant[i]]; follows(meant[i]) {
				r.name = to
				meant[i] = to
			}
			if got, ok := resolve(*r, now, e.post, base); !r.qualified && ok && got != meant[i] {
				r.name, r.qualified = meant[i], true
			}
		}
	}
}
