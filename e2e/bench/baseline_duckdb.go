package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Bare is a DuckDB in this process, in memory, with nothing of viewkeeper's around it.
// It is asked through the C interface, as the engine does it: database/sql would make a
// Go value of each field, and be an easier baseline.
type Bare struct {
	db   bindings.Database
	conn bindings.Connection
}

// OpenBare opens one with a memory limit in bytes and as many threads as there are
// cores, which is what a node's engine has.
func OpenBare(memory int64) (*Bare, error) {
	b := &Bare{}
	if bindings.Open("", &b.db) == bindings.StateError {
		return nil, errors.New("bare DuckDB does not open")
	}
	if bindings.Connect(b.db, &b.conn) == bindings.StateError {
		return nil, errors.Join(errors.New("bare DuckDB gives no connection"), b.Close())
	}
	if err := b.Exec(fmt.Sprintf("SET memory_limit = '%dB'", memory)); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// Close ends it; it always gives nil.
func (b *Bare) Close() error {
	bindings.Disconnect(&b.conn)
	bindings.Close(&b.db)
	return nil
}

// Exec runs statements.
func (b *Bare) Exec(sql string) error {
	var res bindings.Result
	defer bindings.DestroyResult(&res)
	if bindings.Query(b.conn, sql, &res) == bindings.StateError {
		return fmt.Errorf("bare DuckDB: %s", bindings.ResultError(&res))
	}
	return nil
}

// answer is what came of a query, and when.
type answer struct {
	rows  int64
	first time.Duration // until the first rows were there
	all   time.Duration
}

// Query runs a query as a stream, and reads no value.
func (b *Bare) Query(ctx context.Context, sql string) (answer, error) {
	return b.stream(ctx, sql, func(*bindings.Result, bindings.DataChunk) error { return nil })
}

// stream runs a query and gives each of its chunks to take.
func (b *Bare) stream(ctx context.Context, sql string, take func(*bindings.Result, bindings.DataChunk) error) (answer, error) {
	began := time.Now()
	var got answer
	var statement bindings.PreparedStatement
	defer bindings.DestroyPrepare(&statement)
	if bindings.Prepare(b.conn, sql, &statement) == bindings.StateError {
		return got, fmt.Errorf("bare DuckDB: %s", bindings.PrepareError(statement))
	}
	var pending bindings.PendingResult
	defer bindings.DestroyPending(&pending)
	if bindings.PendingPreparedStreaming(statement, &pending) == bindings.StateError {
		return got, fmt.Errorf("bare DuckDB: %s", bindings.PendingError(pending))
	}
	var res bindings.Result
	defer bindings.DestroyResult(&res)
	if bindings.ExecutePending(pending, &res) == bindings.StateError {
		return got, fmt.Errorf("bare DuckDB: %s", bindings.ResultError(&res))
	}
	for ctx.Err() == nil {
		chunk := bindings.FetchChunk(res)
		if got.rows == 0 {
			got.first = time.Since(began)
		}
		if chunk.Ptr == nil {
			break
		}
		got.rows += int64(bindings.DataChunkGetSize(chunk))
		err := take(&res, chunk)
		bindings.DestroyDataChunk(&chunk)
		if err != nil {
			return got, err
		}
	}
	if msg := bindings.ResultError(&res); msg != "" {
		return got, fmt.Errorf("bare DuckDB: %s", msg)
	}
	got.all = time.Since(began)
	return got, ctx.Err()
}
