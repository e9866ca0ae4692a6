package duckdb

import (
	"context"
	"errors"
	"fmt"
	"maps"

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
	before stubSet // now, when the trial began
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
		s.open, s.before = true, s.now.clone()
	}
	for _, stub := range stubs {
		var err error
		if stub.Columns == nil {
			err = s.drop(ctx, stub.Name)
		} else {
			err = s.create(ctx, stub)
		}
		if err != nil {
			return errors.Join(fmt.Errorf("duckdb: the stub of %s: %w", stub.Name, err), s.settle(context.WithoutCancel(ctx), false))
		}
	}
	return nil
}

func (s *scratch) create(ctx context.Context, stub registry.Stub) error {
	n := stub.Name
	if s.base.has(n) {
		return errors.New("the base has a relation of that name")
	}
	if !s.now.stubs[n] && !s.base.schemas[n.Schema] {
		if s.now.schemas[n.Schema] == 0 {
			if err := s.conn.exec(ctx, "CREATE SCHEMA "+viewkeeper.QuoteIdent(n.Schema)); err != nil {
				return err
			}
		}
		s.now.schemas[n.Schema]++
	}
	if err := s.conn.exec(ctx, "CREATE OR REPLACE VIEW "+n.SQL()+" AS "+emptyRelation(stub.Columns)); err != nil {
		return err
	}
	s.now.stubs[n] = true
	delete(s.now.untyped, n)
	for _, c := range stub.Columns {
		if isUntyped(c.Type) {
			s.now.untyped[n] = true
		}
	}
	return nil
}

func (s *scratch) drop(ctx context.Context, n viewkeeper.Name) error {
	if !s.now.stubs[n] {
		return nil
	}
	if err := s.conn.exec(ctx, "DROP VIEW "+n.SQL()); err != nil {
		return err
	}
	delete(s.now.stubs, n)
	delete(s.now.untyped, n)
	if s.base.schemas[n.Schema] {
		return nil
	}
	if s.now.schemas[n.Schema]--; s.now.schemas[n.Schema] > 0 {
		return nil
	}
	delete(s.now.schemas, n.Schema)
	return s.conn.exec(ctx, "DROP SCHEMA "+viewkeeper.QuoteIdent(n.Schema))
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
