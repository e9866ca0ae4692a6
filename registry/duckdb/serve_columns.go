package duckdb

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/bitutil"
	"github.com/apache/arrow-go/v18/arrow/memory"
	bindings "github.com/duckdb/duckdb-go-bindings"
)

// vector is one vector of a chunk with those under it. It is valid as long as
// its chunk is.
type vector struct {
	data     unsafe.Pointer
	valid    unsafe.Pointer // a bitmap of 64-bit words; nil when all rows are valid
	children []vector
}

// readVector takes the addresses of a vector of t; all calls into C are here,
// none is made for a row.
func readVector(handle bindings.Vector, t *resultType) vector {
	v := vector{data: bindings.VectorGetData(handle), valid: bindings.VectorGetValidity(handle)}
	switch t.id {
	case bindings.TypeList, bindings.TypeMap:
		v.children = []vector{readVector(bindings.ListVectorGetChild(handle), t.children[0])}
	case bindings.TypeArray:
		v.children = []vector{readVector(bindings.ArrayVectorGetChild(handle), t.children[0])}
	case bindings.TypeStruct:
		for i, child := range t.children {
			v.children = append(v.children, readVector(bindings.StructVectorGetChild(handle, bindings.IdxT(i)), child))
		}
	case bindings.TypeUnion:
		// The first member of the struct that a union is stored as is the tag.
		tag := bindings.StructVectorGetChild(handle, 0)
		v.data = bindings.VectorGetData(tag)
		for i, child := range t.children {
			v.children = append(v.children, readVector(bindings.StructVectorGetChild(handle, bindings.IdxT(i+1)), child))
		}
	}
	return v
}

// isValid reports whether a row is not NULL.
func (v *vector) isValid(row int) bool {
	return v.valid == nil || *(*uint64)(unsafe.Add(v.valid, row/64*8))>>(row%64)&1 == 1
}

// column gathers the rows of several chunks into one Arrow array. Its memory is
// used again for the next array. What lies in a vector under a NULL is never
// looked at: there may be no value at all.
type column struct {
	typ      *resultType
	rows     int
	nulls    int
	valid    []byte  // bitmap
	data     []byte  // values, the bytes of strings, or a union's tags
	offsets  []int32 // of strings and lists, without the first, which is 0
	children []*column
}

func newColumn(t *resultType) *column {
	c := &column{typ: t}
	for _, child := range t.children {
		c.children = append(c.children, newColumn(child))
	}
	return c
}

// reset forgets the rows and keeps the memory.
func (c *column) reset() {
	c.rows, c.nulls = 0, 0
	c.valid, c.data, c.offsets = c.valid[:0], c.data[:0], c.offsets[:0]
	for _, child := range c.children {
		child.reset()
	}
}

// size is how many bytes the rows take so far.
func (c *column) size() int {
	n := len(c.valid) + len(c.data) + 4*len(c.offsets)
	for _, child := range c.children {
		n += child.size()
	}
	return n
}

// append adds the rows [from, to) of v.
func (c *column) append(v *vector, from, to int) error {
	start := c.rows
	c.appendValidity(v, from, to)
	switch t := c.typ; {
	case t.width > 0:
		values := unsafe.Slice((*byte)(unsafe.Add(v.data, from*t.width)), (to-from)*t.width)
		c.data = append(c.data, values...)
	case t.text != nil:
		return c.appendText(v, from, to)
	case t.narrow > 0:
		c.appendDecimals(v, from, to)
	default:
		switch t.id {
		case bindings.TypeBoolean:
			c.appendBooleans(v, from, to, start)
		case bindings.TypeUHugeInt:
			for row := from; row < to; row++ {
				u := valueAt[[2]uint64](v.data, row)
				c.data = binary.LittleEndian.AppendUint64(c.data, u[0])
				c.data = binary.LittleEndian.AppendUint64(c.data, u[1])
				c.data = append(c.data, make([]byte, 16)...)
			}
		case bindings.TypeInterval:
			return c.appendIntervals(v, from, to)
		case bindings.TypeSQLNull:
		default:
			return c.appendNested(v, from, to)
		}
	}
	return nil
}

// appendValidity adds the rows' validity and counts them.
func (c *column) appendValidity(v *vector, from, to int) {
	n := to - from
	c.valid = extend(c.valid, int(bitutil.BytesForBits(int64(c.rows+n))))
	if v.valid == nil || c.typ.id == bindings.TypeSQLNull {
		bitutil.SetBitsTo(c.valid, int64(c.rows), int64(n), true)
	} else {
		mask := unsafe.Slice((*byte)(v.valid), (to+63)/64*8)
		bitutil.CopyBitmap(mask, from, n, c.valid, c.rows)
		c.nulls += n - bitutil.CountSetBits(mask, from, n)
	}
	c.rows += n
}

// appendNulls adds n rows of NULL.
func (c *column) appendNulls(n int) {
	c.valid = extend(c.valid, int(bitutil.BytesForBits(int64(c.rows+n))))
	bitutil.SetBitsTo(c.valid, int64(c.rows), int64(n), false)
	c.rows += n
	c.nulls += n
	switch t := c.typ; {
	case t.text != nil, t.id == bindings.TypeList, t.id == bindings.TypeMap:
		last := c.lastOffset()
		for range n {
			c.offsets = append(c.offsets, last)
		}
	case t.id == bindings.TypeBoolean:
		c.data = extend(c.data, len(c.valid))
	case t.id == bindings.TypeUHugeInt:
		c.data = extend(c.data, len(c.data)+32*n)
	case t.id == bindings.TypeUnion:
		c.data = extend(c.data, len(c.data)+n)
	case t.narrow > 0, t.id == bindings.TypeInterval:
		c.data = extend(c.data, len(c.data)+16*n)
	default:
		c.data = extend(c.data, len(c.data)+t.width*n)
	}
	switch c.typ.id {
	case bindings.TypeStruct, bindings.TypeUnion:
		for _, child := range c.children {
			child.appendNulls(n)
		}
	case bindings.TypeArray:
		c.children[0].appendNulls(n * c.typ.size)
	}
}

func (c *column) lastOffset() int32 {
	if len(c.offsets) == 0 {
		return 0
	}
	return c.offsets[len(c.offsets)-1]
}

// errBatchTooLarge says that one chunk's text does not fit Arrow's 32-bit offsets.
var errBatchTooLarge = errors.New("2048 rows hold more than 2 GiB in one column; select less of it")

func (c *column) appendText(v *vector, from, to int) error {
	for row := from; row < to; row++ {
		if v.isValid(row) {
			c.data = c.typ.text(c.data, v.data, row)
			if len(c.data) > math.MaxInt32 {
				return errBatchTooLarge
			}
		}
		c.offsets = append(c.offsets, int32(len(c.data)))
	}
	return nil
}

func (c *column) appendBooleans(v *vector, from, to, start int) {
	c.data = extend(c.data, len(c.valid))
	for row := from; row < to; row++ {
		bitutil.SetBitTo(c.data, start+row-from, v.isValid(row) && valueAt[byte](v.data, row) != 0)
	}
}

// appendDecimals widens the integers to 128 bits.
func (c *column) appendDecimals(v *vector, from, to int) {
	for row := from; row < to; row++ {
		var n int64
		if v.isValid(row) {
			switch c.typ.narrow {
			case 2:
				n = int64(valueAt[int16](v.data, row))
			case 4:
				n = int64(valueAt[int32](v.data, row))
			default:
				n = valueAt[int64](v.data, row)
			}
		}
		c.data = binary.LittleEndian.AppendUint64(c.data, uint64(n))
		c.data = binary.LittleEndian.AppendUint64(c.data, uint64(n>>63))
	}
}

// interval is an INTERVAL as the engine stores it.
type interval struct {
	months, days int32
	micros       int64
}

func (c *column) appendIntervals(v *vector, from, to int) error {
	const most = math.MaxInt64 / 1000
	for row := from; row < to; row++ {
		var i interval
		if v.isValid(row) {
			i = valueAt[interval](v.data, row)
		}
		if i.micros > most || i.micros < -most {
			return fmt.Errorf("an INTERVAL holds more than 292 years of hours, which Arrow can't say; cast it to VARCHAR")
		}
		c.data = binary.LittleEndian.AppendUint32(c.data, uint32(i.months))
		c.data = binary.LittleEndian.AppendUint32(c.data, uint32(i.days))
		c.data = binary.LittleEndian.AppendUint64(c.data, uint64(i.micros*1000))
	}
	return nil
}

// take gives the gathered rows as an array, which is valid until the next reset.
func (c *column) take() arrow.ArrayData {
	var valid, data *memory.Buffer
	if c.nulls > 0 {
		valid = memory.NewBufferBytes(c.valid)
	}
	data = memory.NewBufferBytes(c.data)
	children := make([]arrow.ArrayData, len(c.children))
	for i, child := range c.children {
		children[i] = child.take()
	}
	buffers := []*memory.Buffer{valid, data}
	nulls := c.nulls
	switch {
	case c.typ.text != nil:
		buffers = []*memory.Buffer{valid, c.offsetBuffer(), data}
	case c.typ.id == bindings.TypeList, c.typ.id == bindings.TypeMap:
		buffers = []*memory.Buffer{valid, c.offsetBuffer()}
	case c.typ.id == bindings.TypeArray, c.typ.id == bindings.TypeStruct:
		buffers = []*memory.Buffer{valid}
	case c.typ.id == bindings.TypeUnion:
		buffers, nulls = []*memory.Buffer{nil, data}, 0
	case c.typ.id == bindings.TypeSQLNull:
		buffers, nulls = []*memory.Buffer{nil}, c.rows
	}
	return array.NewData(c.typ.arrow, c.rows, buffers, children, nulls, 0)
}

// offsetBuffer gives the offsets with the leading 0.
func (c *column) offsetBuffer() *memory.Buffer {
	return memory.NewBufferBytes(arrow.Int32Traits.CastToBytes(append([]int32{0}, c.offsets...)))
}

// extend makes b n bytes long; what it adds is zero.
func extend(b []byte, n int) []byte {
	if n <= len(b) {
		return b
	}
	return append(b, make([]byte, n-len(b))...)
}
