//go:build !duckdb_arrow

package main

import (
	"context"
	"errors"
	"io"
)

// Arrow needs a part of the bindings that only the tag duckdb_arrow builds.
func (b *Bare) Arrow(context.Context, string, io.Writer) (answer, error) {
	return answer{}, errors.New("built without the tag duckdb_arrow; run `make bench`")
}
