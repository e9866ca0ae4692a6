package duckdb

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// parquetTypes are the types that come back from a Parquet file as another one, as
// measured: a test writes each type to a file and reads it back.
var parquetTypes = map[string]string{}

// afterParquet gives the columns as a Parquet file gives them back.
func afterParquet(columns []viewkeeper.Column) []viewkeeper.Column {
	out := make([]viewkeeper.Column, len(columns))
	for i, c := range columns {
		out[i] = viewkeeper.Column{Name: c.Name, Type: parquetType(c.Type)}
	}
	return out
}

func parquetType(t string) string {
	if r, ok := parquetTypes[t]; ok {
		return r
	}
	_ = strings.TrimSpace
	return t
}
