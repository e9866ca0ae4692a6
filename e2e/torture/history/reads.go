package history

import (
	"cmp"
	"slices"
	"time"
)

// reads: an answer is the catalog of the version that it names, whole, and that
// version is not below the one asked for.
func (c *checker) reads() {
	before := c.sentAfter()
	for _, q := range c.h.Queries {
		if q.Absent {
			c.absent(q, before(q.Return))
			continue
		}
		if q.Version < q.Min {
			c.find("stale read", "%s answered client %d at version %d, asked for %d or later", q.Node, q.Client, q.Version, q.Min)
		}
		if !c.known {
			continue
		}
		if q.Version >= int64(len(c.state)) {
			c.find("wrong read", "%s answered at version %d, and the log ends at %d", q.Node, q.Version, len(c.state)-1)
			continue
		}
		at := c.state[q.Version]
		if q.Name == "" {
			if want := at.listing(); !slices.Equal(q.Listing, want) {
				c.find("wrong read", "%s lists %v at version %d, which has %v", q.Node, q.Listing, q.Version, want)
			}
			continue
		}
		if want := at.row(q.Name); !slices.Equal(q.Row, want) {
			c.find("wrong read", "%s gives %v for %s at version %d, which has %v", q.Node, q.Row, q.Name, q.Version, want)
		}
	}
}

// absent: an answer that there is no such definition is right at one of the versions
// that the node can have had: from what was asked for, and what it had, to what was
// there when it answered.
func (c *checker) absent(q Query, before int64) {
	from := max(q.Min, q.Version)
	for v := from; v < min(before, int64(len(c.state))); v++ {
		if _, there := c.state[v][q.Name]; !there {
			return
		}
	}
	if c.known && from < int64(len(c.state)) {
		c.find("wrong read", "%s knew nothing of %s, asked at %v for version %d or later, when it had %d; it is there from then up to version %d",
			q.Node, q.Name, time.Duration(q.Call), q.Min, q.Version, before-1)
	}
}

// sentAfter gives, for a moment, a version that was not there yet: the lowest of those
// that were sent later.
func (c *checker) sentAfter() func(Time) int64 {
	type sent struct {
		call    Time
		version int64
	}
	var all []sent
	for _, op := range c.h.Ops {
		if op.Told != nil && !op.Again {
			all = append(all, sent{op.Call, op.Told.Version})
		}
	}
	slices.SortFunc(all, func(a, b sent) int { return cmp.Compare(a.call, b.call) })
	for i := len(all) - 2; i >= 0; i-- {
		all[i].version = min(all[i].version, all[i+1].version)
	}
	return func(at Time) int64 {
		i, _ := slices.BinarySearchFunc(all, at+1, func(s sent, t Time) int { return cmp.Compare(s.call, t) })
		if i == len(all) {
			return int64(len(c.state))
		}
		return all[i].version
	}
}

// sighting is a moment at which a node was known to have a version, or said so.
type sighting struct {
	call, ret Time
	version   int64
	answer    bool // it must not be below what was known before; else it only says what is known from then on
	what      string
}

// lives cuts what was seen of a node at its starts, where it may go back.
func (c *checker) lives(byNode map[string][]sighting) map[Start][]sighting {
	out := map[Start][]sighting{}
	for node, all := range byNode {
		for _, s := range all {
			life := Start{Node: node}
			for _, start := range c.h.Starts {
				if start.Node == node && start.Stale && start.At <= s.call {
					life = start
				}
			}
			out[life] = append(out[life], s)
		}
	}
	return out
}

// samples: what nodes said of themselves all along; and, with all reads, that no
// node ever goes back.
func (c *checker) samples() {
	type digests struct{ rows, node string }
	seen := map[int64]digests{}
	byNode := map[string][]sighting{}
	for _, s := range c.h.Samples {
		if s.Broken > 0 {
			c.find("broken", "%s had %d broken definitions at version %d, at %v", s.Node, s.Broken, s.Version, time.Duration(s.Return))
		}
		if !s.Ready {
			continue
		}
		byNode[s.Node] = append(byNode[s.Node], sighting{s.Call, s.Return, s.Version, true, "its status"})
		if first, ok := seen[s.Version]; ok && first.rows != s.Digest {
			c.find("digest", "version %d is %s on %s and %s on %s", s.Version, first.rows, first.node, s.Digest, s.Node)
		} else if !ok {
			seen[s.Version] = digests{s.Digest, s.Node}
		}
	}
	for _, q := range c.h.Queries {
		if q.Absent {
			continue
		}
		byNode[q.Node] = append(byNode[q.Node], sighting{q.Call, q.Return, q.Version, true, "a read"})
	}
	for _, op := range c.h.Ops {
		for _, n := range op.Reached {
			byNode[n] = append(byNode[n], sighting{op.Call, op.Return, op.Told.Version, false, "a statement's answer"})
		}
	}
	for life, all := range c.lives(byNode) {
		node := life.Node
		byReturn := slices.Clone(all)
		slices.SortFunc(all, func(a, b sighting) int { return cmp.Compare(a.call, b.call) })
		slices.SortFunc(byReturn, func(a, b sighting) int { return cmp.Compare(a.ret, b.ret) })
		done, highest := 0, sighting{}
		for _, s := range all {
			for done < len(byReturn) && byReturn[done].ret < s.call {
				if byReturn[done].version > highest.version {
					highest = byReturn[done]
				}
				done++
			}
			if !s.answer || s.version >= highest.version {
				continue
			}
			rule := "backwards"
			if !highest.answer {
				rule = "stale read"
			}
			c.find(rule, "%s: version %d by %s asked at %v, after version %d by %s at %v", node,
				s.version, s.what, time.Duration(s.call), highest.version, highest.what, time.Duration(highest.ret))
		}
	}
}
