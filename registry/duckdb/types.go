package duckdb

import (
	"context"
	"fmt"
	"strings"

	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/viewkeeper/viewkeeper"
)

// typeNames are the types that are fully told by their id, as DESCRIBE prints them.
var typeNames = map[bindings.Type]string{
	bindings.TypeBoolean: "BOOLEAN", bindings.TypeTinyInt: "TINYINT", bindings.TypeSmallInt: "SMALLINT",
	bindings.TypeInteger: "INTEGER", bindings.TypeBigInt: "BIGINT", bindings.TypeUTinyInt: "UTINYINT",
	bindings.TypeUSmallInt: "USMALLINT", bindings.TypeUInteger: "UINTEGER", bindings.TypeUBigInt: "UBIGINT",
	bindings.TypeFloat: "FLOAT", bindings.TypeDouble: "DOUBLE", bindings.TypeTimestamp: "TIMESTAMP",
	bindings.TypeDate: "DATE", bindings.TypeTime: "TIME", bindings.TypeInterval: "INTERVAL",
	bindings.TypeHugeInt: "HUGEINT", bindings.TypeUHugeInt: "UHUGEINT", bindings.TypeVarchar: "VARCHAR",
	bindings.TypeBlob: "BLOB", bindings.TypeTimestampS: "TIMESTAMP_S", bindings.TypeTimestampMS: "TIMESTAMP_MS",
	bindings.TypeTimestampNS: "TIMESTAMP_NS", bindings.TypeUUID: "UUID", bindings.TypeBit: "BIT",
	bindings.TypeTimeTZ: "TIME WITH TIME ZONE", bindings.TypeTimestampTZ: "TIMESTAMP WITH TIME ZONE",
}

// typeName prints a type as DESCRIBE does, or gives false when only DESCRIBE can:
// names within a type are quoted by rules of the engine's own.
func typeName(t bindings.LogicalType) (string, bool) {
	alias := bindings.LogicalTypeGetAlias(t)
	if alias != "" {
		return alias, alias == "JSON"
	}
	id := bindings.GetTypeId(t)
	if name, ok := typeNames[id]; ok {
		return name, true
	}
	inner := func(t bindings.LogicalType, format string, args ...any) (string, bool) {
		defer bindings.DestroyLogicalType(&t)
		name, ok := typeName(t)
		return name + fmt.Sprintf(format, args...), ok
	}
	switch id {
	case bindings.TypeDecimal:
		return fmt.Sprintf("DECIMAL(%d,%d)", bindings.DecimalWidth(t), bindings.DecimalScale(t)), true
	case bindings.TypeList:
		return inner(bindings.ListTypeChildType(t), "[]")
	case bindings.TypeArray:
		return inner(bindings.ArrayTypeChildType(t), "[%d]", bindings.ArrayTypeArraySize(t))
	}
	return "", false
}

// columns gives the columns of a prepared query, in its own names. exact is false
// when a type's name needs DESCRIBE.
func (s *stmt) columns() (columns []viewkeeper.Column, exact bool) {
	n := bindings.PreparedStatementColumnCount(s.handle)
	columns, exact = make([]viewkeeper.Column, n), true
	for i := range n {
		t := bindings.PreparedStatementColumnLogicalType(s.handle, i)
		name, ok := typeName(t)
		bindings.DestroyLogicalType(&t)
		exact = exact && ok
		columns[i] = viewkeeper.Column{Name: bindings.PreparedStatementColumnName(s.handle, i), Type: name}
	}
	return columns, exact
}

// describe gives the columns of a query as DESCRIBE prints them.
func describe(ctx context.Context, c *conn, query string) ([]viewkeeper.Column, error) {
	rows, err := c.query(ctx, "DESCRIBE "+query)
	if err != nil {
		return nil, err
	}
	columns := make([]viewkeeper.Column, len(rows))
	for i, r := range rows {
		columns[i] = viewkeeper.Column{Name: r[0], Type: r[1]}
	}
	return columns, nil
}

// uniqueNames numbers repeated names as the engine does for the columns of a view.
func uniqueNames(columns []viewkeeper.Column) {
	seen := map[string]int{}
	for i := range columns {
		name := columns[i].Name
		low := viewkeeper.Fold(name)
		if seen[low] == 0 {
			seen[low] = 1
			continue
		}
		for {
			numbered := fmt.Sprintf("%s_%d", name, seen[low])
			if seen[viewkeeper.Fold(numbered)] == 0 {
				columns[i].Name = numbered
				seen[viewkeeper.Fold(numbered)] = 1
				break
			}
			seen[low]++
		}
	}
}

// emptyRelation gives a query of no rows with these columns.
func emptyRelation(columns []viewkeeper.Column) string {
	var b strings.Builder
	b.WriteString("SELECT ")
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(nullOf(c.Type))
		b.WriteString(" AS ")
		b.WriteString(viewkeeper.QuoteIdent(c.Name))
	}
	b.WriteString(" WHERE false")
	return b.String()
}

// typeDepth is the nesting of a type as the engine prints it: 1 for INTEGER, 2 for
// INTEGER[] and STRUCT(a INTEGER).
func typeDepth(t string) int {
	if !strings.ContainsAny(t, "([") {
		return 1
	}
	within := []int{0} // the deepest member so far of each type that is open
	depth := 1         // of what was read last
	for _, tok := range lex(t) {
		last := len(within) - 1
		switch {
		case tok.is(t, "("):
			within = append(within, 0)
			depth = 1
		case tok.is(t, ",") || tok.is(t, ")"):
			within[last] = max(within[last], depth)
			depth = 1
			if tok.is(t, ")") && last > 0 {
				depth = within[last] + 1
				within = within[:last]
			}
		case tok.is(t, "["):
			depth++
		}
	}
	return depth
}
