package view

import (
	"context"
	"time"

	"github.com/viewkeeper/viewkeeper/internal/plancache"
	"github.com/viewkeeper/viewkeeper/registry"
)

// loadPlans gives the registry what the planner answered in the run before. What is
// not there is planned; nothing else depends on it.
func (n *Node) loadPlans() {
	if n.cfg.DataDir == "" {
		return
	}
	kept, err := plancache.Read(plancache.Path(n.cfg.DataDir))
	if err != nil {
		n.log.Warn("every definition is planned anew", "error", err)
	}
	if kept.Len() > 0 {
		n.reg.Recall(kept)
	}
}

// keepPlans keeps the planner's answers for the next start, until ctx ends and once
// more then: a while after the first factory, when nobody waits any more, and at
// long intervals after that. A node that is killed plans again what came since.
func (n *Node) keepPlans(ctx context.Context) error {
	if n.cfg.DataDir == "" {
		return nil
	}
	var written *registry.Factory
	failing := false
	write := func() {
		f := n.reg.Current()
		if f == written || f.Len() == 0 || f.Engine().Answers == "" {
			return
		}
		err := plancache.Write(plancache.Path(n.cfg.DataDir), f.Answers())
		if err == nil {
			written = f
		} else if !failing {
			n.log.Warn("the next start of this node will take longer", "error", err)
		}
		failing = err != nil
	}
	wait := time.NewTimer(time.Hour)
	defer wait.Stop()
	served := func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.health.served
	}
	if n.waitFor(ctx, served) != nil {
		return nil
	}
	for wait.Reset(n.time.plansFirst); ; wait.Reset(n.time.plansEvery) {
		select {
		case <-wait.C:
			write()
		case <-ctx.Done():
			write()
			return nil
		}
	}
}
