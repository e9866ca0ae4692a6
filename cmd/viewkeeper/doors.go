package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
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

// checker judges over the node's own catalog, with a planner of its own that is
// started for the first check: what is checked may hang or kill its engine, and no
// build and no statement waits for that. The catalog of one factory is kept for the
// next check, which then finds the planner as it left it.
type checker struct {
	node  *view.Node
	start func(context.Context) (*engine.Planner, *registry.Base, error)

	turn    chan struct{} // held by the one check that is under way
	planner *engine.Planner
	base    *registry.Base
	of      *registry.Factory
	catalog *registry.Catalog
}

func newChecker(start func(context.Context) (*engine.Planner, *registry.Base, error)) *checker {
	return &checker{start: start, turn: make(chan struct{}, 1)}
}

func (c *checker) Check(ctx context.Context, sub viewkeeper.Submission) (viewkeeper.Decision, viewkeeper.Version, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return viewkeeper.Decision{}, 0, ctx.Err()
	}
	if c.planner == nil {
		var err error
		// A client that goes does not end the engine for the next one.
		if c.planner, c.base, err = c.start(context.WithoutCancel(ctx)); err != nil {
			return viewkeeper.Decision{}, 0, err
		}
	}
	f := c.node.Current()
	if c.of != f {
		st := c.node.Status()
		c.of, c.catalog = f, registry.CatalogOn(c.base, f, registry.CatalogOptions{VersionBase: f.Version(), Owner: st.Owner, Epoch: st.Epoch})
	}
	out, err := c.catalog.Check(ctx, sub)
	if err != nil {
		return viewkeeper.Decision{}, 0, err
	}
	return out.Decision, f.Version(), nil
}

// close ends the engine. No check may come after it.
func (c *checker) close() error {
	c.turn <- struct{}{}
	if c.planner == nil {
		return nil
	}
	return c.planner.Close()
}
