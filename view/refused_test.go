package view

import (
	"context"
	"sync"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// picky is an applier that refuses one definition while it is told to.
type picky struct {
	mu     sync.Mutex
	refuse string
	resets int
}

func (p *picky) set(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = name
}

func (p *picky) Apply(_ context.Context, _ viewkeeper.Version, reset bool, changes []registry.Apply) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if reset {
		p.resets++
	}
	for _, c := range changes {
		if c.Name.String() == p.refuse && c.Query != "" {
			return &registry.ApplyError{Refused: []registry.RefusedApply{{Name: c.Name, Reason: "no such file"}}}
		}
	}
	return nil
}

// One definition that the engine refuses never holds the node at its old version: it
// is broken alone, the node says so, and it is tried again by itself.
func TestTheEngineRefusesOneDefinition(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"), view("w", "SELECT a FROM v"), view("x", "SELECT a FROM t"))
	cfg := config(t, b.Addr(), "n1")
	p := &picky{refuse: "main.v"}
	cfg.Applier = p
	n := run(t, cfg, fast())
	n.ready()
	n.version(1)
	n.has("main.v!", "main.w!", "main.x")
	o.accept("", view("y", "SELECT a FROM x"))
	n.version(2)
	n.has("main.v!", "main.w!", "main.x", "main.y")
	n.degraded(viewkeeper.ReasonBroken, true)
	n.degraded(viewkeeper.ReasonBuildFailed, false)
	failed := n.Current().Failures()
	if len(failed) != 2 || failed[0].Stage != registry.StageBuild || failed[0].Reason != "no such file" || failed[0].Since != 1 ||
		failed[1].RootCause == nil || *failed[1].RootCause != failed[0].Name {
		t.Errorf("%+v", failed)
	}
	p.set("")
	n.degraded(viewkeeper.ReasonBroken, false)
	n.has("main.v", "main.w", "main.x", "main.y")

	// An engine that is another one now, and refuses what the last one had.
	p.set("main.y")
	n.Reapply()
	n.degraded(viewkeeper.ReasonBroken, true)
	n.has("main.v", "main.w", "main.x", "main.y!")
	if s := n.Status(); !s.Ready || s.Broken != 1 || s.Version != 2 {
		t.Errorf("%+v", s)
	}
	p.set("")
	n.degraded(viewkeeper.ReasonBroken, false)
	n.has("main.v", "main.w", "main.x", "main.y")
}
