package duckdb

import (
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// parquetTypes are the types that come back from a Parquet file as another one, as
// measured: TestParquetTypes writes each to a file and reads it back.
var parquetTypes = map[string]string{
	"HUGEINT": "DOUBLE", "UHUGEINT": "DOUBLE", "TIMESTAMP_S": "TIMESTAMP", "TIMESTAMP_MS": "TIMESTAMP",
	"BIT": "VARCHAR", "BIGNUM": "VARCHAR", "GEOMETRY": "BLOB", untypedName: "INTEGER",
}

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
	if element, _, ok := listType(t); ok {
		return parquetType(element) + "[]" // the size of an array is lost
	}
	if strings.HasPrefix(t, "ENUM(") {
		return "VARCHAR"
	}
	if inside, ok := constructor(t, "MAP"); ok {
		return "MAP(" + strings.Join(each(inside, parquetType), ", ") + ")"
	}
	if inside, ok := constructor(t, "STRUCT"); ok {
		return "STRUCT(" + strings.Join(each(inside, func(f string) string {
			name, ft := fieldOf(f)
			if name == "" {
				return parquetType(ft)
			}
			return name + " " + parquetType(ft)
		}), ", ") + ")"
	}
	if inside, ok := constructor(t, "UNION"); ok {
		// Its tag comes first and has no name, and then none of the others is shown.
		return "STRUCT(UTINYINT, " + strings.Join(each(inside, func(f string) string {
			_, ft := fieldOf(f)
			return parquetType(ft)
		}), ", ") + ")"
	}
	return t
}

func each(in []string, f func(string) string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = f(s)
	}
	return out
}
