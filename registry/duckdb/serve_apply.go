package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// applied is the real views as the last commit left them, and the connection
// that changes them.
//
// The fields below mu describe what is committed in the engine: they change only
// after a commit that was read back. A commit of an aborted transaction says
// nothing and drops the work, so every commit carries a number that no other has.
type applied struct {
	gate *queryGate

	mu      sync.Mutex
	conn    *conn
	closed  bool
	serial  uint64
	views   map[viewkeeper.Name]string // the statement that made each
	base    map[string]bool            // schemas that are not ours to drop
	schemas map[string]bool            // those that are
}

func (a *applied) open(ctx context.Context, i *instance, g *queryGate) error {
	c, err := i.connect()
	if err != nil {
		return err
	}
	a.gate, a.conn = g, c
	a.views, a.base, a.schemas = map[viewkeeper.Name]string{}, map[string]bool{}, map[string]bool{}
	rows, err := c.query(ctx, "SELECT DISTINCT schema_name FROM duckdb_schemas()")
	for _, row := range rows {
		a.base[viewkeeper.Fold(row[0])] = true
	}
	return err
}

func (a *applied) close() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.conn != nil {
		a.conn.close()
		a.conn = nil
	}
}

// Apply makes all changes and sets the version in one transaction, as
// [registry.Applier] says. What is already so is left alone: a view that comes
// with the text that it has costs nothing, so a reset costs what differs.
//
// A *registry.ApplyError names the definitions that the engine refused, as far as
// could be found out; there may be more. ErrClosed is returned after Close.
func (s *Server) Apply(ctx context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply) error {
	return s.apply.apply(ctx, version, reset, changes)
}

func (a *applied) apply(ctx context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	p, err := a.plan(ctx, reset, changes)
	if err != nil {
		return err
	}
	if len(p.refused) > 0 {
		return &registry.ApplyError{Refused: p.refused}
	}
	serial := a.serial + 1
	if err := a.transact(ctx, p, version, serial); err != nil {
		// The context may be over already, the transaction has to end all the same. A
		// rollback without one is an error that means nothing.
		_ = a.conn.exec(context.Background(), "ROLLBACK")
		if e := registry.AsRefused(err); e != nil {
			return a.survey(ctx, p, e)
		}
		return err
	}
	a.serial = serial
	a.views, a.schemas = p.views, p.schemas
	return nil
}

// applyPlan is the statements of one Apply and what will be when they are done.
type applyPlan struct {
	drops   []string // also of schemas; schemas come last
	schemas map[string]bool
	made    []string // schemas to create
	creates []create
	views   map[viewkeeper.Name]string
	refused []registry.RefusedApply // by the gate, before the engine was asked
}

type create struct {
	name viewkeeper.Name
	text string
	// alone is the view's query when that reads files and no relation, else "".
	alone string
}

// plan compares what is with what shall be.
func (a *applied) plan(ctx context.Context, reset bool, changes []registry.Apply) (*applyPlan, error) {
	p := &applyPlan{views: map[viewkeeper.Name]string{}, schemas: map[string]bool{}}
	if !reset {
		for name, text := range a.views {
			p.views[name] = text
		}
	}
	for _, change := range changes {
		if change.Query == "" && change.Empty == nil {
			delete(p.views, change.Name)
			continue
		}
		query, alone, err := a.gate.fullPaths(ctx, change.Query)
		if err != nil {
			refused, err := a.blame(change.Name, err)
			if err != nil {
				return nil, err
			}
			p.refused = append(p.refused, *refused)
			continue
		}
		change.Query = query
		text := viewStatement(change)
		p.views[change.Name] = text
		if a.views[change.Name] != text {
			c := create{name: change.Name, text: text}
			if alone {
				c.alone = query
			}
			p.creates = append(p.creates, c)
		}
	}
	for name := range p.views {
		if schema := name.Schema; !a.base[schema] && !p.schemas[schema] {
			p.schemas[schema] = true
			if !a.schemas[schema] {
				p.made = append(p.made, schema)
			}
		}
	}
	for name := range a.views {
		if _, ok := p.views[name]; !ok {
			p.drops = append(p.drops, "DROP VIEW "+name.SQL())
		}
	}
	for schema := range a.schemas {
		if !p.schemas[schema] {
			p.drops = append(p.drops, "DROP SCHEMA "+viewkeeper.QuoteIdent(schema))
		}
	}
	return p, nil
}

// transact runs a plan in one transaction and checks that it was committed.
func (a *applied) transact(ctx context.Context, p *applyPlan, version viewkeeper.Version, serial uint64) error {
	c := a.conn
	if err := c.exec(ctx, "BEGIN"); err != nil {
		return err
	}
	for _, schema := range p.made {
		if err := c.exec(ctx, "CREATE SCHEMA "+viewkeeper.QuoteIdent(schema)); err != nil {
			return fmt.Errorf("schema %s: %w", schema, err)
		}
	}
	for _, drop := range p.drops {
		if err := c.exec(ctx, drop); err != nil {
			return fmt.Errorf("%s: %w", drop, err)
		}
	}
	if err := a.create(ctx, p.creates); err != nil {
		return err
	}
	if err := c.exec(ctx, setApplied(version, serial)); err != nil {
		return err
	}
	// From here on the context no longer counts: an interrupted commit would leave
	// open what happened.
	ctx = context.WithoutCancel(ctx)
	if err := c.exec(ctx, "COMMIT"); err != nil {
		return err
	}
	now, err := readApplied(ctx, c)
	if err != nil {
		return err
	}
	if now.serial != serial {
		return errors.New("duckdb: the engine dropped the changes at the commit; nothing was applied")
	}
	return nil
}

// Restore brings a new server to where another one was, from the changes that were
// applied there. Nothing may have been applied here and no query be running: it
// takes many transactions.
//
// The changes need not be in dependency order: a view that the engine refuses is
// tried again after the others, for as long as that helps. One that it refuses then
// (a file that it reads is gone) is left out, and so is what reads that; refused has
// each of those.
func (s *Server) Restore(ctx context.Context, version viewkeeper.Version, changes []registry.Apply) (refused []registry.RefusedApply, err error) {
	return s.apply.restore(ctx, version, changes)
}

func (a *applied) restore(ctx context.Context, version viewkeeper.Version, changes []registry.Apply) ([]registry.RefusedApply, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return nil, ErrClosed
	}
	p, err := a.plan(ctx, false, changes)
	if err != nil {
		return nil, err
	}
	for _, schema := range p.made {
		if err := a.conn.exec(ctx, "CREATE SCHEMA "+viewkeeper.QuoteIdent(schema)); err != nil {
			return nil, err
		}
	}
	var refused []registry.RefusedApply
	for pending := p.creates; len(pending) > 0; {
		var again []create
		refused = nil
		for _, c := range pending {
			err := a.conn.exec(ctx, c.text)
			if err == nil {
				continue
			}
			r, err := a.blame(c.name, err)
			if err != nil {
				return nil, err
			}
			again, refused = append(again, c), append(refused, *r)
		}
		if len(again) == len(pending) {
			for _, c := range again {
				delete(p.views, c.name)
			}
			break
		}
		pending = again
	}
	refused = append(p.refused, refused...)
	if err := a.conn.exec(ctx, setApplied(version, a.serial+1)); err != nil {
		return refused, err
	}
	a.serial++
	a.views, a.schemas = p.views, p.schemas
	return refused, nil
}

// viewStatement is the statement that makes a change's view.
func viewStatement(change registry.Apply) string {
	var b strings.Builder
	b.WriteString("CREATE OR REPLACE VIEW " + change.Name.SQL())
	if len(change.Columns) > 0 {
		b.WriteString(" (")
		for i, column := range change.Columns {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(viewkeeper.QuoteIdent(column))
		}
		b.WriteString(")")
	}
	b.WriteString(" AS ")
	if change.Query != "" {
		b.WriteString(change.Query)
		return b.String()
	}
	b.WriteString(emptyRelation(change.Empty))
	return b.String()
}
