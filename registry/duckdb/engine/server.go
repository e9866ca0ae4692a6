package engine

import (
	"context"
	"errors"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// Server is a duckdb.Server whose engine is a child process.
//
// It remembers everything that was applied, and gives it to each new child before
// the first query: who applies need not know that the engine was lost.
type Server struct {
	supervisor *supervisor
	alone      *alone

	applying sync.Mutex // held by Apply for its whole time
	fill     *fill

	mu       sync.Mutex // held for a moment
	given    given
	killers  killers
	suspects suspects
	// lostReplays counts the children in a row that were lost on what is given.
	lostReplays int

	// Where tests lose the engine: called, when set, before an Apply is sent and
	// after it was answered.
	beforeApply, afterApply func(*process)
	querySent               func() // after a query was sent
}

var _ registry.Applier = (*Server)(nil)

// StartServer starts a server's child and waits until it is open: the base, and no
// definition, at version 0. ctx bounds the start alone.
func StartServer(ctx context.Context, cfg Config) (*Server, error) {
	s := &Server{}
	s.fill = newFill(s)
	cfg.Options.MakeLater = makeLater
	var err error
	s.supervisor, err = newSupervisor(ctx, cfg, roleServer, s.replay)
	if err != nil {
		return nil, err
	}
	s.alone = newAlone(s.supervisor, s.generation)
	s.fill.start()
	return s, nil
}

// Close ends the child. Queries that are open end with an error.
func (s *Server) Close() error {
	s.fill.stop()
	return s.supervisor.Close()
}

// Ready gives nil when the engine is there, else why it is not: a call made now
// would wait for the next one, or fail when that does not start.
func (s *Server) Ready() error { return s.supervisor.ready() }

// Losses counts the engines that were lost, killed or replaced so far.
func (s *Server) Losses() int64 { return s.supervisor.losses() }

// References is [duckdb.References]; it asks no engine.
func (s *Server) References(sql string) []string { return duckdb.References(sql) }

// Apply is that of [duckdb.Server]. When the engine is lost meanwhile, the changes
// are sifted for one that it was lost on, which is then refused. When there is none
// it is tried once more on the next engine, since all of it is applied or nothing.
//
// Of a large catalog that is given whole the views are made later, see fill.go.
func (s *Server) Apply(ctx context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply) error {
	s.applying.Lock()
	defer s.applying.Unlock()
	err := s.applyHeld(ctx, version, reset, changes, false)
	if err == nil && reset {
		s.fill.begin()
	}
	return err
}

// applyHeld is Apply with applying held. again says that all of it was applied before.
func (s *Server) applyHeld(ctx context.Context, version viewkeeper.Version, reset bool, changes []registry.Apply, again bool) error {
	s.mu.Lock()
	sift, good := s.killers.among(changes)
	now := s.suspects.among(changes)
	s.mu.Unlock()
	for lost := 0; ; {
		if len(sift) > 0 {
			if !reset {
				s.mu.Lock()
				_, given := s.given.all()
				s.mu.Unlock()
				good = append(given, good...)
			}
			refused, err := s.sift(ctx, good, version, sift)
			if err != nil {
				return err
			}
			if len(refused) > 0 {
				return &registry.ApplyError{Refused: refused}
			}
			sift = nil
		}
		p, err := s.applyOn(ctx, applyParams{Version: version, Reset: reset, Changes: changes, Now: now})
		if err != nil {
			if lost++; registry.AsLost(err) == nil || lost > 1 || ctx.Err() != nil {
				return err
			}
			sift, good = changes, nil
			if reset && len(changes) > makeLater {
				sift, good = madeAtOnce(changes, now)
			}
			continue
		}
		if s.afterApply != nil {
			s.afterApply(p)
		}
		s.mu.Lock()
		if !again {
			s.given.add(version, reset, changes)
		}
		s.suspects.made(changes)
		s.mu.Unlock()
		// A child that is on its way out may have been followed by one that was given
		// what was remembered a moment ago, without this. One that is not has no
		// follower yet, and its follower will be given this too.
		if !p.leaving() {
			return nil
		}
	}
}

func (s *Server) applyOn(ctx context.Context, params applyParams) (*process, error) {
	p, err := s.supervisor.acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer p.leave()
	if s.beforeApply != nil {
		s.beforeApply(p)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.supervisor.cfg.CallTimeout)
		defer cancel()
	}
	return p, s.supervisor.roundTrip(ctx, p, methodApply, params, nil)
}

// replay gives a new child what the ones before it had.
func (s *Server) replay(ctx context.Context, p *process) error {
	s.mu.Lock()
	version, changes := s.given.all()
	s.mu.Unlock()
	if version == 0 && len(changes) == 0 {
		return nil
	}
	var refused []registry.RefusedApply
	err := s.supervisor.roundTrip(ctx, p, methodRestore, applyParams{Version: version, Changes: changes}, &refused)
	if registry.AsLost(err) != nil {
		return errors.Join(err, s.giveLess(ctx, version, changes))
	}
	s.mu.Lock()
	s.lostReplays = 0
	s.mu.Unlock()
	for _, r := range refused {
		s.supervisor.cfg.Log.Error("the new engine refuses a definition that the one before had; queries of it fail until it is applied again",
			"definition", r.Name.String(), "reason", r.Reason)
	}
	if err == nil && len(refused) > 0 {
		s.supervisor.cfg.Refused()
	}
	if err == nil {
		s.fill.begin()
	}
	return err
}

// giveLess takes out of what is given what a second engine in a row was lost on: else
// none would ever start again. Whoever applied it learns of it when it is applied
// again.
func (s *Server) giveLess(ctx context.Context, version viewkeeper.Version, changes []registry.Apply) error {
	s.mu.Lock()
	s.lostReplays++
	again := s.lostReplays > 1
	s.mu.Unlock()
	if !again {
		return nil
	}
	refused, err := s.sift(ctx, nil, version, changes)
	if err != nil || len(refused) == 0 {
		return err
	}
	var drops []registry.Apply
	for _, r := range refused {
		s.supervisor.cfg.Log.Error("the engine is lost on a definition that it had; queries of it fail", "definition", r.Name.String(), "reason", r.Reason)
		drops = append(drops, registry.Apply{Name: r.Name})
	}
	s.mu.Lock()
	s.given.add(s.given.version, false, drops)
	s.mu.Unlock()
	s.supervisor.cfg.Refused()
	return nil
}

// generation tells whether what was applied is still the same.
func (s *Server) generation() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.given.generation
}

// given is all that was applied, in the order of each name's first coming. The
// order of dependencies it nearly is; Restore manages with that.
type given struct {
	generation uint64 // counts what was added
	version    viewkeeper.Version
	changes    []registry.Apply
	place      map[viewkeeper.Name]int // in changes
}

func (g *given) add(version viewkeeper.Version, reset bool, changes []registry.Apply) {
	g.version = version
	g.generation++
	if reset || g.place == nil {
		g.changes, g.place = nil, map[viewkeeper.Name]int{}
	}
	dropped := false
	for _, c := range changes {
		at, known := g.place[c.Name]
		switch {
		case known:
			g.changes[at] = c
			dropped = dropped || isDrop(c)
		case !isDrop(c):
			g.place[c.Name] = len(g.changes)
			g.changes = append(g.changes, c)
		}
	}
	if !dropped {
		return
	}
	kept := g.changes[:0]
	clear(g.place)
	for _, c := range g.changes {
		if !isDrop(c) {
			g.place[c.Name] = len(kept)
			kept = append(kept, c)
		}
	}
	clear(g.changes[len(kept):])
	g.changes = kept
}

// all gives what a new child needs. The list is the caller's.
func (g *given) all() (viewkeeper.Version, []registry.Apply) {
	return g.version, append([]registry.Apply(nil), g.changes...)
}

func isDrop(c registry.Apply) bool { return c.Query == "" && c.Empty == nil }
