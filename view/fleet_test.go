package view

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
)

func (r *running) sees(want ...string) {
	r.t.Helper()
	r.until("the nodes", func() bool {
		all, _ := r.Nodes()
		var got []string
		for _, s := range all {
			got = append(got, s.Node)
		}
		return slices.Equal(got, want)
	})
}

func TestFleet(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	n1 := run(t, config(t, b.Addr(), "n1"), fast())
	n2 := run(t, config(t, b.Addr(), "n2"), fast())
	n1.ready()
	n2.ready()
	n1.sees("n1", "n2")
	n2.sees("n1", "n2")

	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	o.accept("", view("w", "SELECT b FROM t"))
	reached, missing, err := n1.WaitFleet(ctx, 2)
	if err != nil || !slices.Equal(reached, []string{"n1", "n2"}) || len(missing) != 0 {
		t.Fatalf("%v, %v, %v", reached, missing, err)
	}
	if v := n2.Current().Version(); v != 2 {
		t.Errorf("the fleet has version 2, n2 has %d", v)
	}
	n1.until("n2's status", func() bool {
		all, _ := n1.Nodes()
		s := all[1]
		return s.HTTP == "n2:80" && s.Ready && s.Definitions == 2 && s.Digest == n1.Status().Digest
	})

	// A version that is not there yet: all are missing when the time is over.
	short, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if reached, missing, err := n1.WaitFleet(short, 99); err == nil || len(reached) != 0 || !slices.Equal(missing, []string{"n1", "n2"}) {
		t.Errorf("%v, %v, %v", reached, missing, err)
	}

	// A node that is behind and leaves during the wait stops counting.
	behind, _ := json.Marshal(viewkeeper.Status{Node: "old", Version: 1})
	o.raw(topics.Nodes(), "old", behind)
	n1.sees("n1", "n2", "old")
	waited := make(chan []string, 1)
	go func() {
		reached, _, _ := n1.WaitFleet(ctx, 2)
		waited <- reached
	}()
	o.raw(topics.Nodes(), "old", nil)
	if got := <-waited; !slices.Equal(got, []string{"n1", "n2"}) {
		t.Errorf("after one left: %v", got)
	}
	// So does one that stops cleanly, at once.
	n2.stop()
	n1.sees("n1")
}

func TestADifferentDigestIsReported(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	other, _ := json.Marshal(viewkeeper.Status{Node: "n2", Version: 1, Digest: "other"})
	o.raw(topics.Nodes(), "n2", other)
	n.degraded(viewkeeper.ReasonDigestDiffers, true)
	o.raw(topics.Nodes(), "junk", []byte("{"))
	o.raw(topics.Nodes(), "liar", other)
	o.raw(topics.Nodes(), "n2", nil)
	n.degraded(viewkeeper.ReasonDigestDiffers, false)
	n.sees("n1")
}

// A process that may not own the catalog writes nothing to the table; the nodes show why,
// until there is an owner.
func TestABlockedOwnerIsSeen(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	clocks := fast()
	clocks.noOwner = 500 * time.Millisecond
	n := run(t, config(t, b.Addr(), "n1"), clocks)
	n.ready()
	n.degraded(viewkeeper.ReasonNoOwner, true)
	value, err := json.Marshal(viewkeeper.Blocked{Node: "o2", Reasons: map[string]string{viewkeeper.ReasonTableBehind: "it is behind"}})
	if err != nil {
		t.Fatal(err)
	}
	o.raw(topics.Nodes(), viewkeeper.BlockedKey, value)
	n.degraded(viewkeeper.ReasonTableBehind, true)
	if text := n.Status().Details[viewkeeper.ReasonTableBehind]; !strings.Contains(text, "o2") || !strings.Contains(text, "it is behind") {
		t.Errorf("it says %q", text)
	}
	n.sees("n1")
	o.raw(topics.Nodes(), viewkeeper.BlockedKey, []byte("rubbish"))
	n.degraded(viewkeeper.ReasonTableBehind, false)
	o.raw(topics.Nodes(), viewkeeper.BlockedKey, value)
	n.degraded(viewkeeper.ReasonTableBehind, true)
	// With an owner it is nobody's concern any more.
	stop := o.lives()
	n.degraded(viewkeeper.ReasonTableBehind, false)
	stop()
}

// What is wrong with one node is seen from any other: in the list, and as numbers.
func TestTheFleetIsSeenFromAnyNode(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.baseDigest = base(t, nil).Engine().BaseDigest
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	o.accept("", view("w", "SELECT b FROM t"))
	clocks := fast()
	clocks.live = time.Second
	cfg := config(t, b.Addr(), "n1")
	numbers := prometheus.NewPedanticRegistry()
	cfg.Registerer = numbers
	n := run(t, cfg, clocks)
	n.ready()
	n.sees("n1")
	own := n.Status().Digest
	others := []viewkeeper.Status{
		{Node: "behind", Version: 1, Ready: true},
		{Node: "other-rows", Version: 2, Digest: "x", Ready: true},
		{Node: "same-rows", Version: 2, Digest: own, Ready: true},
		{Node: "other-base", Version: 2, Digest: own, BaseDigest: "x", Degraded: []string{viewkeeper.ReasonBaseDiffers}, Ready: true},
		{Node: "stale", Version: 2, StaleFor: 400, ReadyReasons: []string{viewkeeper.ReasonStale}},
		{Node: "broken", Version: 2, Digest: own, Broken: 3, Ready: true},
	}
	var said time.Time
	say := func() {
		if time.Since(said) < 200*time.Millisecond {
			return
		}
		said = time.Now()
		for _, s := range others {
			value, _ := json.Marshal(s)
			o.raw(topics.Nodes(), s.Node, value)
		}
	}
	faults := func(s viewkeeper.NodeStatus) (is []string) {
		for what, yes := range map[string]bool{"lag": s.Lag > 0, "lagging": s.Lagging, "digest": s.DigestDiffers, "base": s.BaseDiffers, "broken": s.Broken > 0, "stale": s.StaleFor > 0, "not ready": !s.Ready} {
			if yes {
				is = append(is, what)
			}
		}
		slices.Sort(is)
		return is
	}
	want := map[string][]string{"n1": nil, "behind": {"lag", "lagging"}, "other-rows": {"digest"}, "same-rows": nil, "other-base": {"base"}, "stale": {"not ready", "stale"}, "broken": {"broken"}}
	var got map[string][]string
	n.until("what is wrong with each", func() bool {
		say()
		all, _ := n.Nodes()
		got = map[string][]string{}
		for _, s := range all {
			got[s.Node] = faults(s)
		}
		return reflect.DeepEqual(got, want)
	}, &got)
	wantValues := map[string]float64{
		"viewkeeper_fleet_nodes": 7, "viewkeeper_fleet_lagging": 1, "viewkeeper_fleet_lag_versions": 1, "viewkeeper_fleet_digest_mismatch": 1,
		"viewkeeper_fleet_base_mismatch": 1, "viewkeeper_fleet_broken": 1, "viewkeeper_fleet_stale": 1, "viewkeeper_fleet_not_ready": 1,
		"viewkeeper_degraded{DIGEST_DIFFERS}": 1, "viewkeeper_degraded{KAFKA_AWAY}": 0, "viewkeeper_not_ready{STALE}": 0, "viewkeeper_ready": 1,
	}
	// A node whose word is a second old is not counted any more: they have to say it again.
	var values, differ map[string]float64
	n.until("the numbers", func() bool {
		say()
		values, differ = gather(t, numbers), map[string]float64{}
		for name, want := range wantValues {
			if is, ok := values[name]; !ok || is != want {
				differ[name] = is
			}
		}
		return len(differ) == 0
	}, &differ)
	// Each reason has a series in each of the two, also those that never were.
	for _, code := range viewkeeper.Reasons() {
		for _, name := range []string{"viewkeeper_degraded", "viewkeeper_not_ready"} {
			if _, ok := values[name+"{"+code+"}"]; !ok {
				t.Errorf("%s has no series for %s", name, code)
			}
		}
	}
}

// gather gives the value of each series; one with a reason, or a why, has it in its name.
func gather(t *testing.T, from prometheus.Gatherer) map[string]float64 {
	t.Helper()
	families, err := from.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, l := range m.GetLabel() {
				if l.GetValue() == "owner" && l.GetName() == "of" {
					name += "of owner"
				}
				if l.GetName() == "reason" || l.GetName() == "why" {
					name += "{" + l.GetValue() + "}"
				}
			}
			values[name] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return values
}

// Two nodes with one id: each sees its record written over by the other, and says so
// until the other is gone.
func TestOneNodeIDTwice(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	clocks := fast()
	clocks.live = time.Second
	// The run before leaves a record: that is nobody's double.
	before, _ := json.Marshal(viewkeeper.Status{Node: "n1", Instance: "before"})
	o.raw(topics.Nodes(), "n1", before)
	one := run(t, config(t, b.Addr(), "n1"), clocks)
	one.ready()
	one.sees("n1")
	one.degraded(viewkeeper.ReasonNodeIDTaken, false)
	two := run(t, config(t, b.Addr(), "n1"), clocks)
	one.degraded(viewkeeper.ReasonNodeIDTaken, true)
	two.degraded(viewkeeper.ReasonNodeIDTaken, true)
	if d := two.Status().Details[viewkeeper.ReasonNodeIDTaken]; !strings.Contains(d, "--node-id") {
		t.Errorf("%q", d)
	}
	two.stop()
	one.degraded(viewkeeper.ReasonNodeIDTaken, false)
}

// Ages are told by the broker's clock: records that lay there for long are of dead
// nodes also right after the start, and a node's own clock says nothing.
func TestWhoLivesIsToldByTheBrokersClock(t *testing.T) {
	f := newFleet("n1", 10*time.Second)
	status := func(node string) []byte {
		v, _ := json.Marshal(viewkeeper.Status{Node: node, Version: 1})
		return v
	}
	broker := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	here := time.Date(1999, 1, 1, 0, 0, 0, 0, time.UTC) // this node's clock is wrong
	f.read("dead", status("dead"), broker.Add(-time.Hour), here)
	f.read("n2", status("n2"), broker.Add(-2*time.Second), here)
	f.read("n1", status("n1"), broker, here)
	f.setCaughtUp()
	live := func(after time.Duration) int {
		all, _ := f.members(here.Add(after))
		return len(all)
	}
	for after, want := range map[time.Duration]int{0: 2, 7 * time.Second: 2, 9 * time.Second: 1, 11 * time.Second: 0} {
		if got := live(after); got != want {
			t.Errorf("after %s %d nodes live, want %d", after, got, want)
		}
	}
}

func nodesEnd(t *testing.T, addr string) int64 {
	t.Helper()
	a, err := settings(t, addr).OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	end, err := a.EndOffset(t.Context(), topics.Nodes())
	if err != nil {
		t.Fatal(err)
	}
	return end
}

// What changes at once goes out at once; what changes often goes out together.
func TestStatusIsPublishedAtOnceAndNotTooOften(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	clocks := fast()
	clocks.publishMin, clocks.publishMax = 300*time.Millisecond, time.Hour
	clocks.noOwner = time.Hour
	n := run(t, config(t, b.Addr(), "n1"), clocks)
	published := func(ok func(viewkeeper.NodeStatus) bool) {
		t.Helper()
		n.until("a published status", func() bool {
			all, _ := n.Nodes()
			return len(all) == 1 && ok(all[0])
		})
	}
	published(func(s viewkeeper.NodeStatus) bool { return s.Ready })
	before, began := nodesEnd(t, b.Addr()), time.Now()
	for i := range 200 {
		n.SetDegraded(viewkeeper.ReasonEngineDown, fmt.Sprint("time ", i))
	}
	published(func(s viewkeeper.NodeStatus) bool { return s.Details[viewkeeper.ReasonEngineDown] == "time 199" })
	written, took := nodesEnd(t, b.Addr())-before, time.Since(began)
	if most := 3 + int64(took/clocks.publishMin); written > most {
		t.Errorf("%d records within %s for changes that came together", written, took)
	}
}

// A node that only reads writes nothing, and still sees the others.
func TestReadOnly(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	cfg := config(t, b.Addr(), "silent")
	cfg.ReadOnly = true
	silent := run(t, cfg, fast())
	silent.ready()
	if end := nodesEnd(t, b.Addr()); end != 0 {
		t.Errorf("%d records on the nodes topic", end)
	}
	run(t, config(t, b.Addr(), "n1"), fast())
	silent.sees("n1")
	o.accept("", view("v", "SELECT a FROM t"))
	if reached, missing, err := silent.WaitFleet(t.Context(), 1); err != nil || !slices.Equal(reached, []string{"n1"}) || len(missing) != 0 {
		t.Errorf("%v, %v, %v", reached, missing, err)
	}
}
