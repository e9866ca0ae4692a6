//go:build duckdb_arrow

package main

import (
	"context"
	"errors"
	"io"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/ipc"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// Arrow runs a query and writes an Arrow stream, converted by DuckDB itself.
func (b *Bare) Arrow(ctx context.Context, sql string, w io.Writer) (answer, error) {
	var options bindings.ArrowOptions
	bindings.ConnectionGetArrowOptions(b.conn, &options)
	defer bindings.DestroyArrowOptions(&options)
	var schema *arrow.Schema
	var writer *ipc.Writer
	got, err := b.stream(ctx, sql, func(res *bindings.Result, chunk bindings.DataChunk) error {
		if writer == nil {
			var err error
			if schema, err = arrowSchema(options, res); err != nil {
				return err
			}
			writer = ipc.NewWriter(w, ipc.WithSchema(schema))
		}
		batch, failed := bindings.DataChunkToArrowArray(options, schema, chunk)
		defer bindings.DestroyErrorData(&failed)
		if bindings.ErrorDataHasError(failed) {
			return errors.New(bindings.ErrorDataMessage(failed))
		}
		defer batch.Release()
		return writer.Write(batch)
	})
	if err == nil && writer != nil {
		err = writer.Close()
	}
	return got, err
}

func arrowSchema(options bindings.ArrowOptions, res *bindings.Result) (*arrow.Schema, error) {
	var types []bindings.LogicalType
	var names []string
	for i := range bindings.ColumnCount(res) {
		types = append(types, bindings.ColumnLogicalType(res, i))
		names = append(names, bindings.ColumnName(res, i))
	}
	schema, failed := bindings.NewArrowSchema(options, types, names)
	defer bindings.DestroyErrorData(&failed)
	for i := range types {
		bindings.DestroyLogicalType(&types[i])
	}
	if bindings.ErrorDataHasError(failed) {
		return nil, errors.New(bindings.ErrorDataMessage(failed))
	}
	return schema, nil
}
