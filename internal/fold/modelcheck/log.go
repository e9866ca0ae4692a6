package modelcheck

import (
	"fmt"
	"slices"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// write appends a record to the table and keeps the ground truth: the commit rows that
// are not behind a higher fence, one after the other. It fails when that is no history.
func (c *checker) write(s *state, id recordID) (offset, error) {
	at := s.end
	s.end++
	r := c.in.records[id]
	counts := true
	var err error
	switch r := r.(type) {
	case *codec.Fence:
		s.epoch = max(s.epoch, int8(fold.FenceEpoch(r, int64(at))))
	case codec.Row:
		counts = int8(r.Epoch) >= s.epoch && !c.oldCopy(s, r.Key(), r.Epoch, r.Version)
	case codec.Purge:
		counts = int8(r.Epoch) >= s.epoch && !c.oldCopy(s, r.Key(), r.Epoch, r.Version)
	case *codec.IDs:
		counts = int8(r.Epoch) >= s.epoch
	case *codec.Commit:
		if counts = int8(r.Epoch) >= s.epoch; counts {
			err = c.decide(s, r)
		}
	default:
		counts = false
	}
	s.log = append(s.log, entry{at, id, counts})
	s.fresh = c.in.add(s.fresh, at, id, false, c.cfg.Without)
	return at, err
}

// oldCopy reports whether a row that counts lies before in the log and comes after.
func (c *checker) oldCopy(s *state, key string, epoch viewkeeper.Epoch, version viewkeeper.Version) bool {
	for _, e := range s.log {
		if r, ok := c.in.records[e.record].(codec.Row); ok && e.counts && r.Key() == key &&
			(r.Epoch > epoch || r.Epoch == epoch && r.Version > version) {
			return true
		}
	}
	return false
}

// decide takes a commit row that counts into the truth.
func (c *checker) decide(s *state, r *codec.Commit) error {
	if int(r.Version) < len(s.truth) {
		return fmt.Errorf("the version goes back: a commit row of version %d counts after one of version %d", r.Version, len(s.truth))
	}
	for _, d := range r.Decisions {
		text := c.in.text(d.SQL)
		switch v := int(d.Version); {
		case v <= len(s.truth):
			if s.truth[v-1] != text {
				return fmt.Errorf("offset %d is decided twice: %q and %q", v-1, c.in.texts[s.truth[v-1]], d.SQL)
			}
		case v == len(s.truth)+1:
			s.truth = append(s.truth, text)
		default:
			return fmt.Errorf("offset %d is decided and those from %d on are left out", v-1, len(s.truth))
		}
	}
	if int(r.Version) != len(s.truth) {
		return fmt.Errorf("a commit row says version %d, and its decisions end at version %d", r.Version, len(s.truth))
	}
	return nil
}

// say appends a record to the decisions topic.
func (s *state) say(d said) { s.decisions = append(s.decisions, d) }

// decision is rule 8: what a reader makes of one offset.
func (c *checker) decision(s *state, version int8) (textID, bool) {
	best := said{epoch: -1}
	for _, d := range s.decisions {
		if d.version == version && (d.epoch >= best.epoch || c.cfg.Without.has(Rule8Epoch)) {
			best = d
		}
	}
	return best.text, best.epoch >= 0
}

// compacted gives what is left when the last record of each key below an offset is
// kept, and nothing when that is all.
func (c *checker) compacted(log []entry, below offset) []entry {
	last := map[string]offset{}
	for _, e := range log {
		if e.at < below {
			last[c.in.records[e.record].Key()] = e.at
		}
	}
	left := make([]entry, 0, len(log))
	for _, e := range log {
		if e.at >= below || last[c.in.records[e.record].Key()] == e.at {
			left = append(left, e)
		}
	}
	if len(left) == len(log) {
		return nil
	}
	return left
}

// expired gives what is left when what is purged, and lies over nothing any more, is
// removed as well, and nothing when that is all.
//
// THE ASSUMPTION OF RULE 9: delete.retention.ms is longer than it takes a node that
// begins with nothing to come to the end.
func (c *checker) expired(s *state, below offset) []entry {
	log := s.log
	if left := c.compacted(log, below); left != nil {
		log = left
	}
	if f := c.in.folds[s.follower.fold]; f.Next() > 0 && !f.Resumed() {
		return nil
	}
	var left []entry
	for _, e := range log {
		_, purge := c.in.records[e.record].(codec.Purge)
		_, tombstone := c.in.records[e.record].(codec.Tombstone)
		if e.at >= below || !purge && !tombstone {
			left = append(left, e)
		}
	}
	if len(left) == len(log) {
		return nil
	}
	return left
}

// healed is how far compaction may come. THE ASSUMPTION OF RULE 6: a record that lies
// over a good one and does not count is healed, by an owner, before it is older than
// min.compaction.lag.ms; compaction comes no further than the first that is not. What
// an owner believes to have healed is older than the lag as well.
func (c *checker) healed(s *state) offset {
	if c.cfg.Without.has(Rule6Lag) {
		return s.end
	}
	good := map[string]bool{}
	over := map[string]offset{}
	for _, e := range s.log {
		key := c.in.records[e.record].Key()
		switch _, lies := over[key]; {
		case e.counts:
			good[key] = true
			delete(over, key)
		case good[key] && !lies:
			over[key] = e.at
		}
	}
	limit := s.end
	for key, at := range over {
		if strings.HasPrefix(key, "#fence/") && s.newerFence(c, key) {
			continue // a fence that is not the highest is not missed
		}
		limit = min(limit, at)
	}
	return max(limit, s.lag)
}

// newerFence reports whether a fence with another key has the highest epoch.
func (s *state) newerFence(c *checker, key string) bool {
	for _, e := range s.log {
		if f, ok := c.in.records[e.record].(*codec.Fence); ok && f.Key() != key && int8(fold.FenceEpoch(f, int64(e.at))) == s.epoch {
			return true
		}
	}
	return false
}

// refresh reads the log from nothing.
func (c *checker) refresh(s *state) {
	s.fresh = 0
	for _, e := range s.log {
		s.fresh = c.in.add(s.fresh, e.at, e.record, false, c.cfg.Without)
	}
}

// catalogAt is the truth: what the catalog is after these decisions.
func (c *checker) catalogAt(truth []textID) string {
	rows := map[string]viewkeeper.Row{}
	for i, id := range truth {
		if r, ok := rowOf(c.in.texts[id], viewkeeper.Version(i+1)); ok {
			rows[r.Name.View] = r
		}
	}
	list := make([]viewkeeper.Row, 0, len(rows))
	for _, r := range rows {
		list = append(list, r)
	}
	return picture(viewkeeper.Version(len(truth)), list)
}

// rowOf gives the row that a decision makes. Its text begins with what was done: "+a",
// "-a" or ".", and goes on with who did it.
func rowOf(text string, version viewkeeper.Version) (viewkeeper.Row, bool) {
	if text[0] == '.' {
		return viewkeeper.Row{}, false
	}
	name := viewkeeper.MakeName("", text[1:2])
	r := viewkeeper.Row{Name: name, Version: version}
	if text[0] == '+' {
		r.Definition = &viewkeeper.Definition{Name: name, SQL: text}
	}
	return r, true
}

// picture says what a catalog is, whoever wrote it, and whether or not drop rows are
// still there.
func picture(version viewkeeper.Version, rows []viewkeeper.Row) string {
	var out []string
	for _, r := range rows {
		if r.Live() {
			out = append(out, fmt.Sprintf("%s@%d %s", r.Name.View, r.Version, r.Definition.SQL))
		}
	}
	slices.Sort(out)
	return fmt.Sprintf("version %d: %s", version, strings.Join(out, ", "))
}
