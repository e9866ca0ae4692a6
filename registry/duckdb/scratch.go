package duckdb

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// scratch keeps the stubs. In the engine each is a view that gives an empty
// relation: a table would also have a rowid, which the definition that it stands for
// has not.
//
// What stubs there are is noted here, and the engine is told of a stub when a
// query that reads it is about to be bound (see ready): most definitions are read by
// nobody, and a change to one costs the engine nothing. So the views in the engine
// are a cache, made and dropped one by one outside of any transaction, and a trial is
// a journal of what to put back. An engine's transaction would do that too, but
// its costs grow with the catalog, and a value that can't be computed while a query is
// planned (LIMIT 'x'::INT) aborts it with all its stubs.
//
// It rests on this: what a query reads is among the walker's references, or the base's.
//
// An empty schema is dropped with its last stub, so that what the engine says of
// an unknown name does not depend on what there once was.
type scratch struct {
	conn *conn
	base *baseCatalog

	stubs map[viewkeeper.Name]*stub
	// schemas counts the stubs of each schema that is not the base's.
	schemas map[string]int
	// journal is what the trial has changed, in order.
	journal []change

	// made is what views the engine has, and of which stubs; one of unsure when it
	// does not matter what is there.
	made map[viewkeeper.Name]*stub
	// madeSchemas are the schemas that the engine has for them, moved those that came
	// or went here since.
	madeSchemas map[string]bool
	moved       map[string]bool
}

// stub is one definition's output. Two of one name with the same columns are one.
type stub struct {
	columns []viewkeeper.Column
	untyped bool // it has a column of the type "NULL", see nulls.go
}

// change is what stub a name had before, nil for none.
type change struct {
	name   viewkeeper.Name
	before *stub
}

// unsure stands for a view of which it is not known what became of it.
func unsure() *stub { return &stub{} }

func newScratch(c *conn, b *baseCatalog) *scratch {
	return &scratch{
		conn: c, base: b, stubs: map[viewkeeper.Name]*stub{}, schemas: map[string]int{},
		made: map[viewkeeper.Name]*stub{}, madeSchemas: map[string]bool{}, moved: map[string]bool{},
	}
}

// change makes stubs and removes them, in a trial. After an error the trial is
// undone.
func (s *scratch) change(stubs []registry.Stub) error {
	for _, c := range stubs {
		if c.Columns == nil {
			s.journaled(c.Name, nil)
			continue
		}
		if err := s.check(c); err != nil {
			s.settle(false)
			return err
		}
		if old := s.stubs[c.Name]; old != nil && slices.Equal(old.columns, c.Columns) {
			continue
		}
		s.journaled(c.Name, &stub{
			columns: c.Columns,
			untyped: slices.ContainsFunc(c.Columns, func(c viewkeeper.Column) bool { return isUntyped(c.Type) }),
		})
	}
	return nil
}

// check refuses a stub that must not become a statement.
func (s *scratch) check(c registry.Stub) error {
	if s.base.has(c.Name) {
		return fmt.Errorf("duckdb: the stub of %s: the base has a relation of that name", c.Name)
	}
	for _, col := range c.Columns {
		// The type is the only text here that is not quoted.
		if strings.Contains(col.Type, ";") && !isOneType(col.Type) {
			return fmt.Errorf("duckdb: the stub of %s: %q is not a type", c.Name, col.Type)
		}
	}
	return nil
}

// isOneType reports whether no statement can end within a type's text.
func isOneType(t string) bool {
	for _, tok := range lex(t) {
		if tok.is(t, ";") {
			return false
		}
	}
	return true
}

func (s *scratch) journaled(n viewkeeper.Name, to *stub) {
	s.journal = append(s.journal, change{n, s.stubs[n]})
	s.set(n, to)
}

// set gives a name a stub, or none.
func (s *scratch) set(n viewkeeper.Name, to *stub) {
	had := s.stubs[n] != nil
	if to == nil {
		delete(s.stubs, n)
	} else {
		s.stubs[n] = to
	}
	if had == (to != nil) || s.base.schemas[n.Schema] {
		return
	}
	if to != nil {
		s.schemas[n.Schema]++
	} else if s.schemas[n.Schema]--; s.schemas[n.Schema] == 0 {
		delete(s.schemas, n.Schema)
	}
	if there := s.schemas[n.Schema] > 0; there != s.madeSchemas[n.Schema] {
		s.moved[n.Schema] = true
	} else {
		delete(s.moved, n.Schema)
	}
}

// settle ends the trial, if one is open.
func (s *scratch) settle(keep bool) {
	if !keep {
		for _, c := range slices.Backward(s.journal) {
			s.set(c.name, c.before)
		}
	}
	s.journal = nil
}

// reset removes every stub.
func (s *scratch) reset() {
	s.settle(false)
	for n := range s.stubs {
		s.set(n, nil)
	}
}

// relations are all that a query over the stubs may read, in no order.
func (s *scratch) relations() iter.Seq[viewkeeper.Name] {
	return func(yield func(viewkeeper.Name) bool) {
		for n := range s.stubs {
			if !yield(n) {
				return
			}
		}
		for n := range s.base.relations {
			if !yield(n) {
				return
			}
		}
	}
}

// ready makes the engine's views of these names what their stubs are. Each statement
// may be run again whatever became of it, so that one that was interrupted is no
// matter.
func (s *scratch) ready(ctx context.Context, names iter.Seq[viewkeeper.Name]) error {
	var script strings.Builder
	for schema := range s.moved {
		if s.schemas[schema] > 0 {
			script.WriteString("CREATE SCHEMA IF NOT EXISTS " + viewkeeper.QuoteIdent(schema) + ";\n")
			continue
		}
		script.WriteString("DROP SCHEMA IF EXISTS " + viewkeeper.QuoteIdent(schema) + " CASCADE;\n")
		for n := range s.made {
			if n.Schema == schema {
				delete(s.made, n)
			}
		}
	}
	var changed []viewkeeper.Name
	for n := range names {
		want, have := s.stubs[n], s.made[n]
		if want == have {
			continue
		}
		if want != nil {
			script.WriteString("CREATE OR REPLACE VIEW " + n.SQL() + " AS " + emptyRelation(want.columns) + ";\n")
		} else if s.base.schemas[n.Schema] || s.schemas[n.Schema] > 0 {
			script.WriteString("DROP VIEW IF EXISTS " + n.SQL() + ";\n")
		}
		s.made[n] = unsure()
		changed = append(changed, n)
	}
	if script.Len() == 0 && len(changed) == 0 {
		return nil
	}
	if err := s.conn.script(ctx, script.String()); err != nil {
		return fmt.Errorf("duckdb: the stubs that a query reads: %w", err)
	}
	for schema := range s.moved {
		if s.schemas[schema] > 0 {
			s.madeSchemas[schema] = true
		} else {
			delete(s.madeSchemas, schema)
		}
	}
	clear(s.moved)
	for _, n := range changed {
		if want := s.stubs[n]; want != nil {
			s.made[n] = want
		} else {
			delete(s.made, n)
		}
	}
	return nil
}
