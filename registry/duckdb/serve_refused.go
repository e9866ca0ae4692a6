package duckdb

import (
	"context"
	"errors"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// create makes the views, which come in dependency order, in the transaction that
// is open. It finds as many that the engine refuses as it can: after most mistakes
// the engine goes on, after others (a file that is not there) it refuses all that
// comes. A view over a refused one is refused as well then, or stands over what was
// there before; whoever called knows who reads whom.
func (a *applied) create(ctx context.Context, creates []create) error {
	var refused []registry.RefusedApply
	for _, c := range creates {
		err := a.conn.exec(ctx, c.text)
		if err == nil {
			continue
		}
		r, own := a.blame(c.name, err)
		if own != nil {
			return own
		}
		refused = append(refused, *r)
		if !staysOpen(err) {
			break
		}
	}
	if len(refused) > 0 {
		return &registry.ApplyError{Refused: refused}
	}
	return nil
}

// blame tells a view that the engine, or the gate, refuses from trouble of the
// engine's own, which is the error.
func (a *applied) blame(name viewkeeper.Name, err error) (*registry.RefusedApply, error) {
	var plan *registry.PlanError
	if errors.As(err, &plan) {
		return &registry.RefusedApply{Name: name, Reason: plan.Message}, nil
	}
	var text textError
	if errors.As(err, &text) {
		return &registry.RefusedApply{Name: name, Reason: string(text)}, nil
	}
	var engine *engineError
	if !errors.As(err, &engine) {
		return nil, err
	}
	if lost := lostEngine(engine); lost != nil {
		return nil, lost
	}
	if engine.kind() == "transactioncontext" {
		return nil, err
	}
	return &registry.RefusedApply{Name: name, Reason: a.gate.gate.lake.hide(tidy(engine.Message))}, nil
}

// ownTrouble gives the LostError of an Apply that found no memory, or a broken engine,
// between its views: at BEGIN, at the version, at COMMIT. A query that took the memory
// is somebody else's, and the next engine makes the same changes.
func ownTrouble(err error) error {
	var engine *engineError
	if errors.As(err, &engine) {
		if lost := lostEngine(engine); lost != nil {
			return lost
		}
	}
	return err
}

// staysOpen reports whether the engine goes on with a transaction in which a
// statement failed so.
func staysOpen(err error) bool {
	var engine *engineError
	if !errors.As(err, &engine) {
		return false
	}
	switch engine.kind() {
	case "binder", "catalog", "parser", "syntax":
		return true
	}
	return false
}

// survey adds to what an Apply was refused for the other views of it whose files the
// engine can't read: when a whole folder is away, there would be a round for each
// view else. A query that reads files alone can be planned outside of the
// transaction; what goes wrong meanwhile is left to the next round.
func (a *applied) survey(ctx context.Context, p *applyPlan, e *registry.ApplyError) error {
	known := map[viewkeeper.Name]bool{}
	for _, r := range e.Refused {
		known[r.Name] = true
	}
	for _, c := range p.creates {
		if c.alone == "" || known[c.name] {
			continue
		}
		st, err := a.conn.prepare(ctx, c.alone)
		if err == nil {
			st.close()
			continue
		}
		r, own := a.blame(c.name, err)
		if own != nil {
			return own
		}
		e.Refused = append(e.Refused, *r)
	}
	return e
}
