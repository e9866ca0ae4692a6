package view

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	lerrors "github.com/syndtr/goleveldb/leveldb/errors"
	"github.com/syndtr/goleveldb/leveldb/storage"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/view/internal/history"
)

func (r *running) whole() {
	r.t.Helper()
	r.until("the whole history", func() bool {
		d := r.decisions
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.isWhole()
	})
}

func (r *running) page(q DecisionQuery) (versions []int, complete viewkeeper.Version, more bool) {
	r.t.Helper()
	p, err := r.Decisions(r.t.Context(), q)
	if err != nil {
		r.t.Fatal(err)
	}
	for _, d := range p.Decisions {
		versions = append(versions, int(d.Version))
	}
	return versions, p.CompleteFrom, p.More
}

func main(view string) viewkeeper.Name { return viewkeeper.MakeName("main", view) }

// fillCatalog makes ten versions: odd ones change v, even ones w; 5 is refused.
func fillCatalog(o *owner) {
	for i := 1; i <= 10; i++ {
		switch {
		case i == 5:
			o.accept(fmt.Sprint("s", i))
		case i%2 == 1:
			o.accept(fmt.Sprint("s", i), view("v", "SELECT a FROM t"))
		default:
			o.accept(fmt.Sprint("s", i), view("w", "SELECT b FROM t"))
		}
	}
}

func TestHistory(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	fillCatalog(o)
	o.raw(topics.Decisions(), "junk", []byte("not a decision"))
	cfg := config(t, b.Addr(), "n1")
	cfg.DataDir = t.TempDir()
	n := run(t, cfg, fast())
	n.ready()
	n.whole()
	check := func() {
		t.Helper()
		if got, complete, more := n.page(DecisionQuery{Limit: 100}); fmt.Sprint(got) != "[1 2 3 4 5 6 7 8 9 10]" || complete != 0 || more {
			t.Errorf("all: %v, complete from %d, more %v", got, complete, more)
		}
		if got, _, more := n.page(DecisionQuery{Since: 3, Limit: 2}); fmt.Sprint(got) != "[4 5]" || !more {
			t.Errorf("a page: %v, more %v", got, more)
		}
		if got, _, more := n.page(DecisionQuery{Name: main("v"), Limit: 4}); fmt.Sprint(got) != "[1 3 7 9]" || more {
			t.Errorf("of v: %v, more %v", got, more)
		}
		if l := n.HistoryLength(main("w")); l != 5 {
			t.Errorf("w has %d", l)
		}
		d, seen, err := n.Decision(t.Context(), "s5")
		if err != nil || !seen || d == nil || d.Verdict != viewkeeper.Refused {
			t.Errorf("s5: %+v, %v, %v", d, seen, err)
		}
		if d := n.decided("s2", 1); d.Version != 2 || len(d.Changed) != 1 {
			t.Errorf("s2: %+v", d)
		}
	}
	check()
	next := n.decisions.index.Next()
	n.stop()

	// A restart goes on from where the index was.
	n = run(t, cfg, fast())
	n.ready()
	n.whole()
	check()
	if got := n.decisions.index.Next(); got != next {
		t.Errorf("next %d, was %d", got, next)
	}
	n.stop()

	// A damaged index is thrown away and read again.
	files, err := filepath.Glob(filepath.Join(cfg.DataDir, "history", "*"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		if filepath.Base(f) == "LOCK" {
			continue
		}
		if err := os.WriteFile(f, []byte("\x00\x01 rubbish rubbish rubbish"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	n = run(t, cfg, fast())
	n.ready()
	n.whole()
	check()
	n.stop()

	// So is one of another topic.
	if err := b.Cluster().DeleteTopic(topics.Decisions()); err != nil {
		t.Fatal(err)
	}
	createTopics(t, b.Addr())
	n = run(t, cfg, fast())
	n.ready()
	n.whole()
	if got, _, _ := n.page(DecisionQuery{Limit: 100}); fmt.Sprint(got) != "[10]" {
		t.Errorf("of the new topic, and the commit row: %v", got)
	}
}

// For one version the highest epoch counts, in whatever order the copies come.
func TestTheHighestEpochOfADecisionCounts(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	d := o.accept("s1", view("v", "SELECT a FROM t"))
	o.accept("s2", view("v", "SELECT a FROM t"))
	d.Epoch, d.Owner = 9, "later"
	o.decide(d)
	d.Epoch, d.Owner = 4, "between"
	o.decide(d)
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	n.whole()
	if got := n.decided("s1", 0); got.Owner != "later" {
		t.Errorf("%+v", got)
	}
}

// An id that came again: with the same text it has no decision of its own, with
// another text the first decision stays the id's.
func TestIDsThatComeAgain(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("id", view("v", "SELECT a FROM t"))
	o.version++ // the same again: decided, nothing said
	reused, _ := o.decision("id")
	reused.Code = viewkeeper.CodeIDReused
	o.commit(reused, nil)
	o.decide(reused)
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	n.whole()
	for offset, version := range map[int64]viewkeeper.Version{0: 1, 1: 1, 2: 3} {
		if d := n.decided("id", offset); d.Version != version {
			t.Errorf("offset %d gave version %d, want %d", offset, d.Version, version)
		}
	}
	if d, _, err := n.Decision(t.Context(), "id"); err != nil || d.Version != 1 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestWatchResumes(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	fillCatalog(o)
	n := run(t, config(t, b.Addr(), "n1"), fast())
	watch := func(from viewkeeper.Version, until viewkeeper.Version) []string {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		var got []string
		err := n.Watch(ctx, from, func(e Event) error {
			got = append(got, fmt.Sprint(e.Version, e.Changed))
			if e.Version >= until {
				return errEnough
			}
			return nil
		})
		if !errors.Is(err, errEnough) {
			t.Error(err)
		}
		return got
	}
	// Asked before the node has anything at all.
	if got := watch(2, 6); !slices.Equal(got, []string{"3 [main.v]", "4 [main.w]", "6 [main.w]"}) {
		t.Errorf("%v", got)
	}
	done := make(chan []string)
	go func() { done <- watch(10, 11) }()
	o.accept("", view("x", "SELECT a FROM v"), change{"w", ""})
	if got := <-done; !slices.Equal(got, []string{"11 [main.w main.x]"}) {
		t.Errorf("%v", got)
	}

	// What is no longer kept is said to be gone.
	if err := b.Cluster().DeleteRecords(topics.Decisions(), 0, 4); err != nil {
		t.Fatal(err)
	}
	n.stop()
	n = run(t, config(t, b.Addr(), "n2"), fast())
	n.ready()
	n.whole()
	var gone *HistoryGoneError
	if err := n.Watch(t.Context(), 1, func(Event) error { return nil }); !errors.As(err, &gone) || gone.CompleteFrom != 5 {
		t.Errorf("%v", err)
	}
	if got := watch(4, 11); len(got) != 6 {
		t.Errorf("%v", got)
	}
}

// While the index still loads, the answer says from where it is complete.
func TestCompleteFrom(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	fillCatalog(o)
	if err := b.Cluster().DeleteTopic(topics.Decisions()); err != nil {
		t.Fatal(err)
	}
	clocks := fast()
	n, err := newNode(config(t, b.Addr(), "n1"), clocks)
	if err != nil {
		t.Fatal(err)
	}
	// No reader of the decisions: only the commit row is known.
	s := n.following
	n.accepted = s
	readTable(t, b.Addr(), n, s)
	p, err := n.Decisions(t.Context(), DecisionQuery{Limit: 10})
	if err != nil || p.CompleteFrom != 10 || len(p.Decisions) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
}

func TestSeenAndNotDecided(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	e := settings(t, b.Addr()).NewEmitter(topics)
	defer e.Close()
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	for i, id := range []string{"mine", ""} {
		r, err := e.Emit(t.Context(), viewkeeper.Submission{Key: "k", SQL: "CREATE VIEW v AS SELECT a FROM t", ID: id})
		if err != nil || r.Offset != int64(i) {
			t.Fatal(r, err)
		}
		if id == "" {
			id = r.StatementID()
		}
		n.until(id, func() bool {
			d, seen, err := n.Decision(t.Context(), id)
			return d == nil && seen && err == nil
		})
	}
	if p := n.Pending(); p != 2 {
		t.Errorf("%d pending", p)
	}
	if _, seen, _ := n.Decision(t.Context(), "unheard of"); seen {
		t.Error("seen")
	}
	o.accept("mine", view("v", "SELECT a FROM t"))
	n.decided("mine", 0)
	if p := n.Pending(); p != 1 {
		t.Errorf("%d pending", p)
	}
}

// An index that a reader finds damaged is read again from Kafka.
func TestDamageThatAReaderFinds(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	fillCatalog(o)
	cfg := config(t, b.Addr(), "n1")
	cfg.DataDir = t.TempDir()
	n := run(t, cfg, fast())
	n.ready()
	n.whole()
	d := n.decisions
	d.mu.Lock()
	first := d.index
	_ = d.read(lerrors.NewErrCorrupted(storage.FileDesc{}, errEnough))
	d.mu.Unlock()
	n.until("a new index", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return d.index != nil && d.index != first && d.isWhole()
	})
	if got, _, _ := n.page(DecisionQuery{Limit: 100}); len(got) != 10 {
		t.Errorf("%v", got)
	}
}

// What the index has need not stay in memory.
func TestRecentDecisionsAreTrimmed(t *testing.T) {
	var wake signal
	d := newDecisions(&wake)
	index, _, err := history.Open("", history.Identity{})
	if err != nil {
		t.Fatal(err)
	}
	commit := func(v int) *codec.Commit {
		x := viewkeeper.Decision{StatementID: fmt.Sprint(v), Version: viewkeeper.Version(v), Offset: int64(v) - 1, Epoch: 1}
		return &codec.Commit{Version: x.Version, Epoch: 1, Decisions: []viewkeeper.Decision{x}}
	}
	for v := 1; v <= recentMost+500; v++ {
		d.add([]*codec.Commit{commit(v)}, v == 1)
	}
	const cut = recentMost/4 + 1 // at the first one over the most
	if len(d.recent) != recentMost+500-cut || d.from != cut+1 || d.completeFrom() != cut+1 || len(d.ids) != len(d.recent) {
		t.Errorf("without an index: %d from %d, %d ids", len(d.recent), d.from, len(d.ids))
	}
	var all []history.Entry
	for v := 1; v <= recentMost+501; v++ {
		all = append(all, history.Entry{Offset: int64(v), Decision: &commit(v).Decisions[0]})
	}
	if err := index.Add(all); err != nil {
		t.Fatal(err)
	}
	d.index, d.whole = index, d.wanted
	d.add([]*codec.Commit{commit(recentMost + 501)}, false)
	d.trim() // as who fills the index does
	if len(d.recent) != recentKeep || d.completeFrom() != 0 {
		t.Errorf("with an index: %d, complete from %d", len(d.recent), d.completeFrom())
	}
	for _, v := range []int{1, 500, 501, recentMost, recentMost + 501} {
		if x, found, err := d.byID(fmt.Sprint(v)); err != nil || !found || int(x.Version) != v {
			t.Errorf("%d: %+v, %v, %v", v, x, found, err)
		}
	}
}
