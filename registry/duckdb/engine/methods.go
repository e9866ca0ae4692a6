package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// The methods. "open" is the first call of every child.
const (
	methodOpen     = "open"
	methodDescribe = "describe"
	methodParse    = "parse"
	methodBind     = "bind"
	methodReset    = "reset"
	methodMerge    = "merge"
	methodApply    = "apply"
	methodRestore  = "restore"
	methodQuery    = "query"
	methodFault    = "fault" // tests only
)

// role is what a child is for.
type role string

const (
	rolePlanner role = "planner"
	roleServer  role = "server"
)

type openParams struct {
	Role    role           `json:"role"`
	Options duckdb.Options `json:"options"`
}

type parseParams struct {
	Queries []registry.Query `json:"queries"`
}

type bindParams struct {
	// Trial is the number of the trial that this belongs to, Ended how those before it
	// ended, see [Planner.Bind].
	Trial   int              `json:"trial"`
	Ended   []trialEnd       `json:"ended,omitempty"`
	Stubs   []registry.Stub  `json:"stubs,omitempty"`
	Queries []registry.Query `json:"queries"`
}

type trialEnd struct {
	Trial int  `json:"trial"`
	Keep  bool `json:"keep"`
}

type applyParams struct {
	Version viewkeeper.Version `json:"version"`
	Reset   bool               `json:"reset"`
	Changes []registry.Apply   `json:"changes"`
	Now     []viewkeeper.Name  `json:"now,omitempty"`
}

// past is a deadline that is over.
var past = time.Unix(1, 0)

// handle runs a call that has one reply.
func (c *child) handle(ctx context.Context, request call) (any, error) {
	switch request.method {
	case methodOpen:
		return withParams(request, func(p openParams) (any, error) { return nil, c.open(ctx, p) })
	case methodFault:
		return withParams(request, func(p faultParams) (any, error) { return nil, c.fault(p) })
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	if request.method == methodApply || request.method == methodRestore {
		return withParams(request, func(p applyParams) (any, error) { return c.apply(ctx, request.method, p) })
	}
	if c.planner == nil {
		return nil, errNotOpen
	}
	c.planning.Lock()
	defer c.planning.Unlock()
	switch request.method {
	case methodDescribe:
		return c.planner.Describe(ctx)
	case methodParse:
		return withParams(request, func(p parseParams) (any, error) { return c.planner.Parse(ctx, p.Queries) })
	case methodBind:
		return withParams(request, func(p bindParams) (any, error) { return c.bind(ctx, p) })
	case methodReset:
		return nil, c.planner.Reset(ctx)
	case methodMerge:
		return withParams(request, func(p mergeParams) (any, error) { return mergeTwice(ctx, c.planner, p) })
	}
	return nil, fmt.Errorf("engine: no method %q", request.method)
}

// bind ends the trial that is open, if this call says how it ended, and goes on with
// the call's own.
func (c *child) bind(ctx context.Context, p bindParams) (any, error) {
	for _, end := range p.Ended {
		if end.Trial != c.trial {
			continue
		}
		if err := c.planner.Settle(ctx, end.Keep); err != nil {
			return nil, err
		}
	}
	c.trial = p.Trial
	return c.planner.Bind(ctx, p.Stubs, p.Queries)
}

// apply runs the two methods that change a server's views.
func (c *child) apply(ctx context.Context, method string, p applyParams) (any, error) {
	noted := len(p.Changes) > makeLater && (p.Reset || method == methodRestore)
	for _, change := range p.Changes {
		if !noted || slices.Contains(p.Now, change.Name) {
			c.faultIn(change.Query)
		}
	}
	switch {
	case c.server == nil:
		return nil, errNotOpen
	case method == methodApply:
		return nil, c.server.ApplyAll(ctx, p.Version, p.Reset, p.Changes, p.Now)
	}
	return c.server.Restore(ctx, p.Version, p.Changes)
}

var errNotOpen = errors.New("engine: not open for this method")

func withParams[P any](request call, f func(P) (any, error)) (any, error) {
	var p P
	if err := json.Unmarshal(request.params, &p); err != nil {
		return nil, fmt.Errorf("engine: the parameters of %q can't be read: %w", request.method, err)
	}
	return f(p)
}

// open makes the child what it is for.
func (c *child) open(ctx context.Context, p openParams) (err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.planner != nil || c.server != nil {
		return errors.New("engine: already open")
	}
	switch p.Role {
	case rolePlanner:
		c.planner, err = openPlanner(ctx, p.Options)
	case roleServer:
		c.server, err = duckdb.OpenServer(ctx, p.Options)
	default:
		err = fmt.Errorf("engine: no role %q", p.Role)
	}
	return err
}

// query runs a query and writes its answer as it comes. An error is one of the
// connection, which is of no more use then.
func (c *child) query(ctx context.Context, conn *net.UnixConn, params json.RawMessage) error {
	c.mu.RLock()
	defer c.mu.RUnlock()
	out := &frameWriter{w: conn}
	fail := func(err error) error { return errors.Join(out.json(frameError, toWire(err)), out.Flush()) }
	var request duckdb.QueryRequest
	if err := json.Unmarshal(params, &request); err != nil {
		return fail(err)
	}
	if c.server == nil {
		return fail(errNotOpen)
	}
	result, err := c.server.Query(ctx, request)
	if err != nil {
		return fail(err)
	}
	// The keeper does not wait for the engine to tidy up.
	defer result.Body.Close()
	if err := out.json(frameReply, result); err != nil {
		return fail(err)
	}
	if _, err := io.Copy(out, result.Body); err != nil {
		return fail(err)
	}
	return errors.Join(out.frame(frameEnd, nil), out.Flush())
}
