package duckdb

import (
	"context"
	"iter"
	"strconv"
	"strings"

	"github.com/viewkeeper/viewkeeper"
)

// A column that is never anything but NULL has a type of its own, "NULL", which
// fits everywhere: over SELECT NULL AS a, array_length(a) binds, and over an
// INTEGER it does not. A view keeps that type, but DESCRIBE and the interface of
// prepared statements print INTEGER for it, and a stub made from that would refuse
// what binds over the definition itself. So where a NULL may have come in, the
// query is planned once more with COALESCE(column, 0::UTINYINT) in place of each
// such column: an INTEGER stays one, and a "NULL" becomes UTINYINT.

const untypedName = `"NULL"`

func probeName(i int) string { return "c" + strconv.Itoa(i) }

func isUntyped(columnType string) bool { return strings.Contains(columnType, untypedName) }

// mayBeUntyped reports whether the output of a text could have such a column: it
// writes a NULL other than in IS NULL, an empty list, or calls a function without
// arguments that makes one; or it reads something that has one.
func (p *Planner) mayBeUntyped(text string, tokens []token, columns []viewkeeper.Column, reads iter.Seq[viewkeeper.Name]) bool {
	some := false
	for _, c := range columns {
		some = some || hasInteger(c.Type)
	}
	if !some {
		return false
	}
	if p.untypedBase {
		return true
	}
	for n := range reads {
		if st := p.scratch.stubs[n]; st != nil && st.untyped {
			return true
		}
	}
	for i, t := range tokens {
		previous := func(word string) bool { return i > 0 && tokens[i-1].is(text, word) }
		next := func(word string) bool { return i+1 < len(tokens) && tokens[i+1].is(text, word) }
		switch {
		case t.is(text, "null") && !previous("is") && !previous("not"):
			return true
		case t.is(text, "[") && next("]"), t.is(text, "{") && next("}"):
			return true
		case t.is(text, "(") && next(")") && (previous("map") || previous("list_value") || previous("list_pack")):
			return true
		}
		if name, ok := t.name(text); ok && p.untypedMacros[viewkeeper.Fold(name)] {
			return true
		}
	}
	return false
}

// findUntyped puts "NULL" in the types of the columns that have it.
func findUntyped(ctx context.Context, c *conn, text string, columns []viewkeeper.Column) error {
	var b strings.Builder
	var probed []int
	b.WriteString("SELECT ")
	for i, c := range columns {
		if !hasInteger(c.Type) {
			continue
		}
		if len(probed) > 0 {
			b.WriteString(", ")
		}
		b.WriteString("COALESCE(" + probeName(i) + ", " + nullOf(asProbe(c.Type)) + ")")
		probed = append(probed, i)
	}
	b.WriteString(" FROM (" + text + "\n) AS probe(")
	for i := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(probeName(i))
	}
	b.WriteString(")")
	types, err := typesOf(ctx, c, b.String())
	if err != nil {
		return err
	}
	for k, i := range probed {
		if k < len(types) {
			columns[i].Type = fromProbe(columns[i].Type, types[k])
		}
	}
	return nil
}

// typesOf plans a query of its own making for the types of its columns.
func typesOf(ctx context.Context, c *conn, text string) ([]string, error) {
	st, err := c.prepare(ctx, text)
	if err != nil {
		return nil, err
	}
	defer st.close()
	columns, exact := st.columns()
	if !exact {
		if columns, err = describe(ctx, c, text); err != nil {
			return nil, err
		}
	}
	out := make([]string, len(columns))
	for i, c := range columns {
		out[i] = c.Type
	}
	return out, nil
}

func hasInteger(columnType string) bool { return asProbe(columnType) != columnType }

// asProbe writes UTINYINT for every INTEGER in a type.
func asProbe(columnType string) string {
	return replaceWords(columnType, func(_ int, word string) string {
		if word == "INTEGER" {
			return "UTINYINT"
		}
		return word
	})
}

// fromProbe writes "NULL" for every INTEGER in a type that the probe found to be a
// UTINYINT.
func fromProbe(columnType, probed string) string {
	found := lex(probed)
	if len(found) != len(lex(columnType)) {
		return columnType
	}
	return replaceWords(columnType, func(i int, word string) string {
		if word == "INTEGER" && found[i].text(probed) == "UTINYINT" {
			return untypedName
		}
		return word
	})
}

// replaceWords replaces the unquoted words of a type.
func replaceWords(columnType string, f func(i int, word string) string) string {
	var b strings.Builder
	done := 0
	for i, t := range lex(columnType) {
		if t.kind == tokenWord {
			b.WriteString(columnType[done:t.at])
			b.WriteString(f(i, t.text(columnType)))
			done = t.end
		}
	}
	b.WriteString(columnType[done:])
	return b.String()
}
