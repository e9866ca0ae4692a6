package modelcheck

import (
	"fmt"
	"hash/maphash"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper/codec"
)

// Result is what came of an exploration.
type Result struct {
	// States is how many different ones were seen, Depth the most steps to one.
	States, Depth int
	// Exhausted says that there are no others within the bounds.
	Exhausted bool
	// Trace is the shortest way to a state in which an invariant does not hold, empty
	// when there is none; Violation says which.
	Trace     []string
	Violation string
	// Log is the table at its end, a record a line.
	Log []string
}

// Found reports whether there is a counterexample.
func (r *Result) Found() bool { return r.Violation != "" }

// String tells the story.
func (r *Result) String() string {
	if !r.Found() {
		return fmt.Sprintf("%d states, %d steps at most, exhausted: %v", r.States, r.Depth, r.Exhausted)
	}
	var b strings.Builder
	for i, step := range r.Trace {
		fmt.Fprintf(&b, "%3d  %s\n", i+1, step)
	}
	fmt.Fprintf(&b, "     %s\n", strings.ReplaceAll(r.Violation, "\n", "\n     "))
	fmt.Fprintf(&b, "the table then:\n")
	for _, line := range r.Log {
		fmt.Fprintf(&b, "     %s\n", line)
	}
	return b.String()
}

type checker struct {
	cfg  Config
	in   *interned
	next []successor
	buf  []byte
	seed [2]maphash.Seed
	// telling says that labels are wanted; they cost more than the rest.
	telling bool
}

type successor struct {
	state *state
	label string
	err   error
	// changed says that the topics did.
	changed bool
}

type hash [2]uint64

// Check explores all states within the bounds, breadth first, until an invariant does
// not hold in one.
func Check(cfg Config) *Result {
	c := &checker{cfg: cfg, in: newInterned(), seed: [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}}
	type visit struct {
		from int32
		nth  int32
	}
	start := &state{owners: make([]owner, cfg.Owners)}
	seen := map[hash]struct{}{c.hash(start): {}}
	visits := []visit{{-1, 0}}
	level := []*state{start}
	ids := []int32{0}
	r := &Result{}
	way := func(id int32) (nth []int32) {
		for ; visits[id].from >= 0; id = visits[id].from {
			nth = append(nth, visits[id].nth)
		}
		slices.Reverse(nth)
		return nth
	}
	for len(level) > 0 {
		var deeper []*state
		var deeperIDs []int32
		for i, s := range level {
			for nth, n := range c.successors(s) {
				h := c.hash(n.state)
				if _, known := seen[h]; known && n.err == nil {
					continue
				}
				if n.err == nil && n.changed {
					n.err = c.invariants(n.state)
				}
				if n.err != nil {
					r.States = len(visits)
					c.tell(r, start, append(way(ids[i]), int32(nth)))
					r.Violation = n.err.Error()
					return r
				}
				seen[h] = struct{}{}
				id := int32(len(visits))
				visits = append(visits, visit{ids[i], int32(nth)})
				deeper, deeperIDs = append(deeper, n.state), append(deeperIDs, id)
			}
			level[i] = nil
			if cfg.Most > 0 && len(visits) >= cfg.Most {
				r.States = len(visits)
				return r
			}
		}
		level, ids = deeper, deeperIDs
		if len(level) > 0 {
			r.Depth++
		}
	}
	r.States, r.Exhausted = len(visits), true
	return r
}

// tell walks a way again, for its labels.
func (c *checker) tell(r *Result, s *state, way []int32) {
	c.telling = true
	for _, nth := range way {
		n := c.successors(s)[nth]
		r.Trace = append(r.Trace, n.label)
		s = n.state
	}
	r.Depth = len(way)
	for _, e := range s.log {
		late := ""
		if !e.counts {
			late = ", does not count"
		}
		r.Log = append(r.Log, fmt.Sprintf("%d %s%s", e.at, c.recordText(e.record), late))
	}
}

func (c *checker) hash(s *state) hash {
	c.buf = s.append(c.buf[:0])
	return hash{maphash.Bytes(c.seed[0], c.buf), maphash.Bytes(c.seed[1], c.buf)}
}

// move tries one move; one that has no label changes nothing.
func (c *checker) move(s *state, do func(*state) (string, error)) {
	n := s.clone()
	label, err := do(n)
	if label == "" {
		return
	}
	c.rest(n)
	changed := n.end != s.end || len(n.log) != len(s.log) || len(n.decisions) != len(s.decisions)
	c.next = append(c.next, successor{n, label, err, changed})
}

func (c *checker) successors(s *state) []successor {
	c.next = c.next[:0]
	if s.follower.busy {
		c.followerMoves(s)
		if int(s.compactions) < c.cfg.Compactions {
			c.compact(s)
		}
		if int(s.expiries) < c.cfg.Expiries {
			c.expire(s)
		}
		return c.next
	}
	for k := range s.owners {
		c.ownerMoves(s, k)
	}
	if c.cfg.Follower {
		c.followerMoves(s)
	}
	if int(s.compactions) < c.cfg.Compactions {
		c.compact(s)
	}
	if int(s.expiries) < c.cfg.Expiries {
		c.expire(s)
	}
	if int(s.strangers) < c.cfg.Strangers {
		c.strange(s)
	}
	return c.next
}

// compact compacts the log up to any offset that the lag allows.
func (c *checker) compact(s *state) {
	limit := c.healed(s)
	before := -1
	for below := offset(1); below <= limit; below++ {
		left := c.compacted(s.log, below)
		if left == nil || len(left) == before {
			continue
		}
		before = len(left)
		c.move(s, func(n *state) (string, error) {
			n.log = left
			n.compactions++
			n.follower.busy = false
			c.refresh(n)
			return c.label("compaction comes to %d", below), nil
		})
	}
}

// expire compacts, and removes what was purged.
func (c *checker) expire(s *state) {
	limit := min(c.healed(s), s.end-1) // the heartbeat keeps the end a record
	before := -1
	for below := offset(1); below <= limit; below++ {
		left := c.expired(s, below)
		if left == nil || len(left) == before {
			continue
		}
		before = len(left)
		c.move(s, func(n *state) (string, error) {
			n.log = left
			n.expiries++
			n.follower.busy = false
			c.refresh(n)
			return c.label("compaction comes to %d, and takes tombstones", below), nil
		})
	}
}

// strange lets a stranger write tombstones.
func (c *checker) strange(s *state) {
	var keys []string
	for _, key := range c.cfg.Strange {
		if key != "#fence" {
			keys = append(keys, key)
			continue
		}
		for _, e := range s.log {
			if f, ok := c.in.records[e.record].(*codec.Fence); ok {
				keys = append(keys, f.Key())
			}
		}
	}
	for _, key := range keys {
		c.move(s, func(n *state) (string, error) {
			n.strangers++
			_, err := c.write(n, c.in.record(codec.Tombstone{TableKey: key}))
			return c.label("a stranger writes a tombstone of %s", key), err
		})
	}
}

// label is a step's text. It is made only where a trace is told, and never empty.
func (c *checker) label(format string, args ...any) string {
	if !c.telling {
		return format
	}
	for i, a := range args {
		switch a := a.(type) {
		case recordID:
			args[i] = c.recordText(a)
		case textID:
			args[i] = c.in.texts[a]
		case *owner:
			args[i] = c.flightText(a)
		}
	}
	return fmt.Sprintf(format, args...)
}

// recordText tells what a record is.
func (c *checker) recordText(id recordID) string {
	switch r := c.in.records[id].(type) {
	case codec.Row:
		if r.Live() {
			return fmt.Sprintf("row %s@%d of epoch %d (%s)", r.Name.View, r.Version, r.Epoch, r.Definition.SQL)
		}
		return fmt.Sprintf("drop row %s@%d of epoch %d", r.Name.View, r.Version, r.Epoch)
	case *codec.Commit:
		var texts []string
		for _, d := range r.Decisions {
			texts = append(texts, d.SQL)
		}
		text := fmt.Sprintf("commit row of version %d and epoch %d (%s)", r.Version, r.Epoch, strings.Join(texts, ", "))
		if r.PurgedThrough > 0 {
			text += fmt.Sprintf(", purged through version %d", r.PurgedThrough)
		}
		return text
	case *codec.IDs:
		return fmt.Sprintf("slot with %d ids of epoch %d", len(r.IDs), r.Epoch)
	case *codec.Fence:
		return "fence of " + r.Nonce
	case codec.Purge:
		return fmt.Sprintf("purge of %s@%d of epoch %d", r.Name.View, r.Version, r.Epoch)
	default:
		return "tombstone of " + r.Key()
	}
}

// flightText tells what a flight holds.
func (c *checker) flightText(o *owner) string {
	var parts []string
	for _, r := range o.table {
		parts = append(parts, c.recordText(r))
	}
	for _, d := range o.decisions {
		parts = append(parts, "decision "+c.in.texts[d.text])
	}
	if len(parts) == 0 {
		return ""
	}
	return ", writes again: " + strings.Join(parts, "; ")
}
