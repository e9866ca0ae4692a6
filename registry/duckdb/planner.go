package duckdb

import (
	"context"
	"errors"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Planner is a [registry.Planner] on a DuckDB instance of its own, in this
// process. Its context can only interrupt the engine, which some texts ignore while
// they are planned; for a hard end see the engine package.
type Planner struct {
	opts Options

	mu       sync.Mutex
	closed   bool
	instance *instance // nil: lost, to be opened again
	gate     *gate
	scratch  *scratch
	lanes    []*lane

	// What may bring a column of the type "NULL" into a query, see nulls.go.
	untypedBase   bool
	untypedMacros map[string]bool
}

var _ registry.Planner = (*Planner)(nil)

// Open opens a planner over the base that opts gives. An error in the base names
// the statement by its number.
func Open(ctx context.Context, opts Options) (*Planner, error) {
	p := &Planner{opts: opts}
	if err := p.open(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Planner) open(ctx context.Context) error {
	i, err := openInstance(ctx, p.opts)
	if err != nil {
		return err
	}
	p.instance = i
	if p.gate, err = openGate(ctx, i, p.opts.Limits); err != nil {
		p.lose()
		return err
	}
	c, err := i.connect()
	if err != nil {
		p.lose()
		return err
	}
	p.scratch = newScratch(c, p.gate.base)
	if err := p.openLanes(ctx); err != nil {
		p.lose()
		return err
	}
	return p.findUntypedBase(ctx)
}

// lose closes what is open of the instance. The next call opens another.
func (p *Planner) lose() {
	p.closeLanes()
	if p.scratch != nil {
		p.scratch.conn.close()
	}
	if p.gate != nil {
		p.gate.close()
	}
	if p.instance != nil {
		p.instance.close()
	}
	p.instance, p.gate, p.scratch = nil, nil, nil
}

// call runs f with the engine open, and lets nobody else in. When the engine turns
// out to be broken it is closed, and the error is a LostError.
func (p *Planner) call(ctx context.Context, f func() error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.instance == nil {
		if err := p.open(ctx); err != nil {
			return err
		}
	}
	err := broken(ctx, f())
	if registry.AsLost(err) != nil {
		p.lose()
	}
	return err
}

// broken makes a LostError of what the engine itself complains of and nobody here
// expected: the caller then finds out which query it was, in a fresh engine, and
// refuses that one. An error that was handed on as it is would come again with the
// same statement at every start.
func broken(ctx context.Context, err error) error {
	var engine *engineError
	if ctx.Err() == nil && errors.As(err, &engine) && registry.AsLost(err) == nil {
		return &registry.LostError{Detail: err.Error()}
	}
	return err
}

// Describe tells what the engine and the base are. It is worked out once.
func (p *Planner) Describe(ctx context.Context) (*registry.Engine, error) {
	var e registry.Engine
	err := p.call(ctx, func() error {
		e = p.gate.base.described
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &e, nil
}

// Parse passes each query through the gate.
func (p *Planner) Parse(ctx context.Context, queries []registry.Query) ([]registry.Parsed, error) {
	out := make([]registry.Parsed, len(queries))
	err := p.call(ctx, func() error {
		return p.each(len(queries), func(l *lane, i int) (err error) {
			out[i], err = l.gate.parse(ctx, queries[i].Text, forDefinition, queries[i].Strict)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Bind changes the stubs and plans the queries over them. After an error the trial
// is undone.
func (p *Planner) Bind(ctx context.Context, stubs []registry.Stub, queries []registry.Query) ([]registry.Bound, error) {
	out := make([]registry.Bound, len(queries))
	err := p.call(ctx, func() error {
		if err := p.scratch.change(stubs); err != nil {
			return err
		}
		err := p.bindAll(ctx, queries, out)
		if err != nil {
			p.scratch.settle(false)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// Settle ends the trial.
func (p *Planner) Settle(ctx context.Context, keep bool) error {
	return p.call(ctx, func() error {
		p.scratch.settle(keep)
		return nil
	})
}

// Reset drops all stubs.
func (p *Planner) Reset(ctx context.Context) error {
	return p.call(ctx, func() error {
		p.scratch.reset()
		return nil
	})
}

// Close ends the engine. Later calls return [ErrClosed].
func (p *Planner) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.lose()
	return nil
}

// findUntypedBase looks for columns of the type "NULL" in the base's relations, and
// for macros that may give one.
func (p *Planner) findUntypedBase(ctx context.Context) error {
	base := p.gate.base
	nothing := func(func(viewkeeper.Name) bool) {}
	for i, r := range base.described.Relations {
		columns := append([]viewkeeper.Column(nil), r.Columns...)
		if !p.mayBeUntyped("NULL", lex("NULL"), columns, nothing) {
			continue
		}
		if err := findUntyped(ctx, p.scratch.conn, "SELECT * FROM "+r.Name.SQL(), columns); err != nil {
			return err
		}
		for _, c := range columns {
			p.untypedBase = p.untypedBase || isUntyped(c.Type)
		}
		base.described.Relations[i].Columns = columns
	}
	p.untypedMacros = map[string]bool{}
	for i := range p.instance.base {
		s := &p.instance.base[i]
		if s.kind != "macro" {
			continue
		}
		integer := []viewkeeper.Column{{Type: "INTEGER"}}
		if p.mayBeUntyped(s.text, s.tokens, integer, nothing) {
			p.untypedMacros[s.name.View] = true
		}
	}
	return nil
}
