package duckdb

import (
	"math"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// madeRow is a made-up row, whatever columns it is to have: all timestamps of a row are
// equal, as are all numbers and all texts, so that what orders them holds.
type madeRow struct {
	at   string // a time without zone
	text string
	// whole is for integers, wide for those of 64 bits and more, real for the others.
	whole, wide, real string
}

// mergeSamples gives the samples of rows in the order of their weight. In each there
// are equal rows, so that whatever the query groups by there is a group of several.
// None holds a NULL, which could only make a query wrong that is right without.
func mergeSamples() [][]madeRow {
	const day, hour, next = "2013-01-01 00:00:00", "2013-01-01 01:00:00", "2013-01-02 00:00:00"
	ones := func(at, text string) madeRow { return madeRow{at, text, "1", "1", "1"} }
	times := func(n int, r madeRow) []madeRow {
		out := make([]madeRow, n)
		for i := range out {
			out[i] = r
		}
		return out
	}
	spread := func(a, b, c madeRow) []madeRow {
		a.at, b.at, c.at = day, hour, next // two of one partition, one of the next
		return append(append(times(2, a), times(3, b)...), times(2, c)...)
	}
	return [][]madeRow{
		times(2, ones(day, "a")),
		spread(ones("", "a"), ones("", "a"), ones("", "a")),
		spread(ones("", "east"), ones("", "north"), ones("", "south")),
		// Values that differ and grow with the time; shares of a whole; what could be
		// seconds since 1970.
		spread(madeRow{"", "3", "3", "3", "3"}, madeRow{"", "5", "5", "5", "5"}, madeRow{"", "8", "8", "8", "8"}),
		spread(madeRow{"", "a", "1", "1", "0.25"}, madeRow{"", "b", "1", "1", "0.5"}, madeRow{"", "c", "1", "1", "0.75"}),
		spread(madeRow{"", "a", "1", "1700000000", "1700000000"}, madeRow{"", "b", "1", "1700003600", "1700003600"}, madeRow{"", "c", "1", "1700086400", "1700086400"}),
	}
}

// rowsQuery gives a query of the rows, in order.
func rowsQuery(columns []viewkeeper.Column, rows []madeRow) string {
	var b strings.Builder
	for i, r := range rows {
		if i > 0 {
			b.WriteString("\nUNION ALL ")
		}
		b.WriteString("SELECT ")
		for k, c := range columns {
			if k > 0 {
				b.WriteString(", ")
			}
			b.WriteString(r.value(c.Type) + " AS " + viewkeeper.QuoteIdent(c.Name))
		}
	}
	return b.String()
}

// value gives an expression of a type: NULL for a type that it makes no value of.
func (r madeRow) value(t string) string {
	v := ""
	switch kindOf(t) {
	case kindInteger:
		v = r.whole
		if strings.Contains(t, "BIGINT") || strings.Contains(t, "HUGEINT") {
			v = r.wide
		}
	case kindReal:
		v = r.real
	case kindDecimal:
		whole, scale := decimalParts(t)
		switch {
		case scale >= 2 && whole >= len(strings.Split(r.real, ".")[0]):
			v = r.real
		case whole >= 1:
			v = r.whole
		}
	case kindTime:
		v = r.at + "+00"
		if t == "DATE" {
			v, _, _ = strings.Cut(r.at, " ")
		}
	case kindText:
		v = r.text
	case kindBoolean:
		v = "false"
	}
	if v == "" {
		return nullOf(t)
	}
	return "CAST(" + quoteLiteral(v) + " AS " + t + ")"
}

// valueKind is what the values of a type are to the samples.
type valueKind uint8

const (
	kindOther valueKind = iota // not made, not compared
	kindInteger
	kindReal
	kindDecimal
	kindTime
	kindText
	kindBoolean
)

func kindOf(t string) valueKind {
	switch t {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT":
		return kindInteger
	case "FLOAT", "DOUBLE":
		return kindReal
	case "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMP WITH TIME ZONE", "DATE":
		return kindTime
	case "VARCHAR":
		return kindText
	case "BOOLEAN":
		return kindBoolean
	}
	if _, ok := constructor(t, "DECIMAL"); ok {
		return kindDecimal
	}
	return kindOther
}

// decimalParts gives the digits before and behind the point of DECIMAL(p,s).
func decimalParts(t string) (whole, scale int) {
	inside, _ := constructor(t, "DECIMAL")
	if len(inside) != 2 {
		return 0, 0
	}
	width, _ := strconv.Atoi(inside[0])
	scale, _ = strconv.Atoi(inside[1])
	return width - scale, scale
}

// mergedRow is a row that came out: each cell is "NULL", or "=" and the value.
type mergedRow = []string

// difference gives what one result has and the other has not, or nil when they hold
// the same rows, in whatever order.
func (t *mergeTrial) difference(a, b []mergedRow) *registry.Counterexample {
	taken := make([]bool, len(b))
	var left, right mergedRow
next:
	for _, r := range a {
		for k, o := range b {
			if !taken[k] && len(t.differs(r, o)) == 0 {
				taken[k] = true
				continue next
			}
		}
		if left == nil {
			left = r
		}
	}
	// Of the rows that nothing matches, show the one that is nearest to left.
	for k, o := range b {
		if !taken[k] && (right == nil || left != nil && len(t.differs(left, o)) < len(t.differs(left, right))) {
			right = o
		}
	}
	if left == nil && right == nil {
		return nil
	}
	c := &registry.Counterexample{Once: plainCells(left), Twice: plainCells(right)}
	if left != nil && right != nil {
		c.Changed = t.differs(left, right)
	}
	return c
}

// tolerance is how far apart two numbers with a fraction may be that are the same,
// as a part of the larger, or of 1. It is wide: variances are differences of what is
// much larger, and FLOAT has seven digits.
const tolerance = 1e-5

// differs lists the columns in which two rows differ.
func (t *mergeTrial) differs(a, b mergedRow) []int {
	var out []int
	for i, c := range t.columns {
		if a[i] == b[i] {
			continue
		}
		switch kindOf(c.Type) {
		case kindOther:
		case kindReal:
			x, xerr := strconv.ParseFloat(strings.TrimPrefix(a[i], "="), 64)
			y, yerr := strconv.ParseFloat(strings.TrimPrefix(b[i], "="), 64)
			if xerr != nil || yerr != nil || !(math.Abs(x-y) <= tolerance*max(1, math.Abs(x), math.Abs(y))) {
				out = append(out, i)
			}
		default:
			out = append(out, i)
		}
	}
	return out
}

// finite reports whether there is neither NaN nor infinity among the numbers and times.
func (t *mergeTrial) finite(rows []mergedRow) bool {
	for _, r := range rows {
		for i, c := range t.columns {
			switch kindOf(c.Type) {
			case kindReal, kindTime:
				if s := strings.TrimPrefix(strings.ToLower(r[i]), "="); strings.Contains(s, "inf") || s == "nan" || s == "-nan" {
					return false
				}
			}
		}
	}
	return true
}

func plainCells(r mergedRow) []string {
	if r == nil {
		return nil
	}
	out := make([]string, len(r))
	for i, cell := range r {
		out[i] = strings.TrimPrefix(cell, "=")
		if len(out[i]) > 60 {
			out[i] = strings.ToValidUTF8(out[i][:60], "") + "…"
		}
	}
	return out
}
