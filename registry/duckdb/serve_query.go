package duckdb

import (
	"context"
	"errors"

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
		err = queryError(err)
		b.releaseLocked(err)
		return nil, err
	}
	return result, nil
}

// run does everything up to the first row. mu is held.
func (b *body) run(req QueryRequest) (*Result, error) {
	ctx := b.ctx
	text, err := b.server.gate.check(ctx, req.SQL)
	if err != nil {
		return nil, err
	}
	if b.conn, err = b.server.instance.connect(); err != nil {
		return nil, err
	}
	if err := b.conn.exec(ctx, "BEGIN"); err != nil {
		return nil, err
	}
	at, err := readApplied(ctx, b.conn)
	if err != nil {
		return nil, err
	}
	if err := insertSystem(ctx, b.conn, req.VK); err != nil {
		return nil, err
	}
	if b.stmt, err = b.conn.prepare(ctx, text); err != nil {
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
		return nil, planErrorf(CodeExecution, -1, "%v", err)
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

// queryError turns the engine's error into one for the person who wrote the query.
// Others stay as they are.
func queryError(err error) error {
	var engine *engineError
	if !errors.As(err, &engine) {
		return err
	}
	switch engine.Type {
	case "FATAL", "Fatal", "INTERNAL", "Internal":
		return &registry.LostError{Detail: engine.Type + " error: " + tidy(engine.Message)}
	}
	e := planErrorf(CodeExecution, engine.Position, "%s error: %s", engine.Type, tidy(engine.Message))
	switch engine.Type {
	case "Parser":
		e.Code = viewkeeper.CodeSyntax
	case "Binder", "Catalog":
		e.Code, e.Message = viewkeeper.CodeBind, tidy(engine.Message)
	case "Out of Memory":
		e.Code = CodeMemory
		e.Message = "the query needs more memory than the engine may use; read less, or aggregate earlier (" + tidy(engine.Message) + ")"
	}
	return e
}
