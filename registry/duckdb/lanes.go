package duckdb

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/viewkeeper/viewkeeper/registry"
)

// lane is what one query at a time is parsed and bound on. The lanes of a planner share
// all that the gate and the scratch catalog know, and work side by side on the queries
// of one call: these do not see one another, and the stubs that they read are made, and
// there for all connections, before the first is bound.
type lane struct {
	gate *gate
	conn *conn
}

const (
	// maxLanes bounds what a planner takes of a machine that others are on too.
	maxLanes = 4
	// worthLanes is how many queries are worth more than one lane.
	worthLanes = 8
)

// openLanes opens a lane for each processor. The first is the gate's and the scratch
// catalog's own.
func (p *Planner) openLanes(ctx context.Context) error {
	p.lanes = []*lane{{p.gate, p.scratch.conn}}
	for len(p.lanes) < min(maxLanes, runtime.GOMAXPROCS(0)) {
		g, err := p.gate.another(ctx, p.instance)
		if err != nil {
			return err
		}
		c, err := p.instance.connect()
		if err != nil {
			g.close()
			return err
		}
		p.lanes = append(p.lanes, &lane{g, c})
	}
	for _, l := range p.lanes {
		// The optimizer's time is exponential in texts that are short, see bind.go.
		if err := l.conn.exec(ctx, "PRAGMA disable_optimizer"); err != nil {
			return err
		}
	}
	return nil
}

// closeLanes closes all lanes but the first, which has other owners.
func (p *Planner) closeLanes() {
	for i, l := range p.lanes {
		if i > 0 {
			l.gate.close()
			l.conn.close()
		}
	}
	p.lanes = nil
}

// another gives a gate that says the same, for another caller.
func (g *gate) another(ctx context.Context, i *instance) (*gate, error) {
	c, err := i.connect()
	if err != nil {
		return nil, err
	}
	other := *g
	other.conn, other.engine = c, map[string]*engineMacroCost{}
	if other.serialize, err = c.prepare(ctx, serializeSQL); err != nil {
		c.close()
		return nil, err
	}
	return &other, nil
}

// each calls f with 0 to n-1, each once, on some lane. After an error no more calls
// begin, and the error is one of those; that of a lost engine comes first.
func (p *Planner) each(n int, f func(l *lane, i int) error) error {
	if n < worthLanes || len(p.lanes) == 1 {
		for i := range n {
			if err := f(p.lanes[0], i); err != nil {
				return err
			}
		}
		return nil
	}
	var next atomic.Int64
	var failed atomic.Bool
	errs := make([]error, len(p.lanes))
	var group sync.WaitGroup
	for k, l := range p.lanes {
		group.Go(func() {
			for !failed.Load() {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				if errs[k] = f(l, i); errs[k] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if registry.AsLost(err) != nil {
			return err
		}
	}
	return errors.Join(errs...)
}
