package duckdb

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// conn is one connection of an instance, straight on the C interface. database/sql
// is not used here: its Prepare runs every statement of a text but the last, and
// its pool hands on transactions that were left aborted.
//
// A conn serves one caller at a time.
type conn struct {
	handle bindings.Connection
	asked  int           // how often the engine was, for tests of what a change costs
	total  *atomic.Int64 // the same of the whole instance
}

// connect opens another connection.
func (i *instance) connect() (*conn, error) {
	c := &conn{total: &i.asked}
	if bindings.Connect(i.handle, &c.handle) == bindings.StateError {
		return nil, errors.New("duckdb: a connection could not be opened")
	}
	return c, nil
}

// close ends the connection and rolls back what it has open.
func (c *conn) close() { bindings.Disconnect(&c.handle) }

// exec runs one statement and drops its result.
func (c *conn) exec(ctx context.Context, text string) error {
	_, err := c.query(ctx, text)
	return err
}

// script runs statements of this package's own making, one after the other, at
// half of what preparing each costs. The first error ends it.
func (c *conn) script(ctx context.Context, text string) error {
	_, err := c.scriptRows(ctx, text)
	return err
}

// scriptRows is script that gives the rows of the last statement, as query does.
func (c *conn) scriptRows(ctx context.Context, text string) ([][]string, error) {
	var res bindings.Result
	defer bindings.DestroyResult(&res)
	c.total.Add(1)
	err := c.during(ctx, func() error {
		if bindings.Query(c.handle, text, &res) == bindings.StateError {
			return parseEngineError(bindings.ResultError(&res))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return readText(&res), nil
}

// query runs one statement and gives all of its rows, every column as text and
// NULL as "". It is for small answers: the columns must be VARCHAR.
func (c *conn) query(ctx context.Context, text string, args ...string) ([][]string, error) {
	st, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	defer st.close()
	return st.query(ctx, args...)
}

// stmt is one prepared statement.
type stmt struct {
	conn   *conn
	handle bindings.PreparedStatement
}

// prepare parses and plans one statement. A text of several statements, or of
// none, is an error and nothing of it runs.
func (c *conn) prepare(ctx context.Context, text string) (*stmt, error) {
	if strings.IndexByte(text, 0) >= 0 {
		return nil, textError("the text holds a NUL byte, where the engine would stop reading")
	}
	var extracted bindings.ExtractedStatements
	count := bindings.ExtractStatements(c.handle, text, &extracted)
	defer bindings.DestroyExtracted(&extracted)
	if count != 1 {
		if msg := bindings.ExtractStatementsError(extracted); msg != "" {
			return nil, parseEngineError(msg)
		}
		return nil, textError(fmt.Sprintf("the text holds %d statements instead of one", count))
	}
	st := &stmt{conn: c}
	c.total.Add(1)
	err := c.during(ctx, func() error {
		if bindings.PrepareExtractedStatement(c.handle, extracted, 0, &st.handle) == bindings.StateError {
			return parseEngineError(bindings.PrepareError(st.handle))
		}
		return nil
	})
	if err != nil {
		st.close()
		return nil, err
	}
	return st, nil
}

func (s *stmt) close() { bindings.DestroyPrepare(&s.handle) }

// kind is the kind of statement, as the engine's parser sees it.
func (s *stmt) kind() bindings.StatementType { return bindings.PreparedStatementType(s.handle) }

// query runs the statement and gives its rows, as conn.query does.
func (s *stmt) query(ctx context.Context, args ...string) ([][]string, error) {
	for i, arg := range args {
		if bindings.BindVarcharLength(s.handle, bindings.IdxT(i+1), arg, bindings.IdxT(len(arg))) == bindings.StateError {
			return nil, fmt.Errorf("duckdb: parameter %d could not be bound", i+1)
		}
	}
	var res bindings.Result
	defer bindings.DestroyResult(&res)
	s.conn.total.Add(1)
	err := s.conn.during(ctx, func() error {
		if bindings.ExecutePrepared(s.handle, &res) == bindings.StateError {
			return parseEngineError(bindings.ResultError(&res))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return readText(&res), nil
}

// readText copies a materialised result of VARCHAR columns.
func readText(res *bindings.Result) [][]string {
	width := int(bindings.ColumnCount(res))
	text := make([]bool, width)
	for i := range text {
		text[i] = bindings.ColumnType(res, bindings.IdxT(i)) == bindings.TypeVarchar
	}
	var rows [][]string
	for {
		chunk := bindings.FetchChunk(*res)
		if chunk.Ptr == nil {
			return rows
		}
		n := int(bindings.DataChunkGetSize(chunk))
		start := len(rows)
		for range n {
			rows = append(rows, make([]string, width))
		}
		for col := range width {
			if !text[col] {
				continue
			}
			vec := bindings.DataChunkGetVector(chunk, bindings.IdxT(col))
			valid := bindings.VectorGetValidity(vec)
			data := bindings.VectorGetData(vec)
			for row := range n {
				if valid == nil || bindings.ValidityRowIsValid(valid, bindings.IdxT(row)) {
					rows[start+row][col] = stringAt(data, row)
				}
			}
		}
		bindings.DestroyDataChunk(&chunk)
	}
}

// during runs f, a call into the engine, and interrupts the engine while ctx is
// over. An interrupt before the engine has started is lost, so it is repeated.
// The context's error wins over the engine's own complaint.
func (c *conn) during(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.asked++
	if ctx.Done() == nil {
		return f()
	}
	finished, stopped := make(chan struct{}), make(chan struct{})
	unwatch := context.AfterFunc(ctx, func() {
		defer close(stopped)
		again := time.NewTicker(time.Millisecond)
		defer again.Stop()
		for {
			bindings.Interrupt(c.handle)
			select {
			case <-finished:
				return
			case <-again.C:
			}
		}
	})
	err := f()
	close(finished)
	if !unwatch() {
		<-stopped // an interrupt after this would hit the next statement
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// textError says why a text was not given to the engine.
type textError string

func (e textError) Error() string { return "duckdb: " + string(e) }

// engineError is an error as the engine structures it (errors_as_json).
type engineError struct {
	// Type is "Parser", "Binder", "Catalog", ...
	Type     string
	Message  string
	Position int // in bytes of the statement's text, or -1
	Extra    map[string]string
}

func (e *engineError) Error() string { return e.Type + " Error: " + e.Message }

// parseEngineError reads an error text. Before errors_as_json is set, and from
// the C interface itself, it may be plain text; from the parser, which a text meets
// when it is taken apart into statements, it is "Parser Error: " and the structure.
func parseEngineError(text string) error {
	var fields map[string]any
	if i := strings.Index(text, " Error: {"); i >= 0 && strings.IndexAny(text, "\n{") > i {
		text = text[i+len(" Error: "):]
	}
	if !strings.HasPrefix(text, "{") || json.Unmarshal([]byte(text), &fields) != nil {
		kind, msg, ok := strings.Cut(text, " Error: ")
		if !ok || strings.ContainsRune(kind, '\n') {
			kind, msg = "Engine", text
		}
		return &engineError{Type: kind, Message: msg, Position: -1}
	}
	e := &engineError{Position: -1, Extra: map[string]string{}}
	for k, v := range fields {
		s := fmt.Sprint(v)
		switch k {
		case "exception_type":
			e.Type = s
		case "exception_message":
			e.Message = s
		case "position":
			if _, err := fmt.Sscan(s, &e.Position); err != nil {
				e.Position = -1
			}
		default:
			e.Extra[k] = s
		}
	}
	return e
}
