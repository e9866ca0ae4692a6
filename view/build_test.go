package view

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// brittle is an applier that fails while it is told to.
type brittle struct{ broken atomic.Bool }

func (b *brittle) Apply(context.Context, viewkeeper.Version, bool, []registry.Apply) error {
	if b.broken.Load() {
		return errors.New("the engine is gone")
	}
	return nil
}

// A build that fails for reasons of its own keeps the last factory, and loses
// nothing of what it had taken.
func TestAFailedBuildKeepsTheLastFactory(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	cfg := config(t, b.Addr(), "n1")
	applier := &brittle{}
	applier.broken.Store(true)
	cfg.Applier = applier
	n := run(t, cfg, fast())
	n.reason(viewkeeper.ReasonBuildFailed)
	applier.broken.Store(false)
	n.ready()

	applier.broken.Store(true)
	for i := range 5 {
		o.accept("", view(fmt.Sprint("w", i), "SELECT a FROM v"))
	}
	n.degraded(viewkeeper.ReasonBuildFailed, true)
	n.has("main.v")
	n.until("it is stale", func() bool { return n.Status().StaleFor > 0 })
	if d := n.decided("", 5); d.Version != 6 {
		t.Errorf("%+v", d)
	}
	applier.broken.Store(false)
	n.version(6)
	n.degraded(viewkeeper.ReasonBuildFailed, false)
	n.has("main.v", "main.w0", "main.w1", "main.w2", "main.w3", "main.w4")
	if s := n.Status(); s.StaleFor != 0 || !s.Ready {
		t.Errorf("%+v", s)
	}
}

// moody is a planner that cannot bind what has a word in it, as when a file is not
// there, until it can.
type moody struct {
	registry.Planner
	word string
	ok   atomic.Bool
}

func (m *moody) Bind(ctx context.Context, stubs []registry.Stub, queries []registry.Query) ([]registry.Bound, error) {
	bound, err := m.Planner.Bind(ctx, stubs, queries)
	for i, q := range queries {
		if err == nil && !m.ok.Load() && strings.Contains(q.Text, m.word) {
			bound[i] = registry.Bound{Err: &registry.PlanError{Code: viewkeeper.CodeBind, Message: "no file", At: -1}}
		}
	}
	return bound, err
}

// A broken definition is tried again on a timer, without any statement.
func TestBrokenDefinitionsAreRetried(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a AS lost FROM t"), view("w", "SELECT * FROM v"))
	cfg := config(t, b.Addr(), "n1")
	planner := &moody{Planner: registrytest.NewModel(registrytest.Relation("main.t", "a", "INTEGER", "b", "VARCHAR")), word: "lost"}
	cfg.Base = base(t, planner)
	n := run(t, cfg, fast())
	n.ready()
	n.has("main.v!", "main.w!")
	planner.ok.Store(true)
	n.degraded(viewkeeper.ReasonBroken, false)
	n.has("main.v", "main.w")
	if v := n.Current().Version(); v != 1 {
		t.Errorf("version %d", v)
	}
}

// A node that starts before Kafka says so, and goes on when it comes.
func TestStartBeforeKafka(t *testing.T) {
	d := startDirBroker(t)
	o := newOwner(t, d.addr)
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	d.stop()
	n := run(t, config(t, d.addr, "n1"), fast())
	n.reason(viewkeeper.ReasonKafkaAway)
	d.start()
	n.ready()
	n.has("main.v")
}

func TestSettingsAreCheckedOnATimer(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	clocks := fast()
	clocks.settings = 50 * time.Millisecond
	n := run(t, config(t, b.Addr(), "n1"), clocks)
	n.ready()
	c := b.Cluster()
	if err := c.DeleteTopic(topics.Decisions()); err != nil {
		t.Fatal(err)
	}
	n.degraded(viewkeeper.ReasonTopicMissing, true)
	if err := c.CreateTopic(topics.Decisions(), 2, map[string]string{"cleanup.policy": "delete"}); err != nil {
		t.Fatal(err)
	}
	n.degraded(viewkeeper.ReasonTopicSettings, true)
	n.until("the reason", func() bool {
		return strings.Contains(n.Status().Details[viewkeeper.ReasonTopicSettings], "partitions is 2")
	})
	if !n.Status().Ready {
		t.Error("not ready any more")
	}
}

// The table's end can't be reached and nobody writes: the node says so.
func TestNoOwnerAtTheTablesEnd(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	n, err := newNode(config(t, b.Addr(), "n1"), fast())
	if err != nil {
		t.Fatal(err)
	}
	s := n.following
	gap, _ := s.fold.NeedEnd()
	s.fold.EndIs(gap, 7)
	n.health.running, n.health.down = true, time.Time{}
	n.health.lastRecord = time.Now().Add(-time.Minute)
	ready, reasons := n.Ready()
	if ready || len(reasons) != 1 || reasons[0] != viewkeeper.ReasonNoOwnerAtEnd {
		t.Errorf("%v", reasons)
	}
	n.health.lastRecord = time.Now()
	if _, reasons = n.Ready(); reasons[0] != viewkeeper.ReasonCatchingUp {
		t.Errorf("%v", reasons)
	}
}

func TestConfigNamesEveryProblem(t *testing.T) {
	_, err := New(Config{Catalog: "No Good", Kafka: viewkeeper.KafkaSettings{Brokers: []string{"x"}}})
	if err == nil {
		t.Fatal("it is accepted")
	}
	for _, want := range []string{`"x"`, `"No Good"`, "node id", "base"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}
