package rowtext

import (
	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// nested sets c up for the types that hold others, and reports whether a is one.
func (c *column) nested(a arrow.Array) bool {
	switch a := a.(type) {
	case *array.Map: // before ListLike, which it is too
		keys, items := newColumn(a.Keys()), newColumn(a.Items())
		c.bare(func(dst []byte, i int) []byte {
			start, end := a.ValueOffsets(i)
			dst = append(dst, '[')
			for j := int(start); j < int(end); j++ {
				if j > int(start) {
					dst = append(dst, ',')
				}
				dst = keys.appendJSON(append(dst, `{"key":`...), j)
				dst = items.appendJSON(append(dst, `,"value":`...), j)
				dst = append(dst, '}')
			}
			return append(dst, ']')
		})
	case array.ListLike:
		values := newColumn(a.ListValues())
		c.bare(func(dst []byte, i int) []byte {
			start, end := a.ValueOffsets(i)
			dst = append(dst, '[')
			for j := int(start); j < int(end); j++ {
				if j > int(start) {
					dst = append(dst, ',')
				}
				dst = values.appendJSON(dst, j)
			}
			return append(dst, ']')
		})
	case *array.Struct:
		object := newObject(a.DataType().(*arrow.StructType).Fields(), structColumns(a))
		c.bare(object.append)
	case array.Union:
		children := make([]column, a.NumFields())
		for f := range children {
			children[f] = newColumn(a.Field(f))
		}
		value := func(i int) (column, int) {
			child := a.ChildID(i)
			if dense, ok := a.(*array.DenseUnion); ok {
				i = int(dense.ValueOffset(i))
			}
			return children[child], i
		}
		c.json = func(dst []byte, i int) []byte {
			child, j := value(i)
			return child.appendJSON(dst, j)
		}
		c.text = func(dst []byte, i int) []byte {
			child, j := value(i)
			if child.array.IsNull(j) {
				return dst
			}
			return child.text(dst, j)
		}
	default:
		return false
	}
	return true
}

func structColumns(a *array.Struct) []column {
	columns := make([]column, a.NumField())
	for i := range columns {
		columns[i] = newColumn(a.Field(i))
	}
	return columns
}

// object prints the columns of one row as a JSON object.
type object struct {
	keys    [][]byte // `"name":`, escaped
	columns []column
}

func newObject(fields []arrow.Field, columns []column) object {
	o := object{columns: columns}
	for _, f := range fields {
		o.keys = append(o.keys, append(AppendString(nil, []byte(f.Name)), ':'))
	}
	return o
}

func (o object) append(dst []byte, i int) []byte {
	dst = append(dst, '{')
	for c, column := range o.columns {
		if c > 0 {
			dst = append(dst, ',')
		}
		dst = column.appendJSON(append(dst, o.keys[c]...), i)
	}
	return append(dst, '}')
}
