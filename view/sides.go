package view

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// side runs what a node does beside following the table: reading the decisions, the
// statements and the other nodes' records, and writing its own. None of it keeps a node
// from being ready, so that what keeps it from working would be seen by nobody: that the
// brokers deny it is shown as a reason until a run has lasted.
func (n *Node) side(ctx context.Context, name string, run func(context.Context) error) error {
	ended := func(err error, class kafka.Class, _ time.Duration) {
		if class.Kind == kafka.KindDenied {
			n.noteSide(name, err)
		}
	}
	return kafka.Supervise(ctx, n.supervision(name, ended), func(ctx context.Context) error {
		// A denial comes with the first answer; who was not denied for this long is let.
		lasted := time.AfterFunc(n.time.silent, func() { n.noteSide(name, nil) })
		defer lasted.Stop()
		return run(ctx)
	})
}

// noteSide notes the denial that a side ended with, or with nil that it works.
func (n *Node) noteSide(name string, denied error) {
	n.mu.Lock()
	_, was := n.health.sides[name]
	switch {
	case denied == nil:
		delete(n.health.sides, name)
	case n.health.sides == nil:
		n.health.sides = map[string]error{name: denied}
	default:
		n.health.sides[name] = denied
	}
	n.mu.Unlock()
	if was != (denied != nil) {
		n.wake.fire()
		poke(n.publish)
	}
}

// deniedSide is the first side by name that the brokers keep from working, or nil.
func (h *health) deniedSide() error {
	for _, name := range slices.Sorted(maps.Keys(h.sides)) {
		return fmt.Errorf("%s: %w", name, h.sides[name])
	}
	return nil
}
