package engine

import (
	"context"
	"maps"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// A definition that was bound by the planner may still take down the engine that is
// to serve it: the planner has more memory, or a file has grown since. Sifting finds
// out which it is where no query is hurt, in engines of its own; that one is refused,
// and everything else is applied.

// siftTime bounds one trial: making a view takes half a millisecond.
const siftTime = 10 * time.Second

// killers are the definitions that took an engine down, with the text that did it.
// They are tried alone before they come near the serving engine again.
type killers map[viewkeeper.Name]string

// among gives those of the changes that are known to have taken an engine down, and
// the others.
func (k killers) among(changes []registry.Apply) (known, others []registry.Apply) {
	if len(k) == 0 {
		return nil, changes
	}
	for _, c := range changes {
		if text, ok := k[c.Name]; ok && text == c.Query {
			known = append(known, c)
		} else {
			others = append(others, c)
		}
	}
	return known, others
}

// sift applies changes over good, in a child of its own, and gives those on which that
// is lost. What the engine refuses in words is not among them. It notes them as
// killers, and takes those off that turned out well.
func (s *Server) sift(ctx context.Context, good []registry.Apply, version viewkeeper.Version, changes []registry.Apply) ([]registry.RefusedApply, error) {
	var child *process
	end := func() {
		if child != nil {
			s.supervisor.end(child)
			child = nil
		}
	}
	defer end()
	try := func(items []registry.Apply) (err error) {
		ctx, cancel := context.WithTimeout(ctx, s.supervisor.cfg.StartTimeout)
		defer cancel()
		if child == nil {
			if child, err = s.supervisor.startAlone(ctx, nil); err != nil {
				return noVerdict{err}
			}
			if err = s.supervisor.roundTrip(ctx, child, methodRestore, applyParams{Version: version, Changes: good}, nil); err != nil {
				return noVerdict{err}
			}
		}
		ctx, cancelTrial := context.WithTimeout(ctx, min(siftTime, s.supervisor.cfg.CallTimeout))
		defer cancelTrial()
		return s.supervisor.roundTrip(ctx, child, methodApply, applyParams{Version: version, Changes: items}, nil)
	}
	guilty := map[viewkeeper.Name]string{}
	var refused []registry.RefusedApply
	var run func([]registry.Apply) error
	run = func(items []registry.Apply) error {
		if len(items) == 0 {
			return nil
		}
		err := try(items)
		_, none := err.(noVerdict)
		lost, no := registry.AsLost(err), registry.AsRefused(err)
		switch {
		case err == nil:
			good = append(good, items...)
			return nil
		case none || ctx.Err() != nil:
			return err
		case no != nil:
			rest := without(items, no.Refused)
			if len(rest) == len(items) {
				return err
			}
			return run(rest)
		case lost == nil:
			return err
		}
		end()
		if len(items) > 1 {
			half := len(items) / 2
			if err := run(items[:half]); err != nil {
				return err
			}
			return run(items[half:])
		}
		guilty[items[0].Name] = items[0].Query
		refused = append(refused, registry.RefusedApply{
			Name: items[0].Name, Reason: "the engine that answers queries is lost on it, also alone: " + lost.Detail,
		})
		return nil
	}
	if err := run(changes); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range changes {
		delete(s.killers, c.Name)
	}
	if s.killers == nil {
		s.killers = killers{}
	}
	maps.Copy(s.killers, guilty)
	return refused, nil
}

// noVerdict marks an error during which no change was at work.
type noVerdict struct{ error }

func (e noVerdict) Unwrap() error { return e.error }

func without(changes []registry.Apply, refused []registry.RefusedApply) []registry.Apply {
	names := map[viewkeeper.Name]bool{}
	for _, r := range refused {
		names[r.Name] = true
	}
	var rest []registry.Apply
	for _, c := range changes {
		if !names[c.Name] {
			rest = append(rest, c)
		}
	}
	return rest
}
