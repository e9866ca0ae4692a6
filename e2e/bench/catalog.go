package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

// Catalog is one catalog on the brokers, with its topics.
type Catalog struct {
	Name   string
	Base   string // the file of the base's SQL
	Topics kafka.Topics
	env    *Env
}

// NewCatalog makes the topics of an empty catalog over the base of the large one,
// with more SQL behind it.
func (e *Env) NewCatalog(ctx context.Context, moreBase string) (*Catalog, error) {
	c := &Catalog{Name: e.newName("bench"), env: e}
	c.Topics = kafka.Topics{Catalog: c.Name}
	dir := filepath.Join(e.Dir, c.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	base, _ := registrytest.Large(1)
	c.Base = filepath.Join(dir, "base.sql")
	if err := os.WriteFile(c.Base, []byte(base+moreBase), 0o644); err != nil {
		return nil, err
	}
	return c, e.admin(ctx, func(a *kafka.Admin) error {
		_, err := a.CreateTopics(ctx, c.Topics)
		return err
	})
}

// Loaded gives the catalog that holds the n definitions of registrytest.Large, which
// figures share: it is made at the first call. Nobody owns it when it comes; a figure
// that changes it leaves as many definitions as it found, and stops what it started.
func (e *Env) Loaded(ctx context.Context, n int) (*Catalog, error) {
	e.mu.Lock()
	c := e.loaded[n]
	e.mu.Unlock()
	if c != nil {
		return c, nil
	}
	began := time.Now()
	c, err := e.NewCatalog(ctx, "")
	if err != nil {
		return nil, err
	}
	owner, err := c.Serve(ctx, "loader", "owner")
	if err != nil {
		return nil, err
	}
	defer owner.Stop()
	_, statements := registrytest.Large(n)
	if err := c.load(ctx, statements); err != nil {
		return nil, fmt.Errorf("loading %d definitions: %w\n%s", n, err, owner.tail(20))
	}
	e.Log("a catalog of %d definitions was loaded in %v", n, time.Since(began).Round(100*time.Millisecond))
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.loaded == nil {
		e.loaded = map[int]*Catalog{}
	}
	e.loaded[n] = c
	return c, nil
}

// load submits statements as change sets, and waits until all are accepted.
func (c *Catalog) load(ctx context.Context, statements []string) error {
	const size = 200 // far below the limit of a change set, and of a call's time
	emitter, err := c.Emitter()
	if err != nil {
		return err
	}
	defer emitter.Close()
	decisions, err := c.Decisions(ctx)
	if err != nil {
		return err
	}
	defer decisions.Stop()
	for i := 0; i < len(statements); i += size {
		set := "BEGIN;\n" + strings.Join(statements[i:min(i+size, len(statements))], ";\n") + ";\nCOMMIT;"
		offset, err := emitter.Emit(ctx, viewkeeper.Submission{Key: fmt.Sprint("set-", i), SQL: set})
		if err != nil {
			return err
		}
		d, _, err := decisions.Wait(ctx, offset.Offset)
		if err != nil {
			return err
		}
		if d.Verdict != viewkeeper.Accepted {
			return fmt.Errorf("%s %s: %s", d.Verdict, d.Code, d.Message)
		}
	}
	return nil
}

// Emitter writes to the catalog's definitions topic.
func (c *Catalog) Emitter() (*kafka.Emitter, error) {
	settings, err := c.env.kafka()
	if err != nil {
		return nil, err
	}
	return settings.NewEmitter(c.Topics), nil
}

var errStopped = errors.New("the follower of the decisions was stopped")
