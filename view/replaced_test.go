package view

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// Another topic under the table's name: what is served goes on being served, and
// the new one is taken only when it is not behind that.
func TestRecreatedTable(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	for range 5 {
		o.accept("", view("v", "SELECT a FROM t"))
	}
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	n.version(5)

	if err := b.Cluster().DeleteTopic(topics.Table()); err != nil {
		t.Fatal(err)
	}
	n.degraded(viewkeeper.ReasonTopicMissing, true)
	createTopics(t, b.Addr())
	n.degraded(viewkeeper.ReasonTopicRecreated, true)

	// A new owner that begins again at version 1 is not believed.
	fresh := newOwner(t, b.Addr())
	fresh.name, fresh.noDecisions = "owner-2", true
	fresh.takeOver()
	fresh.accept("wrong", view("w", "SELECT b FROM t"))
	fresh.heartbeat()
	n.until("the new topic is read", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.following != n.accepted && !n.following.fold.Collecting() && n.following.fold.Version() == 1
	})
	n.has("main.v")
	if s := n.Status(); !s.Ready || s.Version != 5 || s.Owner != "owner-1" || s.StaleFor <= 0 {
		t.Errorf("%+v", s)
	}
	if d, _, err := n.Decision(t.Context(), "wrong"); d != nil || err != nil {
		t.Errorf("a decision of the other topic is known: %+v, %v", d, err)
	}

	// What was restored goes on from the version that was there.
	fresh.version = 5
	fresh.accept("right", view("v", "SELECT a FROM t"), view("x", "SELECT b FROM t"))
	n.version(6)
	n.has("main.v", "main.w", "main.x")
	n.degraded(viewkeeper.ReasonTopicRecreated, false)
	if d := n.decided("right", 5); d.Version != 6 {
		t.Errorf("%+v", d)
	}
}

// Before anything is served there is nothing to protect: the new topic is read.
func TestRecreatedBeforeReady(t *testing.T) {
	b := startBroker(t)
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.reason(viewkeeper.ReasonNoOwner)
	if err := b.Cluster().DeleteTopic(topics.Table()); err != nil {
		t.Fatal(err)
	}
	createTopics(t, b.Addr())
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	n.ready()
	n.has("main.v")
}

func TestRecreatedDefinitionsAreReported(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	if err := b.Cluster().DeleteTopic(topics.Definitions()); err != nil {
		t.Fatal(err)
	}
	createTopics(t, b.Addr())
	n.degraded(viewkeeper.ReasonTopicRecreated, true)
	if d := n.Status().Details[viewkeeper.ReasonTopicRecreated]; !strings.Contains(d, "adopt") {
		t.Errorf("%q", d)
	}
}

func TestOwnerAndBaseAreReported(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.baseDigest = "something else"
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	clocks := fast()
	clocks.noOwner = 300 * time.Millisecond
	n := run(t, config(t, b.Addr(), "n1"), clocks)
	n.ready()
	n.degraded(viewkeeper.ReasonNoOwner, true)
	stop := o.lives()
	n.degraded(viewkeeper.ReasonNoOwner, false)
	n.degraded(viewkeeper.ReasonBaseDiffers, true)
	stop()
	n.degraded(viewkeeper.ReasonNoOwner, true)
	if s := n.Status(); !s.Ready {
		t.Errorf("%+v", s)
	}
	n.SetDegraded(viewkeeper.ReasonEngineDown, "it is being restarted")
	n.degraded(viewkeeper.ReasonEngineDown, true)
	n.SetDegraded(viewkeeper.ReasonEngineDown, "")
	n.degraded(viewkeeper.ReasonEngineDown, false)
}

func TestWaitersGiveUpWithTheirContext(t *testing.T) {
	b := startBroker(t)
	n := run(t, config(t, b.Addr(), "n1"), fast())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := n.WaitReady(ctx); err != context.Canceled {
		t.Error(err)
	}
	if err := n.WaitVersion(ctx, 1); err != context.Canceled {
		t.Error(err)
	}
	if _, err := n.WaitDecision(ctx, "x", 0); err != context.Canceled {
		t.Error(err)
	}
	if err := n.WaitVersion(ctx, 0); err != nil {
		t.Error("version 0 is always there:", err)
	}
}
