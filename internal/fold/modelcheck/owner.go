package modelcheck

import (
	"fmt"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

func (c *checker) ownerMoves(s *state, k int) {
	o := &s.owners[k]
	switch o.place {
	case nowhere:
		// They are told apart by when they begin.
		if k == 0 || s.owners[k-1].place != nowhere {
			c.move(s, func(n *state) (string, error) {
				if label, err := c.recover(n, k); err != nil || !c.cfg.Swift {
					return label, err
				}
				return c.fence(n, k)
			})
		}
		return
	case gone:
		return
	case recovered:
		c.move(s, func(n *state) (string, error) { return c.fence(n, k) })
		return
	case fenced:
		c.move(s, func(n *state) (string, error) { return c.claim(n, k) })
		return
	}
	c.land(s, k)
	if o.flight == firstCommitRow {
		c.move(s, func(n *state) (string, error) { return c.read(n, k, o.written+1) })
	}
	if len(o.open) > 0 {
		c.move(s, func(n *state) (string, error) { return c.read(n, k, o.open[0].last+1) })
	}
	if len(o.open) > 0 || o.flight == firstCommitRow || c.believes() || c.lateFrom(s, c.in.folds[o.fold].Next()) {
		c.move(s, func(n *state) (string, error) { return c.read(n, k, s.end) })
	}
	if o.flight != nothing {
		return
	}
	if int(s.commits) < c.cfg.Commits {
		batches := c.cfg.Batches
		if len(c.cfg.Script) > 0 {
			batches = c.cfg.Script[s.commits]
		}
		for _, b := range batches {
			c.move(s, func(n *state) (string, error) { return c.commit(n, k, b) })
		}
	}
	if c.in.spoiled[o.fold] {
		c.move(s, func(n *state) (string, error) { return c.heal(n, k) })
	}
	if int(s.purges) < c.cfg.Purges {
		c.move(s, func(n *state) (string, error) { return c.purge(n, k) })
	}
}

// lateFrom reports whether there may be something to heal from an offset on.
func (c *checker) lateFrom(s *state, from int64) bool {
	return slices.ContainsFunc(s.log, func(e entry) bool { return int64(e.at) >= from && !e.counts })
}

// rest makes those owners one state that can do nothing more that matters.
func (c *checker) rest(s *state) {
	for k := range s.owners {
		o := &s.owners[k]
		if o.place == claimed && o.epoch < s.epoch && o.flight == nothing && len(o.open) == 0 &&
			int(s.commits) == c.cfg.Commits && !c.cfg.Without.has(Rule1Stop|Rule1Lost|Rule6Heal|Rule6Named|Rule6ReadBack) {
			*o = owner{place: gone}
		}
	}
}

func name(k int) string { return string(rune('A' + k)) }

// recover is goka's recovery of the table, and the first check.
func (c *checker) recover(s *state, k int) (string, error) {
	o := &s.owners[k]
	for _, e := range s.log {
		o.fold = c.in.add(o.fold, e.at, e.record, true, c.cfg.Without)
	}
	if !c.cfg.Without.has(Rule9Resume) {
		o.fold = c.in.resume(o.fold)
	}
	o.place = recovered
	return name(k) + " begins and recovers the table", c.check(s, k)
}

// input is what the brokers say.
func (s *state) input() fold.Input {
	in := fold.Input{TopicID: "t", End: 1000, Committed: int64(s.committed), DecisionsEnd: int64(len(s.decisions))}
	if in.Committed == 0 {
		in.Committed = -1
	}
	return in
}

// check is the claim's check, which must never fail here: no topic loses anything.
func (c *checker) check(s *state, k int) error {
	if _, claim := fold.CheckClaim(c.in.folds[s.owners[k].fold].Commit(), s.input()); claim != fold.ClaimGood {
		return fmt.Errorf("%s may not own the catalog, claim %d, committed offset %d", name(k), claim, s.committed)
	}
	return nil
}

// fence writes the fence.
func (c *checker) fence(s *state, k int) (string, error) {
	o := &s.owners[k]
	fence := &codec.Fence{Nonce: name(k), EpochBase: c.in.folds[o.fold].EpochBase()}
	o.fence = c.in.record(fence)
	at, err := c.write(s, o.fence)
	o.fenceAt, o.epoch = at, int8(fold.FenceEpoch(fence, int64(at)))
	o.written, o.healedTo = -1, -1
	o.place = fenced
	return c.label("%s writes its fence at %d, its epoch is %d", name(k), at, o.epoch), err
}

// claim reads up to the fence, and begins what is to be written again.
func (c *checker) claim(s *state, k int) (string, error) {
	o := &s.owners[k]
	if !c.cfg.Without.has(Rule1Fence) && !c.readWhile(s, k, func(f *fold.Fold) bool { return !f.Claimed(int64(o.fenceAt)) }) {
		return "", nil
	}
	if err := c.check(s, k); err != nil {
		// What the brokers said may be the work of an owner that came later.
		if !c.readWhile(s, k, func(f *fold.Fold) bool { return f.Next() < int64(s.end) }) {
			return "", nil
		}
		return name(k) + " reads up to its fence", err
	}
	f := c.in.folds[o.fold].Clone()
	epoch := viewkeeper.Epoch(o.epoch)
	r := f.Recover(epoch)
	v := int(f.Version())
	if v > len(s.truth) {
		return name(k) + " reads up to its fence", fmt.Errorf("%s takes over at version %d, and %d are decided", name(k), v, len(s.truth))
	}
	if got, want := picture(f.Version(), r.Rows), c.catalogAt(s.truth[:v]); got != want && !c.cfg.Without.has(Rule4Held) {
		return name(k) + " reads up to its fence", fmt.Errorf("%s judges from\n  %s\nand that version is\n  %s", name(k), got, want)
	}
	if err := c.knows(r.IDs, v); err != nil {
		return name(k) + " reads up to its fence", fmt.Errorf("%s: %w", name(k), err)
	}
	start := r.Start(c.in.records[o.fence].(*codec.Fence), epoch)
	start.DefinitionsTopic = "t"
	if c.cfg.Without.has(Rule4Offset) {
		start.Version = viewkeeper.Version(s.committed)
	}
	o.last = c.in.record(start)
	o.ring = c.in.record(fold.NewRing(r.IDs, r.NewerSlots).Row(0, epoch))
	o.fold = c.in.fold(f)
	o.place, o.first = claimed, r.Commit == nil
	var again []codec.Record
	if !c.cfg.Without.has(Rule3Rows) {
		again = append(again, r.Completion...)
	}
	if !c.cfg.Without.has(Rule6Heal) {
		again = append(again, r.Healing...)
	}
	var decisions []said
	if !c.cfg.Without.has(Rule3Decisions) {
		decisions = c.said(r.Decisions)
	}
	c.send(o, completion, again, decisions)
	return c.label("%s reads up to its fence and goes on from version %d%v", name(k), start.Version, o), nil
}

// knows checks that the ids of all that was decided are known.
func (c *checker) knows(ids []codec.ID, version int) error {
	if !c.cfg.IDs {
		return nil
	}
	known := map[string]viewkeeper.Version{}
	for _, id := range ids {
		known[id.ID] = id.Version
	}
	for v := 1; v <= version; v++ {
		if known[statementID(v)] != viewkeeper.Version(v) {
			return fmt.Errorf("the statement id of version %d is not known", v)
		}
	}
	return nil
}

func statementID(version int) string { return fmt.Sprintf("s%d", version) }

func (o *owner) wrote() fold.Written {
	return fold.Written{Last: int64(o.written), HealedTo: int64(o.healedTo), First: o.first}
}

func (c *checker) said(list []viewkeeper.Decision) []said {
	out := make([]said, len(list))
	for i, d := range list {
		out[i] = said{int8(d.Version), int8(d.Epoch), c.in.text(d.SQL)}
	}
	return out
}

// send begins a flight.
func (c *checker) send(o *owner, what flight, table []codec.Record, decisions []said) {
	o.flight, o.table, o.decisions = what, nil, decisions
	for _, r := range table {
		o.table = append(o.table, c.in.record(r))
	}
	c.acked(o)
}

// acked goes on once everything of a flight is there.
func (c *checker) acked(o *owner) {
	for o.flight != nothing && o.flight != firstCommitRow && len(o.table) == 0 && len(o.decisions) == 0 {
		what := o.flight
		o.flight = nothing
		switch what {
		case commitRow:
			if o.first && !c.cfg.Without.has(Rule4First) {
				o.flight = firstCommitRow
				return
			}
			o.first = false
			commit := c.in.records[o.commit].(*codec.Commit)
			o.last = o.commit
			next := c.in.flight(o.commit, o.ring)
			o.ring = next.ring
			o.flight, o.table, o.decisions = rowsAndDecisions, next.table, c.said(commit.Decisions)
		case rowsAndDecisions:
			o.open = append(slices.Clone(o.open), batch{o.written, o.commit})
		case purgeRow:
			o.last = o.commit
			o.flight, o.table, o.then = purging, o.then, nil
		case completion, healing:
			o.healedTo = o.written
		}
	}
}

// land lets the brokers take a record of the flight.
func (c *checker) land(s *state, k int) {
	o := &s.owners[k]
	for i := range o.table {
		if i > 0 && !c.cfg.AnyOrder {
			break
		}
		c.move(s, func(n *state) (string, error) {
			o := &n.owners[k]
			id := o.table[i]
			o.table = slices.Delete(slices.Clone(o.table), i, i+1)
			at, err := c.write(n, id)
			w := o.wrote()
			w.Acked(int64(at))
			o.written = offset(w.Last)
			late := ""
			if !n.log[len(n.log)-1].counts {
				late = ", too late"
			}
			label := c.label("%s's %v lies at %d%s", name(k), id, at, late)
			c.acked(o)
			return label, err
		})
	}
	if len(o.decisions) > 0 {
		c.move(s, func(n *state) (string, error) {
			o := &n.owners[k]
			d := o.decisions[0]
			o.decisions = o.decisions[1:]
			n.say(d)
			c.acked(o)
			return c.label("%s's decision %v with epoch %d is in the topic", name(k), d.text, d.epoch), nil
		})
	}
}

// read reads up to an offset, and finishes what is certain then.
func (c *checker) read(s *state, k int, to offset) (string, error) {
	o := &s.owners[k]
	if !c.readWhile(s, k, func(f *fold.Fold) bool { return f.Next() < int64(to) || f.Collecting() }) {
		return "", nil
	}
	f := c.in.folds[o.fold]
	label := c.label("%s reads the table up to %d", name(k), f.Next()-1)
	w, goesOn := o.wrote(), false
	if o.flight == firstCommitRow && w.MayFollow(f) {
		o.first, o.flight, goesOn = false, commitRow, true
		c.acked(o)
	}
	answered := false
	for len(o.open) > 0 && (int64(o.open[0].last) < f.Certain() || c.cfg.Without.has(Rule5Finish)) {
		commit := c.in.records[o.open[0].commit].(*codec.Commit)
		o.open = o.open[1:]
		s.committed = max(s.committed, int8(commit.Version))
		label += c.label(", answers up to version %d", commit.Version)
		answered = true
		if err := c.answers(s, k, commit); err != nil {
			return label, err
		}
	}
	if f.Next() == int64(s.end) && w.MayHeal(f) && !c.mustHeal(w, o) {
		// Nothing to heal: what is there may grow old.
		if c.believes() && s.lag < s.end {
			s.lag, goesOn = s.end, true
		}
	}
	if !answered && !goesOn && !c.mustHeal(w, o) {
		return "", nil // it may as well read this later
	}
	return label, nil
}

// believes reports whether an owner's belief that all is healed can be wrong.
func (c *checker) believes() bool {
	return c.cfg.Without.has(Rule6Heal | Rule6Named | Rule6ReadBack | Rule1Lost)
}

func (c *checker) mustHeal(w fold.Written, o *owner) bool {
	if c.cfg.Without.has(Rule6Heal) || !c.in.spoiled[o.fold] {
		return false
	}
	return w.MustHeal(c.in.folds[o.fold], viewkeeper.Epoch(o.epoch))
}

// readWhile reads record by record, and reports whether the owner still is one.
func (c *checker) readWhile(s *state, k int, more func(*fold.Fold) bool) bool {
	o := &s.owners[k]
	if gap, need := c.in.folds[o.fold].NeedEnd(); need {
		o.fold = c.in.end(o.fold, gap, s.end)
	}
	for _, e := range s.log {
		f := c.in.folds[o.fold]
		if int64(e.at) < f.Next() {
			continue
		}
		if f.Outdated() {
			return false
		}
		if !more(f) {
			break
		}
		o.fold = c.in.add(o.fold, e.at, e.record, true, c.cfg.Without)
		f = c.in.folds[o.fold]
		if f.Superseded(viewkeeper.Epoch(o.epoch)) && !c.cfg.Without.has(Rule1Stop) ||
			f.FenceLost() && !c.cfg.Without.has(Rule1Lost) {
			return false
		}
		if gap, need := f.NeedEnd(); need {
			o.fold = c.in.end(o.fold, gap, s.end)
		}
	}
	return !more(c.in.folds[o.fold]) && !c.in.folds[o.fold].Outdated()
}

// answers checks that an answer is what counts.
func (c *checker) answers(s *state, k int, commit *codec.Commit) error {
	for _, d := range commit.Decisions {
		if v := int(d.Version); v > len(s.truth) || c.in.texts[s.truth[v-1]] != d.SQL {
			return fmt.Errorf("%s answers %q for offset %d, and that does not count", name(k), d.SQL, v-1)
		}
	}
	return nil
}

// commit judges a batch and sends its commit row.
func (c *checker) commit(s *state, k int, what string) (string, error) {
	o := &s.owners[k]
	s.commits++
	o.commit = c.judge(o, k, what)
	o.flight, o.table, o.decisions = commitRow, []recordID{o.commit}, nil
	if c.cfg.Without.has(CommitFirst) {
		// All in one flight, and the commit row comes last.
		next := c.in.flight(o.commit, o.ring)
		o.ring, o.last = next.ring, o.commit
		commit := c.in.records[o.commit].(*codec.Commit)
		o.flight, o.table, o.decisions = rowsAndDecisions, append(slices.Clone(next.table), o.commit), c.said(commit.Decisions)
	}
	return c.label("%s sends the %v", name(k), o.commit), nil
}

// judge decides a batch, and gives its commit row.
func (c *checker) judge(o *owner, k int, what string) recordID {
	key := judging{o.last, k, what}
	id, ok := c.in.judged[key]
	if ok {
		return id
	}
	before := c.in.records[o.last].(*codec.Commit)
	var decided []fold.Decided
	for v := before.Version + 1; what != ""; v++ {
		step := 2
		if what[0] == '.' {
			step = 1
		}
		text := fmt.Sprintf("%s by %s", what[:step], name(k))
		what = what[step:]
		d := fold.Decided{Version: v, Decision: &viewkeeper.Decision{
			StatementID: statementID(int(v)), Version: v, Offset: int64(v) - 1, Epoch: viewkeeper.Epoch(o.epoch), SQL: text}}
		if r, ok := rowOf(text, v); ok {
			d.Rows = append(d.Rows, r)
		}
		if c.cfg.IDs {
			d.ID = &codec.ID{ID: statementID(int(v)), Version: v}
		}
		decided = append(decided, d)
	}
	id = c.in.record(fold.CommitRow(before, decided))
	c.in.judged[key] = id
	return id
}

// heal is rule 6, for an owner at work.
func (c *checker) heal(s *state, k int) (string, error) {
	o := &s.owners[k]
	w := o.wrote()
	if !c.mustHeal(w, o) || !w.MayHeal(c.in.folds[o.fold]) && !c.cfg.Without.has(Rule6ReadBack) {
		return "", nil
	}
	c.send(o, healing, c.in.folds[o.fold].Clone().Heal(viewkeeper.Epoch(o.epoch)), nil)
	return c.label("%s heals%v", name(k), o), nil
}

// purge is rule 9: the commit row that says so, and then the purge.
func (c *checker) purge(s *state, k int) (string, error) {
	o := &s.owners[k]
	w := o.wrote()
	f := c.in.folds[o.fold]
	// What is not read yet may as well be.
	if !w.MayHeal(f) && !c.readWhile(s, k, func(f *fold.Fold) bool { return !w.MayHeal(f) }) {
		return "", nil
	}
	commit, list := c.in.folds[o.fold].Purge(viewkeeper.Epoch(o.epoch), int64(s.end), 100)
	if len(list) == 0 {
		return "", nil
	}
	s.purges++
	o.commit = c.in.record(commit)
	o.flight, o.table, o.then = purgeRow, []recordID{o.commit}, nil
	for _, r := range list {
		o.then = append(o.then, c.in.record(r))
	}
	if c.cfg.Without.has(Rule9First) {
		o.table, o.then = o.then, o.table
	}
	return c.label("%s is to write the %v", name(k), c.in.record(list[0])), nil
}
