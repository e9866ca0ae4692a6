package engine

import (
	"context"
	"slices"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Making all views of a large catalog takes the engine seconds, and replaying them
// after a loss as long again, while queries want a few of them at once. So an engine that
// is given a large catalog whole notes it ([duckdb.Options].MakeLater), is ready, and
// makes what a query names; and the rest is given to it again from here, a few views at
// a time, by an Apply of what is so already. That finds what the engine refuses and what
// it is lost on, as the Apply of a change does, and says so by Config.Refused: whoever
// applied it applies all again, and is told then, since a suspect is made at once.

const (
	// makeLater is up to how many views an engine makes at once: with fewer nobody waits
	// for long.
	makeLater = 200
	// fillBatch is how many views are made at a time, for which an Apply may have to wait.
	fillBatch = 25
)

// fill gives a server its views again, in a goroutine of its own.
type fill struct {
	server *Server
	kick   chan struct{}
	cancel context.CancelFunc
	ctx    context.Context
	wg     sync.WaitGroup

	batchDone func() // for tests: after each batch
}

func newFill(s *Server) *fill {
	f := &fill{server: s, kick: make(chan struct{}, 1)}
	f.ctx, f.cancel = context.WithCancel(context.Background())
	return f
}

func (f *fill) start() {
	f.wg.Add(1)
	go func() {
		defer f.wg.Done()
		for {
			select {
			case <-f.kick:
				f.run()
			case <-f.ctx.Done():
				return
			}
		}
	}()
}

func (f *fill) stop() {
	f.cancel()
	f.wg.Wait()
}

// begin has all views made, from the first on: the engine may be another one.
func (f *fill) begin() {
	select {
	case f.kick <- struct{}{}:
	default:
	}
}

// run makes all views. What is refused is left out: whoever applied it is told.
func (f *fill) run() {
	s := f.server
	refused := map[viewkeeper.Name]bool{}
	for at := 0; f.ctx.Err() == nil; {
		s.applying.Lock()
		s.mu.Lock()
		version, all := s.given.version, s.given.changes
		if len(all) <= makeLater || at >= len(all) {
			s.mu.Unlock()
			s.applying.Unlock()
			return
		}
		var batch []registry.Apply
		for _, c := range all[at:min(at+fillBatch, len(all))] {
			if !refused[c.Name] {
				batch = append(batch, c)
			}
		}
		s.mu.Unlock()
		err := s.applyHeld(f.ctx, version, false, batch, true)
		s.applying.Unlock()
		no := registry.AsRefused(err)
		switch {
		case err == nil:
			at += fillBatch
		case no == nil:
			return // a new engine begins again; meanwhile views are made when they are named
		case !f.leaveOut(refused, no.Refused, batch):
			at += fillBatch
		}
		if f.batchDone != nil {
			f.batchDone()
		}
	}
}

// leaveOut notes what of a batch was refused, and says so. It reports whether any was.
func (f *fill) leaveOut(out map[viewkeeper.Name]bool, refused []registry.RefusedApply, batch []registry.Apply) bool {
	s := f.server
	news := false
	s.mu.Lock()
	for _, r := range refused {
		for _, c := range batch {
			if c.Name == r.Name {
				news = true
				out[r.Name] = true
				s.suspects.add(c)
			}
		}
	}
	s.mu.Unlock()
	for _, r := range refused {
		s.supervisor.cfg.Log.Error("the engine refuses a definition; queries of it fail until it is applied again", "definition", r.Name.String(), "reason", r.Reason)
	}
	s.supervisor.cfg.Refused()
	return news
}

// suspects are the definitions that an engine refused after they were applied, with
// the text: they are made at once when they are applied again.
type suspects map[viewkeeper.Name]string

func (s *suspects) add(c registry.Apply) {
	if *s == nil {
		*s = suspects{}
	}
	(*s)[c.Name] = c.Query
}

// among gives the suspects among changes.
func (s suspects) among(changes []registry.Apply) (names []viewkeeper.Name) {
	if len(s) == 0 {
		return nil
	}
	for _, c := range changes {
		if text, ok := s[c.Name]; ok && text == c.Query {
			names = append(names, c.Name)
		}
	}
	return names
}

// made takes those off that were made.
func (s suspects) made(changes []registry.Apply) {
	if len(s) == 0 {
		return
	}
	for _, c := range changes {
		delete(s, c.Name)
	}
}

// madeAtOnce tells what of a large catalog an engine makes at once from what it notes.
func madeAtOnce(changes []registry.Apply, now []viewkeeper.Name) (made, noted []registry.Apply) {
	for _, c := range changes {
		if c.Files || slices.Contains(now, c.Name) {
			made = append(made, c)
		} else {
			noted = append(noted, c)
		}
	}
	return made, noted
}
