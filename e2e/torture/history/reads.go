package history

import (
	"cmp"
	"slices"
	"time"
)

// reads: an answer is the catalog of the version that it names, whole, and that
// version is not below the one asked for.
func (c *checker) reads() {
	for _, q := range c.h.Queries {
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

// sighting is a moment at which a node was known to have a version, or said so.
type sighting struct {
	call, ret Time
	version   int64
	answer    bool // it must not be below what was known before; else it only says what is known from then on
	what      string
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
		byNode[q.Node] = append(byNode[q.Node], sighting{q.Call, q.Return, q.Version, true, "a read"})
	}
	for _, op := range c.h.Ops {
		for _, n := range op.Reached {
			byNode[n] = append(byNode[n], sighting{op.Call, op.Return, op.Told.Version, false, "a statement's answer"})
		}
	}
	for node, all := range byNode {
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
