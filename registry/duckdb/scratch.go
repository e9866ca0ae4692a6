package duckdb

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// scratch keeps the stubs. Each is a view that gives an empty relation: a table
// would also have a rowid, which the definition that it stands for has not.
//
// A trial is one transaction on conn, and everything that is bound is bound
// there. The engine has no savepoints, and none are needed: a query that does not
// bind leaves the transaction as it was. What does abort it (a stub that the
// engine will not have) loses the trial; COMMIT would then drop the work and say
// that all is well, so such an error is never passed over.
//
// An empty schema is dropped with its last stub, so that what the engine says of
// an unknown name does not depend on what there once was.
type scratch struct {
	conn   *conn
	base   *baseCatalog
	open   bool // a trial is
	now    stubSet
	before stubSet         // now, when the trial began
	made   []registry.Stub // what the trial has changed, in order
}

// stubSet is what stubs there are.
type stubSet struct {
	stubs map[viewkeeper.Name]bool
	// schemas counts the stubs of each schema that is not the base's.
	schemas map[string]int
	// untyped holds the stubs with a column of the type "NULL", see nulls.go.
	untyped map[viewkeeper.Name]bool
}

func newStubSet() stubSet {
	return stubSet{map[viewkeeper.Name]bool{}, map[string]int{}, map[viewkeeper.Name]bool{}}
}

func (s stubSet) clone() stubSet {
	return stubSet{maps.Clone(s.stubs), maps.Clone(s.schemas), maps.Clone(s.untyped)}
}

func newScratch(c *conn, b *baseCatalog) *scratch {
	return &scratch{conn: c, base: b, now: newStubSet()}
}

// change makes stubs and removes them, in a trial. After an error the trial is
// undone.
func (s *scratch) change(ctx context.Context, stubs []registry.Stub) error {
	if len(stubs) == 0 {
		return nil
	}
	if !s.open {
		if err := s.conn.exec(ctx, "BEGIN"); err != nil {
			return err
		}
		s.open, s.before, s.made = true, s.now.clone(), nil
	}
	var script strings.Builder
	run := func(last viewkeeper.Name) error {
		if script.Len() == 0 {
			return nil
		}
		err := s.conn.script(ctx, script.String())
		script.Reset()
		if err != nil {
			return fmt.Errorf("duckdb: the stubs up to %s: %w", last, err)
		}
		return nil
	}
	for i, stub := range stubs {
		err := s.plan(&script, stub)
		if err == nil && (script.Len() > scriptBytes || i == len(stubs)-1) {
			err = run(stub.Name)
		}
		if err != nil {
			return errors.Join(err, s.settle(context.WithoutCancel(ctx), false))
		}
	}
	s.made = append(s.made, stubs...)
	return nil
}

// repair makes the trial anew when a query has aborted it: a value that can't be
// computed while a query is planned (LIMIT 'x'::INT) does that, unlike a name that is
// not there.
func (s *scratch) repair(ctx context.Context) error {
	if !s.open || s.conn.exec(ctx, "SELECT 1") == nil {
		return nil
	}
	made := s.made
	if err := s.settle(context.WithoutCancel(ctx), false); err != nil {
		return err
	}
	return s.change(ctx, made)
}

// scriptBytes is about how much SQL goes to the engine at once. Between two batches a
// context that is over is seen.
const scriptBytes = 16 << 10

// relations are all that a query over the stubs may read, in no order.
func (s *scratch) relations() iter.Seq[viewkeeper.Name] {
	return func(yield func(viewkeeper.Name) bool) {
		for _, names := range []map[viewkeeper.Name]bool{s.now.stubs, s.base.relations} {
			for n := range names {
				if !yield(n) {
					return
				}
			}
		}
	}
}

// plan writes the statements that make one change, and notes it as made.
func (s *scratch) plan(script *strings.Builder, stub registry.Stub) error {
	n := stub.Name
	if stub.Columns == nil {
		s.planDrop(script, n)
		return nil
	}
	if s.base.has(n) {
		return fmt.Errorf("duckdb: the stub of %s: the base has a relation of that name", n)
	}
	for _, c := range stub.Columns {
		// The type is the only text here that is not quoted.
		if strings.Contains(c.Type, ";") && !isOneType(c.Type) {
			return fmt.Errorf("duckdb: the stub of %s: %q is not a type", n, c.Type)
		}
	}
	if !s.now.stubs[n] && !s.base.schemas[n.Schema] {
		if s.now.schemas[n.Schema] == 0 {
			script.WriteString("CREATE SCHEMA " + viewkeeper.QuoteIdent(n.Schema) + ";\n")
		}
		s.now.schemas[n.Schema]++
	}
	script.WriteString("CREATE OR REPLACE VIEW " + n.SQL() + " AS " + emptyRelation(stub.Columns) + ";\n")
	s.now.stubs[n] = true
	delete(s.now.untyped, n)
	for _, c := range stub.Columns {
		if isUntyped(c.Type) {
			s.now.untyped[n] = true
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

func (s *scratch) planDrop(script *strings.Builder, n viewkeeper.Name) {
	if !s.now.stubs[n] {
		return
	}
	script.WriteString("DROP VIEW " + n.SQL() + ";\n")
	delete(s.now.stubs, n)
	delete(s.now.untyped, n)
	if s.base.schemas[n.Schema] {
		return
	}
	if s.now.schemas[n.Schema]--; s.now.schemas[n.Schema] == 0 {
		delete(s.now.schemas, n.Schema)
		script.WriteString("DROP SCHEMA " + viewkeeper.QuoteIdent(n.Schema) + ";\n")
	}
}

// settle ends the trial, if one is open.
func (s *scratch) settle(ctx context.Context, keep bool) error {
	if !s.open {
		return nil
	}
	s.open = false
	if keep {
		// COMMIT of an aborted transaction says that all is well. Any other statement
		// does not.
		err := s.conn.exec(ctx, "SELECT 1")
		if err == nil {
			err = s.conn.exec(ctx, "COMMIT")
		}
		if err == nil {
			return nil
		}
		s.now = s.before
		return errors.Join(err, s.conn.exec(context.WithoutCancel(ctx), "ROLLBACK"))
	}
	s.now = s.before
	return s.conn.exec(ctx, "ROLLBACK")
}

// reset drops every stub.
func (s *scratch) reset(ctx context.Context) error {
	if err := s.settle(ctx, false); err != nil {
		return err
	}
	if len(s.now.stubs) == 0 {
		return nil
	}
	var drops []registry.Stub
	for n := range s.now.stubs {
		drops = append(drops, registry.Stub{Name: n})
	}
	if err := s.change(ctx, drops); err != nil {
		return err
	}
	return s.settle(ctx, true)
}
