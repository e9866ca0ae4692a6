package modelcheck

import (
	"fmt"
	"regexp"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// followerMoves are a node's: it reads one record, asks for the end, or gets the
// answer, and looks at what its fold shows after each.
//
// What it reads of a log that only grows it may as well read later. So once it has
// begun to read it goes on until it asks for the end, or compaction comes: all else
// would only be the same in another order.
func (c *checker) followerMoves(s *state) {
	f := c.in.folds[s.follower.fold]
	gap, need := f.NeedEnd()
	if f.Outdated() {
		c.move(s, func(n *state) (string, error) {
			n.follower = follower{shown: n.follower.shown}
			return "the node may have missed a drop, and begins from nothing", nil
		})
	}
	switch {
	case s.follower.waits:
		c.move(s, func(n *state) (string, error) {
			n.follower.waits, n.follower.busy = false, true
			to := int(n.follower.gap)
			if c.cfg.Without.has(Rule7Again) {
				to = gap
			}
			n.follower.fold = c.in.end(n.follower.fold, to, n.follower.end)
			end := n.follower.end
			n.follower.gap, n.follower.end = 0, 0
			return c.label("the node hears that the end is %d", end), c.look(n)
		})
	case need:
		c.move(s, func(n *state) (string, error) {
			n.follower.waits, n.follower.busy, n.follower.gap, n.follower.end = true, false, int8(gap), n.end
			return "the node asks for the end", nil
		})
	}
	for _, e := range s.log {
		if int64(e.at) < f.Next() {
			continue
		}
		c.move(s, func(n *state) (string, error) {
			n.follower.busy = true
			n.follower.fold = c.in.add(n.follower.fold, e.at, e.record, false, c.cfg.Without)
			return c.label("the node reads %d, %v", e.at, e.record), c.look(n)
		})
		break
	}
}

// look is what a node shows, and what it tells.
func (c *checker) look(s *state) error {
	node := &s.follower
	f := c.in.folds[node.fold]
	if f.Collecting() {
		return nil
	}
	if f.Version() < viewkeeper.Version(node.shown) {
		return fmt.Errorf("the node goes back: it shows version %d after version %d", f.Version(), node.shown)
	}
	node.shown = int8(f.Version())
	if err := c.shows(s, node.fold, "the node"); err != nil {
		return err
	}
	var commits []*codec.Commit
	id, u, ok := c.in.take(node.fold)
	if node.fold = id; ok {
		commits = u.Commits
	}
	for _, commit := range commits {
		for _, d := range commit.Decisions {
			if v := int(d.Version); v > len(s.truth) || c.in.texts[s.truth[v-1]] != d.SQL {
				return fmt.Errorf("the node tells %q for offset %d, and that does not count", d.SQL, v-1)
			}
		}
	}
	return nil
}

var versions = regexp.MustCompile(`@\d+`)

// shows checks that a fold which shows something shows the catalog as it was at some
// version.
func (c *checker) shows(s *state, id foldID, who string) error {
	f := c.in.folds[id]
	v := int(f.Version())
	if v > len(s.truth) {
		return fmt.Errorf("%s shows version %d, and %d are decided", who, v, len(s.truth))
	}
	got, want := c.in.pictures[id], c.catalogAt(s.truth[:v])
	if c.cfg.Without.has(Rule4Held) {
		// It read rows as if they were of the version that it had.
		got, want = versions.ReplaceAllString(got, ""), versions.ReplaceAllString(want, "")
	}
	if got != want {
		return fmt.Errorf("%s shows\n  %s\nand the catalog is\n  %s", who, got, want)
	}
	return nil
}

// invariants hold of every state.
func (c *checker) invariants(s *state) error {
	// A follower from nothing, now.
	gap, _ := c.in.folds[s.fresh].NeedEnd()
	fresh := c.in.end(s.fresh, gap, s.end)
	f := c.in.folds[fresh]
	if f.Collecting() {
		return fmt.Errorf("a node from nothing comes to no end")
	}
	if err := c.shows(s, fresh, "a node from nothing"); err != nil {
		return err
	}
	if int(f.Version()) < len(s.truth) {
		return fmt.Errorf("a node from nothing comes to version %d, and %d are decided", f.Version(), len(s.truth))
	}
	var ids []codec.ID
	for id := range f.IDs {
		if id.Version <= f.Version() {
			ids = append(ids, id)
		}
	}
	if err := c.knows(ids, len(s.truth)); err != nil {
		return fmt.Errorf("a node from nothing: %w", err)
	}
	// The history, to its end.
	current := map[int]bool{}
	if f.Commit() != nil && !c.cfg.Without.has(Rule8Commit) {
		for _, d := range f.Commit().Decisions {
			current[int(d.Version)] = true
		}
	}
	for i, want := range s.truth {
		if current[i+1] {
			continue
		}
		if got, ok := c.decision(s, int8(i+1)); !ok || got != want {
			return fmt.Errorf("the decisions topic says %q for offset %d, and it was %q", c.in.texts[got], i, c.in.texts[want])
		}
	}
	return nil
}
