package duckdb

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Server answers queries through the real views. It is a [registry.Applier].
//
// Apply and Query may be called at the same time, from anywhere. A query runs in a
// transaction and on a connection of its own: it sees the views of one commit from
// its first row to its last, whatever is applied meanwhile, and leaves nothing
// behind.
type Server struct {
	instance *instance
	gate     *queryGate
	keywords map[string]bool // every keyword of the engine, reserved or not

	apply applied // what the views are; see Apply

	mu     sync.Mutex
	open   map[*body]struct{} // answers that are not finished
	closed bool
}

var _ registry.Applier = (*Server)(nil)

// QueryRequest is one query.
type QueryRequest struct {
	// SQL is one SELECT in any of its forms (FROM first, VALUES, TABLE, WITH ...),
	// SHOW, DESCRIBE, SUMMARIZE or EXPLAIN.
	SQL string `json:"sql"`
	// Timeout bounds the query from its start to its last row read, 0 for no bound
	// but the context's.
	Timeout time.Duration `json:"timeout,omitempty"`
	// VK holds the rows of the vk tables that [References] gave for SQL: a JSON array
	// of objects each, see [SystemTable].
	VK map[string]json.RawMessage `json:"vk,omitempty"`
}

// Result is the answer to a query.
type Result struct {
	// Version is the version that the query sees.
	Version viewkeeper.Version `json:"version"`
	// Columns are the output columns with the engine's own types.
	Columns []viewkeeper.Column `json:"columns"`
	// Body is an Arrow IPC stream. It ends with io.EOF after the stream's own end, and
	// with the query's error when that came in the middle: never with io.EOF then.
	// Close ends the query, at any point and from any goroutine; it must be called.
	Body io.ReadCloser `json:"-"`
}

// ErrClosed is returned when the server was closed before or during a call.
var ErrClosed = errors.New("duckdb: the engine is closed")

// OpenServer opens an engine of its own that holds the base and no definition, at
// version 0.
func OpenServer(ctx context.Context, opts Options) (*Server, error) {
	i, err := openInstance(ctx, opts)
	if err != nil {
		return nil, err
	}
	s := &Server{instance: i, keywords: map[string]bool{}, open: map[*body]struct{}{}}
	if err := s.prime(ctx, opts); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

func (s *Server) prime(ctx context.Context, opts Options) error {
	c, err := s.instance.connect()
	if err != nil {
		return err
	}
	defer c.close()
	if err := createSystem(ctx, c); err != nil {
		return err
	}
	rows, err := c.query(ctx, "SELECT keyword_name FROM duckdb_keywords()")
	if err != nil {
		return err
	}
	for _, row := range rows {
		s.keywords[row[0]] = true
	}
	if s.gate, err = openQueryGate(ctx, s.instance, opts); err != nil {
		return err
	}
	return s.apply.open(ctx, s.instance, s.gate, opts.MakeLater)
}

// References is the function of that name, for callers that hold an interface.
func (s *Server) References(sql string) []string { return References(sql) }

// Close ends every query that is open, and the engine.
func (s *Server) Close() error {
	s.mu.Lock()
	s.closed = true
	open := s.open
	s.open = nil
	s.mu.Unlock()
	for b := range open {
		b.abort(ErrClosed)
	}
	if s.gate != nil {
		s.gate.close()
	}
	s.apply.close()
	s.instance.close()
	return nil
}

// enter counts an answer as open, or says that the server is closed.
func (s *Server) enter(b *body) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return ErrClosed
	}
	s.open[b] = struct{}{}
	return nil
}

func (s *Server) leave(b *body) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, b)
}
