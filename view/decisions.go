package view

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/reasons"
	"github.com/viewkeeper/viewkeeper/view/internal/history"
)

// decisions answers what was decided, from two places: the commit rows that the node
// followed (recent), which are there at once, and the index on disk, which follows
// the decisions topic. DESIGN.md, rule 8: what the current commit row holds comes
// from it, what is earlier is final in the topic.
//
// Recent decisions have no gap from `from` on. Below it the index is whole once it
// has read to an end of its topic that was asked for after the commit row at `from`
// was seen; until then the answer is complete from `from` only.
type decisions struct {
	wake *signal

	mu     sync.Mutex
	recent []viewkeeper.Decision // by version, each once
	bytes  int                   // of their texts
	ids    map[string]viewkeeper.Version
	from   viewkeeper.Version
	// commit is the last commit row that was taken.
	commit *codec.Commit
	// wanted and whole count the breaks: the index is whole when it has caught up
	// after the last one.
	wanted, whole int
	index         *history.Index // nil until it is open
	begin         int64          // first offset of the decisions topic
	damaged       bool           // a reader found the index unreadable
	thrown        reasons.Seldom // says that the index was thrown away
	closed        bool
	need          chan struct{} // the index has a new end to reach
}

// recentKeep is how many decisions, and recentKeepBytes how much of their text, is
// kept in memory when the index has them; recentMost and recentMostBytes when it has
// not.
const (
	recentKeep      = 1000
	recentKeepBytes = 16 << 20
	recentMost      = 20000
	recentMostBytes = 128 << 20
)

func newDecisions(wake *signal) *decisions {
	return &decisions{wake: wake, ids: map[string]viewkeeper.Version{}, need: make(chan struct{}, 1)}
}

// add takes commit rows in the order of the log. broken says that some may be
// missing before the first of them.
func (d *decisions) add(commits []*codec.Commit, broken bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if broken {
		d.recent, d.bytes, d.ids = nil, 0, map[string]viewkeeper.Version{}
		first := commits[0]
		d.from = first.Version
		if len(first.Decisions) > 0 {
			d.from = first.Decisions[0].Version
		}
		d.wanted++
		poke(d.need)
	}
	for _, c := range commits {
		d.commit = c
		for _, x := range c.Decisions {
			x.Normalize()
			d.put(x)
		}
	}
	d.cap()
}

// put adds one. Readers have slices of d.recent without the lock, so that what is
// in it is never written over.
func (d *decisions) put(x viewkeeper.Decision) {
	at, found := slices.BinarySearchFunc(d.recent, x.Version, byVersion)
	switch {
	case !found && at == len(d.recent):
		d.recent = append(d.recent, x)
		d.bytes += textSize(x)
	case !found:
		d.recent = slices.Insert(slices.Clone(d.recent), at, x)
		d.bytes += textSize(x)
	case x.Epoch >= d.recent[at].Epoch:
		d.recent = slices.Clone(d.recent)
		d.recent[at] = x
	}
	if x.Code != viewkeeper.CodeIDReused {
		d.ids[x.StatementID] = x.Version
	}
}

func byVersion(d viewkeeper.Decision, v viewkeeper.Version) int { return cmp.Compare(d.Version, v) }

// textSize is about what a decision takes in memory.
func textSize(x viewkeeper.Decision) int {
	size := 512 + len(x.SQL) + 256*len(x.Changed)
	for _, r := range x.Rows {
		if r.Definition != nil {
			size += len(r.Definition.SQL)
		}
	}
	return size
}

// trim lets go of old decisions that the index has, beyond what is to be kept. It reads
// the index without the lock, and is called by who fills it: no commit row waits for
// that.
func (d *decisions) trim() {
	d.mu.Lock()
	index, old := d.index, d.recent[:0]
	if d.isWhole() {
		n := 0
		for bytes := d.bytes; d.over(n, bytes, recentKeep, recentKeepBytes); n++ {
			bytes -= textSize(d.recent[n])
		}
		old = d.recent[:n]
	}
	d.mu.Unlock()
	stored := 0
	var failed error
	for _, x := range old {
		have, ok, err := index.Get(x.Version)
		if failed = err; err != nil || !ok || have.Epoch < x.Epoch {
			break
		}
		stored++
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.index != index || d.read(failed) != nil || !d.isWhole() {
		return
	}
	cut, bytes := 0, d.bytes
	for cut < min(stored, len(d.recent)-1) && d.recent[cut].Version == old[cut].Version && d.recent[cut].Epoch == old[cut].Epoch {
		bytes -= textSize(d.recent[cut])
		cut++
	}
	d.cut(cut, bytes)
}

// cap lets go of old decisions beyond the most, which the index is far behind: what goes
// now it has to reach first. A good part goes at once, since each time means a new end to
// reach. d.mu is held.
func (d *decisions) cap() {
	cut, bytes := 0, d.bytes
	if !d.over(cut, bytes, recentMost, recentMostBytes) {
		return
	}
	for d.over(cut, bytes, recentMost*3/4, recentMostBytes*3/4) {
		bytes -= textSize(d.recent[cut])
		cut++
	}
	d.wanted++
	poke(d.need)
	d.cut(cut, bytes)
}

// over reports whether more than so many decisions, or so much of their text, would be
// left without the first cut of them. The last one stays. d.mu is held.
func (d *decisions) over(cut, bytes, count, size int) bool {
	left := len(d.recent) - cut
	return left > 1 && (left > count || bytes > size)
}

// cut lets go of the first decisions; bytes is what the text of the others takes. d.mu
// is held.
func (d *decisions) cut(cut, bytes int) {
	if cut == 0 {
		return
	}
	for _, x := range d.recent[:cut] {
		if d.ids[x.StatementID] == x.Version {
			delete(d.ids, x.StatementID)
		}
	}
	// Not a copy: append makes one now and then, and lets go of what was cut.
	d.recent, d.bytes = d.recent[cut:], bytes
	d.from = d.recent[0].Version
}

// read looks at the error of reading the index: a damaged one is read anew from
// Kafka. d.mu is held.
func (d *decisions) read(err error) error {
	if history.Damaged(err) && !d.damaged {
		d.damaged = true
		poke(d.need)
	}
	return err
}

func (d *decisions) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.index != nil {
		_ = d.index.Close()
		d.index = nil
	}
	d.closed = true
}

// isWhole reports whether nothing is missing. d.mu is held.
func (d *decisions) isWhole() bool { return d.index != nil && d.wanted > 0 && d.whole == d.wanted }

// completeFrom is the version from which on nothing is missing. d.mu is held.
func (d *decisions) completeFrom() viewkeeper.Version {
	if !d.isWhole() {
		return d.from
	}
	if d.begin == 0 && (d.commit == nil || d.commit.VersionBase == 0) {
		return 0
	}
	first, ok := d.index.First()
	if !ok || first > d.from {
		return d.from
	}
	return first
}

// byOffset finds the decision on the record at an offset of the definitions topic.
// covered says that the offset is decided, with or without a decision of its own.
func (d *decisions) byOffset(id string, offset int64) (x viewkeeper.Decision, found, covered bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.commit == nil {
		return x, false, false, nil
	}
	v := d.commit.VersionBase + viewkeeper.Version(offset) + 1
	if v > d.commit.Version {
		return x, false, false, nil
	}
	x, found, err = d.version(v)
	found = found && x.Offset == offset && (id == "" || x.StatementID == id)
	return x, found, true, err
}

// version finds a decision by its version. d.mu is held.
func (d *decisions) version(v viewkeeper.Version) (viewkeeper.Decision, bool, error) {
	if at, ok := slices.BinarySearchFunc(d.recent, v, byVersion); ok {
		return d.recent[at], true, nil
	}
	if d.index == nil {
		return viewkeeper.Decision{}, false, nil
	}
	x, ok, err := d.index.Get(v)
	return x, ok, d.read(err)
}

// byID finds the decision that a statement id stands for: the last one that does
// not merely say that the id came again with another text.
func (d *decisions) byID(id string) (x viewkeeper.Decision, found bool, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if v, ok := d.ids[id]; ok {
		return d.version(v)
	}
	if d.index == nil {
		return x, false, nil
	}
	all, err := d.index.ByID(id)
	if d.read(err) != nil {
		return x, false, err
	}
	for _, one := range slices.Backward(all) {
		if one.Code != viewkeeper.CodeIDReused {
			return one, true, nil
		}
	}
	return x, false, nil
}

// DecisionQuery asks for decisions.
type DecisionQuery struct {
	// Since is exclusive.
	Since viewkeeper.Version
	// Name asks for the decisions about one definition: those that changed it, would
	// have, or were refused before that could be said; the zero Name for all.
	Name viewkeeper.Name
	// Limit is the largest number of decisions in the page.
	Limit int
}

// DecisionPage is an answer to a DecisionQuery.
type DecisionPage struct {
	// Decisions are in the order of their versions.
	Decisions []viewkeeper.Decision
	// CompleteFrom is the version from which on nothing is missing here; 0 when
	// nothing is missing at all.
	CompleteFrom viewkeeper.Version
	// More says that the history goes on behind the last decision of the page.
	More bool
}

// Decisions pages through the history, oldest first.
func (n *Node) Decisions(_ context.Context, q DecisionQuery) (DecisionPage, error) {
	return n.decisions.page(q)
}

func (d *decisions) page(q DecisionQuery) (DecisionPage, error) {
	q.Limit = max(q.Limit, 1)
	d.mu.Lock()
	index, recent := d.index, d.recent
	p := DecisionPage{CompleteFrom: d.completeFrom()}
	d.mu.Unlock()
	var stored []viewkeeper.Decision
	if index != nil {
		var err error
		if stored, err = index.After(q.Since, q.Name, q.Limit+1); err != nil {
			d.mu.Lock()
			_ = d.read(err)
			d.mu.Unlock()
			return p, fmt.Errorf("the history is being read again: %w", err)
		}
	}
	start, _ := slices.BinarySearchFunc(recent, q.Since+1, byVersion)
	fresh := recent[start:]
	for len(stored) > 0 || len(fresh) > 0 {
		var next viewkeeper.Decision
		switch {
		case len(fresh) == 0 || len(stored) > 0 && stored[0].Version < fresh[0].Version:
			next, stored = stored[0], stored[1:]
		case len(stored) > 0 && stored[0].Version == fresh[0].Version:
			next = fresh[0]
			if stored[0].Epoch > next.Epoch {
				next = stored[0]
			}
			stored, fresh = stored[1:], fresh[1:]
		default:
			next, fresh = fresh[0], fresh[1:]
			if !q.Name.IsZero() && !history.About(next, q.Name) {
				continue
			}
		}
		if len(p.Decisions) == q.Limit {
			p.More = true
			break
		}
		p.Decisions = append(p.Decisions, next)
	}
	return p, nil
}

// HistoryLength counts the decisions known here about the name: the length of its
// history.
func (n *Node) HistoryLength(name viewkeeper.Name) int {
	d := n.decisions
	d.mu.Lock()
	index, recent := d.index, d.recent
	d.mu.Unlock()
	count, last := 0, viewkeeper.Version(0)
	if index != nil {
		var err error
		if count, last, err = index.Count(name); err != nil {
			return 0
		}
	}
	start, _ := slices.BinarySearchFunc(recent, last+1, byVersion)
	for _, x := range recent[start:] {
		if history.About(x, name) {
			count++
		}
	}
	return count
}

// WaitDecision waits until the record at an offset of the definitions topic is
// decided, and returns its decision. id is the statement's id, or "". When the owner
// knew the id already and decided nothing new, it is the first decision of that id.
// It does not wait for the factory; WaitVersion with the decision's version does.
func (n *Node) WaitDecision(ctx context.Context, id string, offset int64) (viewkeeper.Decision, error) {
	for {
		c := n.wake.C()
		x, found, covered, err := n.decisions.byOffset(id, offset)
		if err == nil && covered && !found && id != "" {
			// Decided without a decision of its own.
			x, found, err = n.decisions.byID(id)
		}
		if found && err == nil {
			return x, nil
		}
		select {
		case <-c:
		case <-ctx.Done():
			return viewkeeper.Decision{}, ctx.Err()
		}
	}
}

// Decision is what is known here of a statement id: its decision; nil and seen when
// its record was read and is not decided yet; nil and not seen otherwise.
func (n *Node) Decision(_ context.Context, id string) (x *viewkeeper.Decision, seen bool, err error) {
	d, found, err := n.decisions.byID(id)
	if err != nil {
		return nil, false, fmt.Errorf("looking for the statement %s: %w", id, err)
	}
	if found {
		return &d, true, nil
	}
	return nil, n.intake.has(id), nil
}
