package duckdb

import (
	"context"
	"errors"
	"strings"

	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Query starts a query and returns when its first row, or its end, is known. ctx
// and the request's timeout bound the whole answer, its body included.
//
// The error is a *[registry.PlanError] when the query is at fault, with its place
// in the text as submitted: code NOT_ONE_QUERY for anything but one query (DDL goes
// to statements), NOT_ALLOWED and COMPLEXITY from the gate, BIND from the planner,
// [CodeExecution] from a query that failed as it ran, [CodeMemory] from one that
// needed more memory than the engine may use. It is the context's error when that
// or the timeout was over, [ErrClosed] when the server was closed, and a
// *[registry.LostError] when the engine found itself broken.
func (s *Server) Query(ctx context.Context, req QueryRequest) (*Result, error) {
	if err := checkSystem(req.VK); err != nil {
		return nil, err
	}
	b, err := s.newBody(ctx, req.Timeout)
	if err != nil {
		return nil, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	result, err := b.run(req)
	if err != nil {
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
		err = b.query.failed(err)
		b.releaseLocked(err)
		return nil, err
	}
	return result, nil
}

// run does everything up to the first row. mu is held.
func (b *body) run(req QueryRequest) (*Result, error) {
	ctx := b.ctx
	var err error
	if b.query, err = b.server.gate.check(ctx, req.SQL); err != nil {
		return nil, err
	}
	if b.conn, err = b.server.instance.connect(); err != nil {
		return nil, err
	}
	at, err := b.server.apply.begin(ctx, b.conn, b.query)
	if err != nil {
		return nil, err
	}
	if err := insertSystem(ctx, b.conn, req.VK); err != nil {
		return nil, err
	}
	if b.stmt, err = b.conn.prepare(ctx, b.query.text); err != nil {
		return nil, err
	}
	// The gate has read the text already; this is the engine's own word on it.
	if kind := b.stmt.kind(); kind != bindings.StatementTypeSelect && kind != bindings.StatementTypeExplain {
		return nil, planErrorf(viewkeeper.CodeNotOneQuery, 0, "this is not a query; %s", notHere)
	}
	if bindings.NParams(b.stmt.handle) != 0 {
		return nil, planErrorf(viewkeeper.CodeNotAllowed, -1, "parameters are left in; write their values")
	}
	if err := b.conn.during(ctx, b.execute); err != nil {
		return nil, err
	}
	columns, err := b.start()
	if err != nil {
		return nil, err
	}
	return &Result{Version: at.version, Columns: columns, Body: b}, nil
}

// execute runs the statement until its first chunk is there. A streaming result
// is never whole in memory; the driver's ordinary one is, outside memory_limit.
func (b *body) execute() error {
	var pending bindings.PendingResult
	defer bindings.DestroyPending(&pending)
	if bindings.PendingPreparedStreaming(b.stmt.handle, &pending) == bindings.StateError {
		return parseEngineError(bindings.PendingError(pending))
	}
	if bindings.ExecutePending(pending, &b.result) == bindings.StateError {
		return parseEngineError(bindings.ResultError(&b.result))
	}
	return nil
}

// The codes of queries that fail as they run, beside those of a [registry.PlanError].
const (
	// CodeExecution is a value that an operation can't take (a cast, a division, an
	// overflow), a file that can't be read, and the like.
	CodeExecution viewkeeper.Code = "EXECUTION"
	// CodeMemory is a query that needs more memory than the engine may use.
	CodeMemory viewkeeper.Code = "OUT_OF_MEMORY"
)

// failed turns the engine's error into one for the person who wrote the query, with
// the place in what was submitted. Others stay as they are.
func (q *checkedQuery) failed(err error) error {
	var engine *engineError
	if q == nil || !errors.As(err, &engine) {
		return err
	}
	switch engine.kind() {
	case "fatal", "internal":
		return &registry.LostError{Detail: engine.Type + " error: " + tidy(engine.Message)}
	case "outofmemory":
		return planErrorf(CodeMemory, -1, "the query needs more memory than the engine may use; read less, or aggregate earlier (%s)", tidy(engine.Message))
	case "parser", "binder", "catalog", "permission":
		refusal, err := q.walker.refusal(engine, q.source)
		if err != nil {
			return err
		}
		return q.shift(refusal)
	}
	message := q.walker.gate.lake.hide(tidy(engine.Message))
	return q.shift(planErrorf(CodeExecution, q.source(engine.Position), "%s error: %s", engine.Type, message))
}

// kind is the error's type for a comparison: the engine spells some in several ways.
func (e *engineError) kind() string {
	return viewkeeper.Fold(strings.ReplaceAll(e.Type, " ", ""))
}
