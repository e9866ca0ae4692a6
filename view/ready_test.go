package view

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Not ready while catching up, then ready once, with the factory complete at that
// moment. A reader that spins on Current sees the base alone, then all.
func TestReadyOnceAndNeverAPartialCatalog(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.noDecisions = true
	const count = 300
	for i := range count {
		from := "t"
		if i > 0 {
			from = fmt.Sprintf("v%03d", i/2)
			if i/2 == i {
				from = "t"
			}
		}
		if i == 1 {
			from = "v000"
		}
		o.accept("", view(fmt.Sprintf("v%03d", i), "SELECT a FROM "+from))
	}
	// Rewriting makes gaps where the broker compacts.
	for i := range 20 {
		o.accept("", view(fmt.Sprintf("v%03d", i*7), "SELECT a, b FROM t"))
	}
	b.Cluster().Compact()

	n, err := newNode(config(t, b.Addr(), "n1"), fast())
	if err != nil {
		t.Fatal(err)
	}
	states, stopStates := n.ObserveStates()
	var seen []State
	var mu sync.Mutex
	pumped := make(chan struct{})
	go func() {
		defer close(pumped)
		for s := range states {
			mu.Lock()
			seen = append(seen, s)
			mu.Unlock()
		}
	}()

	spin, spun := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(spun)
		wasReady := false
		for last := n.Current(); ; {
			ready, _ := n.Ready()
			f := n.Current()
			if wasReady && !ready {
				t.Error("ready was taken back")
			}
			if ready && f.Version() != o.version {
				t.Errorf("ready at version %d of %d", f.Version(), o.version)
			}
			wasReady = ready
			if f != last {
				if last.Version() != 0 || f.Version() != o.version || f.Len() != count {
					t.Errorf("a factory of version %d with %d definitions after one of version %d", f.Version(), f.Len(), last.Version())
				}
				last = f
			}
			select {
			case <-spin:
				return
			default:
			}
		}
	}()

	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	if err := n.WaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	if f := n.Current(); f.Version() != o.version || f.Len() != count || len(f.Failures()) != 0 {
		t.Errorf("at ready the factory has version %d, %d definitions, failures %v", f.Version(), f.Len(), f.Failures())
	}
	close(spin)
	<-spun
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	stopStates()
	<-pumped
	if i, j := slices.Index(seen, CatchUp), slices.Index(seen, Running); i < 0 || j < i || seen[len(seen)-1] != Idle {
		t.Errorf("the view's states were %v", seen)
	}
	if err := n.Run(t.Context()); err != ErrRunTwice {
		t.Errorf("a second Run: %v", err)
	}
}

func TestReasonsBeforeReady(t *testing.T) {
	b := startBroker(t)
	if err := b.Cluster().DeleteTopic(topics.Nodes()); err != nil {
		t.Fatal(err)
	}
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.reason(viewkeeper.ReasonTopicMissing)
	createTopics(t, b.Addr())

	// An empty table was never owned, or was emptied: never ready and empty.
	n.reason(viewkeeper.ReasonNoOwner)
	o := newOwner(t, b.Addr())
	o.takeOver()
	n.ready()
	if v := n.Current().Version(); v != 0 {
		t.Errorf("version %d", v)
	}
	o.accept("first", view("v", "SELECT a FROM t"))
	n.version(1)
	n.has("main.v")
	o.heartbeat()
	n.until("the owner", func() bool { s := n.Status(); return s.Owner == "owner-1" && s.Epoch == o.epoch })
}

func TestWrongSettingsAreRefusedAndThenReported(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	c := b.Cluster()
	if err := c.DeleteTopic(topics.Decisions()); err != nil {
		t.Fatal(err)
	}
	if err := c.CreateTopic(topics.Decisions(), 1, map[string]string{"cleanup.policy": "compact"}); err != nil {
		t.Fatal(err)
	}
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.reason(viewkeeper.ReasonTopicSettings)
	if d := n.Status().Details[viewkeeper.ReasonTopicSettings]; d == "" {
		t.Error("no detail")
	}
	if err := c.DeleteTopic(topics.Decisions()); err != nil {
		t.Fatal(err)
	}
	createTopics(t, b.Addr())
	n.ready()
}

func TestATruncatedTableIsNotServed(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	o.accept("", view("w", "SELECT a FROM t"))
	if err := b.Cluster().DeleteRecords(topics.Table(), 0, 3); err != nil {
		t.Fatal(err)
	}
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.reason(viewkeeper.ReasonTableTruncated)
	if n.Current().Version() != 0 {
		t.Error("something is served")
	}
}

// Tombstones, rubbish and records of newer formats stop nobody, and count for
// nothing.
func TestPoisonOnTheTable(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	table := topics.Table()
	o.raw(table, "main.v", nil)
	o.raw(table, "main.w", []byte("\x00\xff{"))
	o.raw(table, "#commit", []byte(`{"format":1,"type":"commit"`))
	o.raw(table, "", []byte("x"))
	o.raw(table, "#ids/9999", []byte("{}"))
	o.raw(table, "#heartbeat", nil)
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	n.has("main.v")
	o.raw(table, "main.v", nil)
	o.raw(table, "#commit", []byte("null"))
	o.raw(table, "main.x", []byte(`{"format":9,"type":"row","shape":"new"}`))
	o.accept("", view("w", "SELECT nothing FROM t"), view("u", "SELECT a FROM v"))
	n.version(2)
	n.has("main.u", "main.v", "main.w!")
	n.degraded(viewkeeper.ReasonBroken, true)
	n.degraded(viewkeeper.ReasonUnknownRecords, true)
	if s := n.Status(); s.Broken != 1 || s.BrokenDefinitions[0].String() != "main.w" || !s.Ready {
		t.Errorf("%+v", s)
	}
	o.accept("", change{"w", ""})
	n.version(3)
	n.has("main.u", "main.v")
	n.degraded(viewkeeper.ReasonBroken, false)
}

// A former owner's late records count for nobody.
func TestALateOwnerCountsForNothing(t *testing.T) {
	b := startBroker(t)
	old := newOwner(t, b.Addr())
	old.takeOver()
	old.accept("", view("v", "SELECT a FROM t"))
	now := newOwner(t, b.Addr())
	now.name, now.version = "owner-2", old.version
	now.takeOver()
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	old.noDecisions, now.noDecisions = true, true
	old.accept("late", view("x", "SELECT a FROM t"))
	now.accept("good", view("y", "SELECT a FROM t"))
	n.version(2)
	n.has("main.v", "main.y")
	d, err := n.WaitDecision(t.Context(), "good", 1)
	if err != nil || d.Owner != "owner-2" {
		t.Errorf("%+v, %v", d, err)
	}
	if d, _, err := n.Decision(t.Context(), "late"); d != nil || err != nil {
		t.Errorf("the late decision is known: %+v, %v", d, err)
	}
}

// What comes while a factory is built is built together.
func TestCoalescing(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	cfg := config(t, b.Addr(), "n1")
	gate := &gate{entered: make(chan struct{}, 100), pass: make(chan struct{}, 100)}
	cfg.Applier = gate
	n := run(t, cfg, fast())
	<-gate.entered // the first load
	gate.pass <- struct{}{}
	n.ready()
	o.accept("a", view("a", "SELECT a FROM t"))
	<-gate.entered // held here
	for i := range 20 {
		o.accept(fmt.Sprint("s", i), view(fmt.Sprint("v", i), "SELECT a FROM t"))
	}
	// The decisions are known before anything is built of them.
	if d := n.decided("s19", 20); d.Version != 21 {
		t.Fatalf("%+v", d)
	}
	if v := n.Current().Version(); v != 0 {
		t.Errorf("version %d before the applier is done", v)
	}
	var events []viewkeeper.Version
	watching := make(chan error, 1)
	go func() {
		watching <- n.Watch(t.Context(), 0, func(e Event) error {
			if v := n.Current().Version(); v < e.Version {
				t.Errorf("event %d at version %d", e.Version, v)
			}
			if events = append(events, e.Version); e.Version == 21 {
				return errEnough
			}
			return nil
		})
	}()
	gate.pass <- struct{}{}
	<-gate.entered
	if v := n.Current().Version(); v != 1 {
		t.Errorf("version %d, want 1", v)
	}
	gate.pass <- struct{}{}
	n.version(21)
	if calls := gate.count(); calls != 3 {
		t.Errorf("21 versions were applied in %d calls after the first load", calls-1)
	}
	if err := <-watching; err != errEnough || len(events) != 21 {
		t.Errorf("%v, %v", events, err)
	}
}

var errEnough = fmt.Errorf("enough")

// gate is an applier that waits to be let through.
type gate struct {
	entered, pass chan struct{}
	mu            sync.Mutex
	calls         int
}

func (g *gate) Apply(ctx context.Context, _ viewkeeper.Version, _ bool, _ []registry.Apply) error {
	g.mu.Lock()
	g.calls++
	g.mu.Unlock()
	g.entered <- struct{}{}
	select {
	case <-g.pass:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (g *gate) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.calls
}
