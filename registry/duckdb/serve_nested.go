package duckdb

import (
	"math"

	bindings "github.com/duckdb/duckdb-go-bindings"
)

// listEntry is where a list's elements lie in the child vector.
type listEntry struct{ offset, length uint64 }

// appendNested adds rows of a LIST, MAP, ARRAY, STRUCT or UNION; their validity
// is already there.
func (c *column) appendNested(v *vector, from, to int) error {
	switch c.typ.id {
	case bindings.TypeStruct:
		return c.appendMembers(v, from, to)
	case bindings.TypeUnion:
		return c.appendUnions(v, from, to)
	case bindings.TypeArray:
		size := c.typ.size
		return c.eachRun(v, from, to, func(a, b int, valid bool) error {
			if !valid {
				c.children[0].appendNulls((b - a) * size)
				return nil
			}
			return c.children[0].append(&v.children[0], a*size, b*size)
		})
	default:
		return c.appendLists(v, from, to)
	}
}

// appendLists copies the elements of each list. Lists that lie one behind the
// other, as they nearly always do, are copied at once.
func (c *column) appendLists(v *vector, from, to int) error {
	child := c.children[0]
	end := child.rows
	var start, stop uint64 // the elements not copied yet
	for row := from; row < to; row++ {
		if v.isValid(row) {
			e := valueAt[listEntry](v.data, row)
			if e.length > 0 && e.offset != stop {
				if err := child.append(&v.children[0], int(start), int(stop)); err != nil {
					return err
				}
				start = e.offset
			}
			if e.length > 0 {
				stop = e.offset + e.length
			}
			end += int(e.length)
		}
		if end > math.MaxInt32 {
			return errBatchTooLarge
		}
		c.offsets = append(c.offsets, int32(end))
	}
	return child.append(&v.children[0], int(start), int(stop))
}

func (c *column) appendMembers(v *vector, from, to int) error {
	return c.eachRun(v, from, to, func(a, b int, valid bool) error {
		for i, child := range c.children {
			if !valid {
				child.appendNulls(b - a)
			} else if err := child.append(&v.children[i], a, b); err != nil {
				return err
			}
		}
		return nil
	})
}

// appendUnions adds to each member either the row's value or a NULL.
func (c *column) appendUnions(v *vector, from, to int) error {
	for row := from; row < to; row++ {
		tag := -1
		if v.isValid(row) {
			tag = int(valueAt[uint8](v.data, row))
		}
		c.data = append(c.data, byte(max(tag, 0)))
		for i, child := range c.children {
			if i != tag {
				child.appendNulls(1)
			} else if err := child.append(&v.children[i], row, row+1); err != nil {
				return err
			}
		}
	}
	return nil
}

// eachRun calls f for each run of rows that are all valid or all NULL.
func (c *column) eachRun(v *vector, from, to int, f func(a, b int, valid bool) error) error {
	if v.valid == nil {
		return f(from, to, true)
	}
	for a := from; a < to; {
		valid, b := v.isValid(a), a+1
		for b < to && v.isValid(b) == valid {
			b++
		}
		if err := f(a, b, valid); err != nil {
			return err
		}
		a = b
	}
	return nil
}
