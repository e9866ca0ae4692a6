package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/server"
	"github.com/viewkeeper/viewkeeper/view"
)

// emitter gives Kafka's emitter as the server asks it.
type emitter struct{ *kafka.Emitter }

func newEmitter(k viewkeeper.KafkaSettings, catalog string) (*emitter, error) {
	settings, err := kafka.NewSettings(k)
	if err != nil {
		return nil, err
	}
	return &emitter{settings.NewEmitter(kafka.Topics{Catalog: catalog})}, nil
}

func (e *emitter) Emit(ctx context.Context, sub viewkeeper.Submission) (int64, error) {
	r, err := e.Emitter.Emit(ctx, sub)
	var large *kafka.TooLargeError
	var not *kafka.NotWrittenError
	switch {
	case err == nil:
		return r.Offset, nil
	case errors.As(err, &large):
		return 0, fmt.Errorf("%w: %w", server.ErrTooLarge, err)
	case errors.As(err, &not) && kafka.Classify(not.Err).Kind == kafka.KindDenied:
		return 0, fmt.Errorf("%w: %w", server.ErrForbidden, err)
	case errors.As(err, &not):
		return 0, fmt.Errorf("%w: %w", server.ErrNotWritten, err)
	}
	return 0, err
}

// nodeDoor gives the node as the server asks it.
type nodeDoor struct{ *view.Node }

func (n nodeDoor) Decisions(ctx context.Context, q server.DecisionQuery) (server.DecisionPage, error) {
	page, err := n.Node.Decisions(ctx, view.DecisionQuery(q))
	return server.DecisionPage(page), err
}

func (n nodeDoor) Nodes() []viewkeeper.NodeStatus {
	nodes, _ := n.Node.Nodes()
	return nodes
}

func (n nodeDoor) Watch(ctx context.Context, from viewkeeper.Version, send func(server.Event) error) error {
	return n.Node.Watch(ctx, from, func(e view.Event) error { return send(server.Event(e)) })
}

// checker judges over the node's own catalog, with the node's planner: builds and
// checks take turns in it. The catalog of one factory is kept for the next check,
// which then finds the planner as it left it.
type checker struct {
	node *view.Node

	mu      sync.Mutex
	of      *registry.Factory
	catalog *registry.Catalog
}

func (c *checker) Check(ctx context.Context, sub viewkeeper.Submission) (viewkeeper.Decision, viewkeeper.Version, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	f := c.node.Current()
	if c.of != f {
		st := c.node.Status()
		c.of, c.catalog = f, registry.CatalogAt(f, registry.CatalogOptions{VersionBase: f.Version(), Owner: st.Owner, Epoch: st.Epoch})
	}
	out, err := c.catalog.Check(ctx, sub)
	if err != nil {
		return viewkeeper.Decision{}, 0, err
	}
	return out.Decision, f.Version(), nil
}
