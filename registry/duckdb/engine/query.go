package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
)

// Query is that of [duckdb.Server]; the body comes over the query's connection.
//
// A query that is lost with its engine, or finds no memory left in it, before it gave
// a row is tried again, alone in an engine of its own: what took the engine or its
// memory may have been somebody else's. When it is lost again, or later, the error, or
// the body's, is a *[registry.LostError]: the query can be asked again, on the engine
// that is being started. The engine ends a query at its timeout; one that does not end then is
// killed after the grace, and so is one that does not end after Close, or after ctx.
func (s *Server) Query(ctx context.Context, req duckdb.QueryRequest) (*duckdb.Result, error) {
	cancel := context.CancelFunc(func() {})
	if req.Timeout > 0 {
		// The wait for an engine counts.
		ctx, cancel = context.WithTimeout(ctx, req.Timeout)
	}
	result, err := s.queryTwice(ctx, req, cancel)
	if err != nil {
		cancel()
		return nil, err
	}
	return result, nil
}

// queryTwice calls release at the end of a body that it gives.
func (s *Server) queryTwice(ctx context.Context, req duckdb.QueryRequest, release func()) (*duckdb.Result, error) {
	p, err := s.supervisor.acquire(ctx)
	if err != nil {
		return nil, err
	}
	result, err := s.queryOn(ctx, p, req, release)
	if ctx.Err() != nil || registry.AsLost(err) == nil && !outOfMemory(err) {
		return result, err
	}
	s.supervisor.cfg.Log.Info("a query that was lost with its engine, or found no memory in it, is tried again, alone", "detail", err.Error())
	p, put, err := s.alone.take(ctx)
	if err != nil {
		return nil, err
	}
	result, err = s.queryOn(ctx, p, req, func() { put(); release() })
	if err == nil {
		return result, nil
	}
	put()
	if second := registry.AsLost(err); second != nil {
		return nil, &registry.LostError{Timeout: second.Timeout, Detail: second.Detail + ", alone in an engine of its own, after the one that it shared was lost too"}
	}
	return nil, err
}

// queryOn asks one child, which the caller has entered. It leaves it when the query
// is over, and calls release at the end of a body that it gives.
func (s *Server) queryOn(ctx context.Context, p *process, req duckdb.QueryRequest, release func()) (*duckdb.Result, error) {
	l, err := s.supervisor.send(ctx, p, methodQuery, req)
	if err != nil {
		p.leave()
		return nil, err
	}
	if s.querySent != nil {
		s.querySent()
	}
	b := &body{
		supervisor: s.supervisor, process: p, ctx: ctx, release: func() {}, closed: make(chan struct{}),
		link: l,
	}
	b.mu.Lock()
	b.stop = context.AfterFunc(ctx, b.end)
	b.mu.Unlock()
	kind, payload, err := readAnswer(b.link.in)
	var result duckdb.Result
	switch {
	case b.ended():
		err = b.endError()
	case err != nil:
		err = b.broken(err)
	case kind == frameError:
		err = b.failed(readError(payload))
	case kind != frameReply:
		err = b.broken(fmt.Errorf("a frame %q instead of a reply", kind))
	default:
		if err = json.Unmarshal(payload, &result); err != nil {
			err = b.broken(fmt.Errorf("a reply that can't be read: %w", err))
			break
		}
		// The rows' first bytes come right behind. Until then nothing is lost that can't
		// be had again.
		if b.readFrame(); b.err != nil && b.err != io.EOF {
			err = b.err
		} else if !b.given(release) {
			err = b.endError()
		}
	}
	if err != nil {
		b.Close()
		return nil, err
	}
	result.Body = b
	return &result, nil
}

// given notes that the body is the caller's from now on, and what to call at its
// end, unless that has come already.
func (b *body) given(release func()) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ending {
		return false
	}
	b.release = release
	return true
}

const (
	// headBuffer is enough for a whole short answer, and for the headers of a long one
	// whose rows are read past it, straight to where they go.
	headBuffer = 16 << 10
	// copyBuffer holds what a socket has ready at most, which is about a batch.
	copyBuffer = 256 << 10
)

// body is the stream of a query's answer. Read is for one goroutine; Close may be
// called from any, at any time.
type body struct {
	supervisor *supervisor
	process    *process
	link       *link
	ctx        context.Context

	// Of Read alone.
	left int   // bytes of the data frame that are not read yet
	err  error // what Read gives from now on

	closed chan struct{} // closed when the connection is

	mu       sync.Mutex
	release  func()      // called at the end
	stop     func() bool // takes the end of ctx off
	complete bool        // the engine has said its last word
	// ending says that somebody drains the connection: what Read takes from it from
	// then on has holes, and must not be given to anybody.
	ending bool
}

// Read gives the next bytes of the Arrow IPC stream.
func (b *body) Read(p []byte) (int, error) {
	if b.err != nil || len(p) == 0 {
		return 0, b.err
	}
	for b.left == 0 {
		if b.readFrame(); b.err != nil {
			return 0, b.err
		}
	}
	n, err := b.link.in.Read(p[:min(len(p), b.left)])
	b.left -= n
	switch {
	case b.ended():
		b.err = b.endError()
		return 0, b.err
	case err != nil:
		b.err = b.broken(err)
	}
	return n, b.err
}

// readFrame reads the next frame's header, and all of it unless it has rows.
func (b *body) readFrame() {
	kind, n, err := readHeader(b.link.in)
	switch {
	case b.ended():
		b.err = b.endError()
	case err != nil:
		b.err = b.broken(err)
	case kind == frameData:
		b.left = n
	case kind == frameEnd:
		b.finish()
		b.err = io.EOF
	case kind == frameError:
		payload, err := readPayload(b.link.in, n)
		switch {
		case b.ended():
			b.err = b.endError()
		case err != nil:
			b.err = b.broken(err)
		default:
			b.err = b.failed(readError(payload))
		}
	default:
		b.err = b.broken(fmt.Errorf("a frame %q in a stream", kind))
	}
}

// Ready reports whether Read would not wait for the engine. It is for the goroutine
// that reads.
func (b *body) Ready() bool { return b.err != nil || b.link.in.ready() }

// WriteTo writes the rest of the stream, in larger pieces than io.Copy would. A writer
// with a method Flush() error is told to flush before the engine is waited for, so that
// the first rows arrive at once and a long answer in large writes.
func (b *body) WriteTo(w io.Writer) (int64, error) {
	flush, _ := w.(interface{ Flush() error })
	var total int64
	for {
		if flush != nil && total > 0 && !b.Ready() {
			if err := flush.Flush(); err != nil {
				return total, err
			}
		}
		p, err := b.next()
		if len(p) > 0 {
			written, err := w.Write(p)
			total += int64(written)
			if err != nil {
				return total, err
			}
		}
		if err == io.EOF {
			return total, nil
		}
		if err != nil {
			return total, err
		}
	}
}

// next is Read without a copy. What it gives is valid until the next call.
func (b *body) next() ([]byte, error) {
	for b.err == nil && b.left == 0 {
		b.readFrame()
	}
	if b.err != nil {
		return nil, b.err
	}
	if b.left > headBuffer {
		b.link.in.grow(copyBuffer)
	}
	p, err := b.link.in.next(b.left)
	b.left -= len(p)
	switch {
	case b.ended():
		b.err = b.endError()
		return nil, b.err
	case err != nil:
		b.err = b.broken(err)
	}
	return p, b.err
}

// Close ends the query and waits until the engine has let go of it.
func (b *body) Close() error {
	b.end()
	<-b.closed
	return nil
}

// finish notes that the engine has said its last word.
func (b *body) finish() {
	b.mu.Lock()
	b.complete = true
	b.mu.Unlock()
}

// end cancels the query, gives it the grace to end, and kills the engine when it
// has not. It runs once.
func (b *body) end() {
	b.mu.Lock()
	if b.ending {
		b.mu.Unlock()
		return
	}
	b.ending = true
	complete, stop, release := b.complete, b.stop, b.release
	b.mu.Unlock()
	defer close(b.closed)
	defer b.process.leave()
	defer release()
	untouched := stop() // by the end of ctx
	if !complete {
		b.drain()
	}
	b.process.putLink(b.link, untouched && complete)
}

// drain waits for the engine to close the connection, and throws away what still
// comes, also in place of a Read that is under way.
func (b *body) drain() {
	b.supervisor.cancelCall(b.link.conn)
	_, err := io.Copy(io.Discard, b.link.conn)
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		b.process.kill(&registry.LostError{Detail: fmt.Sprintf("killed: a query that was ended did not end within %s", b.supervisor.cfg.Grace)})
	}
}

// failed is the error that the engine gave; its end is the query's.
func (b *body) failed(err error) error {
	b.finish()
	return b.process.note(err)
}

// ended reports whether the query was ended from this side.
func (b *body) ended() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.ending
}

func (b *body) endError() error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	return errReadAfterClose
}

// broken is the error of a connection that ended too early.
func (b *body) broken(cause error) error {
	if err := b.ctx.Err(); err != nil {
		return err
	}
	lost := b.process.lostError(cause)
	if b.supervisor.ctx.Err() != nil {
		return errClosed
	}
	return lost
}

var errReadAfterClose = errors.New("engine: read after Close")
