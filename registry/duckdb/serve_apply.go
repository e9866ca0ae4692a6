package duckdb

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// applied is the real views as the last commit left them, and the connection
// that changes them.
//
// The fields below mu describe what is committed in the engine: they change only
// after a commit that was read back. A commit of an aborted transaction says
// nothing and drops the work, so every commit carries a number that no other has.
//
// To make a view takes the engine's binder through all that is below it: seconds for
// a large catalog. So one that is given whole is noted, and a view is made when a
// query names it, or when it is given again (see [Options].MakeLater). What is made
// has all that it reads made, too; what is noted is nowhere in the engine.
type applied struct {
	gate  *queryGate
	later int // Options.MakeLater
	// noting is odd while views are noted, and moves on each time that changes: before
	// the commit with which it begins, after the one with which it ends.
	noting atomic.Uint64

	mu      sync.Mutex
	conn    *conn
	closed  bool
	version viewkeeper.Version
	serial  uint64
	views   map[viewkeeper.Name]string // what each is, made or noted: its statement
	notes   map[viewkeeper.Name]*note  // those that are not made
	base    map[string]bool            // schemas that are not ours to drop
	schemas map[string]int             // the views in each that is
}

// note is a view that is to be made.
type note struct {
	change registry.Apply
	place  int // in what it was given with
}

func (a *applied) open(ctx context.Context, i *instance, g *queryGate, later int) error {
	c, err := i.connect()
	if err != nil {
		return err
	}
	a.gate, a.conn, a.later = g, c, later
	a.views, a.notes = map[viewkeeper.Name]string{}, map[viewkeeper.Name]*note{}
	a.base, a.schemas = map[string]bool{}, map[string]int{}
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
	return s.ApplyAll(ctx, version, reset, changes, nil)
}

// ApplyAll is Apply that makes the named views at once, whatever Options.MakeLater
// says: those that the engine may refuse.
func (s *Server) ApplyAll(ctx context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply, now []viewkeeper.Name) error {
	return ownTrouble(s.apply.apply(ctx, version, reset, changes, now))
}

func (a *applied) apply(ctx context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply, now []viewkeeper.Name) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return ErrClosed
	}
	p := a.newPlan(reset && a.later > 0 && len(changes) > a.later)
	for _, name := range now {
		p.now[name] = true
	}
	p.add(changes)
	if reset {
		p.dropOthers(changes)
	}
	return a.carryOut(ctx, p, version)
}

// carryOut makes what is planned, or changes nothing. mu is held.
func (a *applied) carryOut(ctx context.Context, p *applyPlan, version viewkeeper.Version) error {
	if err := p.finish(ctx); err != nil {
		return err
	}
	if len(p.refused) > 0 {
		return &registry.ApplyError{Refused: p.refused}
	}
	if len(p.notes) > 0 {
		a.isNoting(true)
	}
	defer func() { a.isNoting(len(a.notes) > 0) }()
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
	a.version, a.serial = version, serial
	p.done()
	return nil
}

func (a *applied) isNoting(is bool) {
	if (a.noting.Load()%2 == 1) != is {
		a.noting.Add(1)
	}
}

// applyPlan is the statements of one Apply and what will be when they are done.
type applyPlan struct {
	a *applied
	// later notes what need not be made at once; now holds what must.
	later bool
	now   map[viewkeeper.Name]bool

	set   map[viewkeeper.Name]string // the statement that a name gets; "" for none
	asks  []viewkeeper.Name          // what is to be made, in order
	given map[viewkeeper.Name]*note  // what was given otherwise than it is

	// The rest is there when it is finished.

	made    []string // schemas to create
	drops   []string // also of schemas; schemas come last
	creates []create
	notes   map[viewkeeper.Name]*note
	schemas map[string]int          // how many views more there are in each
	refused []registry.RefusedApply // by the gate, before the engine was asked
}

type create struct {
	name viewkeeper.Name
	text string
	// alone is the view's query when that reads files and no relation, else "".
	alone string
}

func (a *applied) newPlan(later bool) *applyPlan {
	return &applyPlan{
		a: a, later: later, now: map[viewkeeper.Name]bool{}, set: map[viewkeeper.Name]string{},
		given: map[viewkeeper.Name]*note{}, notes: map[viewkeeper.Name]*note{}, schemas: map[string]int{},
	}
}

// add compares changes with what is.
func (p *applyPlan) add(changes []registry.Apply) {
	for i, change := range changes {
		name := change.Name
		if change.Query == "" && change.Empty == nil {
			p.set[name] = ""
			continue
		}
		text := viewStatement(change)
		p.set[name] = text
		_, noted := p.a.notes[name]
		made := p.a.views[name] != "" && !noted
		if made && p.a.views[name] == text {
			delete(p.given, name)
			continue
		}
		p.given[name] = &note{change, i}
		if made || !p.later || change.Files || p.now[name] {
			p.asks = append(p.asks, name)
		}
	}
}

// dropOthers drops what is not among the changes.
func (p *applyPlan) dropOthers(changes []registry.Apply) {
	among := make(map[viewkeeper.Name]bool, len(changes))
	for _, change := range changes {
		among[change.Name] = true
	}
	for name := range p.a.views {
		if !among[name] {
			p.set[name] = ""
		}
	}
}

// pending is what is to be made of a name, nil when nothing is.
func (p *applyPlan) pending(name viewkeeper.Name) *note {
	text, changes := p.set[name]
	switch given := p.given[name]; {
	case changes && text == "":
		return nil
	case given != nil:
		return given
	}
	return p.a.notes[name]
}

// finish works out the statements. The error is the engine's own trouble.
func (p *applyPlan) finish(ctx context.Context) error {
	for name, text := range p.set {
		was, had := p.a.views[name]
		_, noted := p.a.notes[name]
		switch {
		case text != "" && !had:
			p.schemas[name.Schema]++
		case text == "" && had:
			p.schemas[name.Schema]--
			if !noted && was != "" {
				p.drops = append(p.drops, "DROP VIEW "+name.SQL())
			}
		}
	}
	for schema, more := range p.schemas {
		switch had := p.a.schemas[schema]; {
		case p.a.base[schema]:
			delete(p.schemas, schema)
		case had == 0 && more > 0:
			p.made = append(p.made, schema)
		case had > 0 && had+more == 0:
			p.drops = append(p.drops, "DROP SCHEMA "+viewkeeper.QuoteIdent(schema))
		}
	}
	seen := map[viewkeeper.Name]bool{}
	var need func(name viewkeeper.Name) error
	need = func(name viewkeeper.Name) error {
		n := p.pending(name)
		if n == nil || seen[name] {
			return nil
		}
		seen[name] = true
		for _, below := range n.change.Reads {
			if err := need(below); err != nil {
				return err
			}
		}
		return p.create(ctx, n.change)
	}
	for _, name := range p.asks {
		if err := need(name); err != nil {
			return err
		}
	}
	for name, n := range p.given {
		if !seen[name] && p.pending(name) != nil {
			p.notes[name] = n
		}
	}
	return nil
}

// create adds the statement that makes a view, or a refusal of the gate.
func (p *applyPlan) create(ctx context.Context, change registry.Apply) error {
	query, alone, err := p.a.gate.fullPaths(ctx, change.Query)
	if err != nil {
		refused, err := p.a.blame(change.Name, err)
		if err != nil {
			return err
		}
		p.refused = append(p.refused, *refused)
		return nil
	}
	change.Query = query
	c := create{name: change.Name, text: viewStatement(change)}
	if alone {
		c.alone = query
	}
	p.creates = append(p.creates, c)
	return nil
}

// done notes that what was planned is so.
func (p *applyPlan) done() {
	a := p.a
	for name, text := range p.set {
		if text == "" {
			delete(a.views, name)
			delete(a.notes, name)
		} else {
			a.views[name] = text
		}
	}
	for name, n := range p.notes {
		a.notes[name] = n
	}
	for _, c := range p.creates {
		delete(a.notes, c.name)
	}
	for schema, more := range p.schemas {
		if a.schemas[schema] += more; a.schemas[schema] == 0 {
			delete(a.schemas, schema)
		}
	}
}

// transact runs a plan in one transaction and checks that it was committed.
func (a *applied) transact(ctx context.Context, p *applyPlan, version viewkeeper.Version, serial uint64) error {
	c := a.conn
	if err := c.exec(ctx, "BEGIN"); err != nil {
		return err
	}
	for _, schema := range p.made {
		if err := c.exec(ctx, "CREATE SCHEMA IF NOT EXISTS "+viewkeeper.QuoteIdent(schema)); err != nil {
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
	p := a.newPlan(a.later > 0 && len(changes) > a.later)
	p.add(changes)
	if p.later {
		p.asks = nil // a file that has gone is found when its view is made
		return nil, a.carryOut(ctx, p, version)
	}
	if err := p.finish(ctx); err != nil {
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
			break
		}
		pending = again
	}
	refused = append(p.refused, refused...)
	for _, r := range refused {
		delete(p.set, r.Name)
		if !a.base[r.Name.Schema] { // the schema itself stays
			p.schemas[r.Name.Schema]--
		}
	}
	if err := a.conn.exec(ctx, setApplied(version, a.serial+1)); err != nil {
		return refused, err
	}
	a.serial++
	a.version = version
	p.done()
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
