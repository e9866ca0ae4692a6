package duckdb

import (
	"bytes"
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// A batch is sent when it holds this many bytes or rows, or when its first row is
// this old. The first batch is sent with the first chunk. Between them a batch
// may take twice as many chunks as the one before.
const (
	batchBytes = 256 << 10
	batchRows  = 64 << 10
	batchAge   = 50 * time.Millisecond
)

// body is a running query and its answer as a stream.
//
// It holds a connection, a transaction, and so a snapshot of the engine, until the
// first of: the last row read, an error, Close, the end of its context. The context
// ends it also while nobody reads, since a snapshot keeps memory. Whoever reads
// holds mu, so that nothing is freed under a call into the engine; the end of the
// context interrupts that call, and the call's end lets go of mu.
type body struct {
	server   *Server
	ctx      context.Context
	cancel   context.CancelCauseFunc
	released chan struct{} // closed when the engine holds nothing of it any more

	mu        sync.Mutex
	err       error // what Read gives when out is empty; set once
	query     *checkedQuery
	conn      *conn
	stmt      *stmt
	result    bindings.Result
	types     []*resultType
	gathering []*column
	schema    *arrow.Schema
	writer    *ipc.Writer
	out       bytes.Buffer // encoded, not read yet
	whole     bool         // the engine has given all, and the stream's end is in out or was read
	chunks    int          // most in the next batch

	producer sync.WaitGroup // of WriteTo
}

// newBody starts a query's life; its context ends at the deadline.
func (s *Server) newBody(ctx context.Context, timeout time.Duration) (*body, error) {
	b := &body{server: s, released: make(chan struct{}), chunks: 1}
	stop := func() {}
	if timeout > 0 {
		ctx, stop = context.WithTimeout(ctx, timeout)
	}
	b.ctx, b.cancel = context.WithCancelCause(ctx)
	if err := s.enter(b); err != nil {
		b.cancel(err)
		stop()
		return nil, err
	}
	context.AfterFunc(b.ctx, func() {
		stop()
		b.mu.Lock()
		defer b.mu.Unlock()
		b.releaseLocked(context.Cause(b.ctx))
	})
	return b, nil
}

// Read gives the next bytes of the stream.
func (b *body) Read(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for b.out.Len() == 0 {
		if b.err != nil {
			return 0, b.err
		}
		b.fillLocked()
	}
	return b.out.Read(p)
}

// Close ends the query and waits until the engine holds nothing of it.
func (b *body) Close() error {
	b.abort(errBodyClosed)
	return nil
}

var errBodyClosed = errors.New("duckdb: read after Close")

// abort ends the query for a reason.
func (b *body) abort(reason error) {
	b.cancel(reason)
	<-b.released
	b.producer.Wait()
}

// releaseLocked gives everything back; readers get err from then on. What is
// encoded already is dropped unless the stream came to its end.
func (b *body) releaseLocked(err error) {
	if b.err != nil {
		return
	}
	b.err = err
	if !errors.Is(err, io.EOF) {
		b.out.Reset()
	}
	bindings.DestroyResult(&b.result)
	if b.stmt != nil {
		b.stmt.close()
	}
	if b.conn != nil {
		if !b.whole {
			// The engine still works for a half-read result. This ends that first, and then
			// the transaction; closing the connection alone would begin with the transaction.
			_ = b.conn.script(context.Background(), "ROLLBACK")
		}
		b.conn.close()
	}
	b.server.leave(b)
	close(b.released)
	b.cancel(err)
}

// start takes the running result and works out its shape. What can't be sent is a
// refusal.
func (b *body) start() ([]viewkeeper.Column, error) {
	var columns []viewkeeper.Column
	var fields []arrow.Field
	for i := range bindings.ColumnCount(&b.result) {
		name := bindings.ColumnName(&b.result, i)
		t, err := describeType(bindings.ColumnLogicalType(&b.result, i), b.server.keywords)
		var deep *registry.PlanError
		switch {
		case errors.As(err, &deep):
			return nil, planErrorf(deep.Code, -1, "column %q: %s", name, deep.Message)
		case err != nil:
			return nil, planErrorf(CodeExecution, -1, "column %q: %v", name, err)
		}
		columns = append(columns, viewkeeper.Column{Name: name, Type: t.name})
		fields = append(fields, arrow.Field{
			Name: name, Type: t.arrow, Nullable: true,
			Metadata: arrow.NewMetadata([]string{TypeMetadata}, []string{t.name}),
		})
		b.types = append(b.types, t)
		b.gathering = append(b.gathering, newColumn(t))
	}
	b.schema = arrow.NewSchema(fields, nil)
	b.writer = ipc.NewWriter(&b.out, ipc.WithSchema(b.schema))
	return columns, nil
}

// fillLocked encodes the next batch, or the end of the stream; behind that it gives
// everything back.
func (b *body) fillLocked() {
	if b.whole {
		b.releaseLocked(io.EOF)
		return
	}
	var more bool
	err := b.conn.during(b.ctx, func() (err error) {
		more, err = b.gather()
		return err
	})
	if err == nil {
		err = b.encode()
	}
	switch {
	case err != nil:
		if cause := context.Cause(b.ctx); cause != nil {
			err = cause
		}
		b.releaseLocked(b.query.failed(err))
	case !more:
		if err := b.writer.Close(); err != nil {
			b.releaseLocked(err)
			return
		}
		b.whole = true
	}
}

// gather fetches chunks until they make a batch, and tells whether more may come.
func (b *body) gather() (more bool, err error) {
	var since time.Time
	for n := 0; n < b.chunks; n++ {
		chunk := bindings.FetchChunk(b.result)
		if chunk.Ptr == nil {
			// The end and an error look the same.
			if msg := bindings.ResultError(&b.result); msg != "" {
				return false, parseEngineError(msg)
			}
			return false, nil
		}
		err := b.append(chunk)
		bindings.DestroyDataChunk(&chunk)
		if err != nil {
			return false, err
		}
		if n == 0 {
			since = time.Now()
		}
		if b.size() >= batchBytes || b.rows() >= batchRows || time.Since(since) > batchAge {
			break
		}
	}
	b.chunks = min(2*b.chunks, batchRows)
	return true, nil
}

// append adds a chunk to the batch.
func (b *body) append(chunk bindings.DataChunk) error {
	rows := int(bindings.DataChunkGetSize(chunk))
	for i, t := range b.types {
		v := readVector(bindings.DataChunkGetVector(chunk, bindings.IdxT(i)), t)
		if err := b.gathering[i].append(&v, 0, rows); err != nil {
			return err
		}
	}
	return nil
}

func (b *body) rows() int {
	if len(b.gathering) == 0 {
		return 0
	}
	return b.gathering[0].rows
}

func (b *body) size() int {
	n := 0
	for _, c := range b.gathering {
		n += c.size()
	}
	return n
}

// encode writes the gathered rows as a record batch.
func (b *body) encode() error {
	rows := b.rows()
	if rows == 0 {
		return nil
	}
	arrays := make([]arrow.Array, len(b.gathering))
	for i, c := range b.gathering {
		data := c.take()
		arrays[i] = array.MakeFromData(data)
		data.Release()
	}
	batch := array.NewRecordBatch(b.schema, arrays, int64(rows))
	err := b.writer.Write(batch)
	batch.Release()
	for i, a := range arrays {
		a.Release()
		b.gathering[i].reset()
	}
	return err
}
