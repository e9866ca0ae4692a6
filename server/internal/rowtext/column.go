package rowtext

import (
	"encoding/base64"
	"math"
	"strconv"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
)

// appendFunc appends the value at row i, which is not NULL.
type appendFunc func(dst []byte, i int) []byte

// column prints the values of one array. Both functions are chosen once for a
// batch, so that a row costs no look at types.
type column struct {
	array arrow.Array
	json  appendFunc
	text  appendFunc
}

// maxExact is the largest integer up to which every integer is exact in a float64,
// which is what most JSON readers make of a number.
const maxExact = 1 << 53

// newColumn never fails: a type that it does not know is printed as Arrow prints it.
func newColumn(a arrow.Array) column {
	c := column{array: a}
	switch a := a.(type) {
	case *array.Null:
		c.bare(func(dst []byte, _ int) []byte { return dst })
	case *array.Boolean:
		c.bare(func(dst []byte, i int) []byte { return strconv.AppendBool(dst, a.Value(i)) })
	case *array.Int8:
		signed(&c, a.Value)
	case *array.Int16:
		signed(&c, a.Value)
	case *array.Int32:
		signed(&c, a.Value)
	case *array.Int64:
		signed(&c, a.Value)
	case *array.Uint8:
		unsigned(&c, a.Value)
	case *array.Uint16:
		unsigned(&c, a.Value)
	case *array.Uint32:
		unsigned(&c, a.Value)
	case *array.Uint64:
		unsigned(&c, a.Value)
	case *array.Float32:
		c.float(32, func(i int) float64 { return float64(a.Value(i)) })
	case *array.Float64:
		c.float(64, a.Value)
	case *array.Decimal32:
		decimal(&c, a, a.Value)
	case *array.Decimal64:
		decimal(&c, a, a.Value)
	case *array.Decimal128:
		decimal(&c, a, a.Value)
	case *array.Decimal256:
		decimal(&c, a, a.Value)
	case *array.String:
		c.quoted(func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) })
	case *array.LargeString:
		c.quoted(func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) })
	case *array.StringView:
		c.quoted(func(dst []byte, i int) []byte { return append(dst, a.Value(i)...) })
	case *array.Binary:
		c.blob(a.Value)
	case *array.LargeBinary:
		c.blob(a.Value)
	case *array.BinaryView:
		c.blob(a.Value)
	case *array.FixedSizeBinary:
		c.blob(a.Value)
	case *array.Dictionary:
		values := newColumn(a.Dictionary())
		c.json = func(dst []byte, i int) []byte { return values.appendJSON(dst, a.GetValueIndex(i)) }
		c.text = func(dst []byte, i int) []byte { return values.text(dst, a.GetValueIndex(i)) }
	case array.ExtensionArray:
		c = newColumn(a.Storage())
	default:
		if !c.nested(a) && !c.temporal(a) {
			c.quoted(func(dst []byte, i int) []byte { return append(dst, a.ValueStr(i)...) })
		}
	}
	return c
}

// appendJSON appends the JSON of row i, null included.
func (c column) appendJSON(dst []byte, i int) []byte {
	if c.array.IsNull(i) {
		return append(dst, "null"...)
	}
	return c.json(dst, i)
}

// bare prints the same in JSON as in text.
func (c *column) bare(f appendFunc) { c.json, c.text = f, f }

// quoted prints text that is a string in JSON.
func (c *column) quoted(f appendFunc) {
	var scratch []byte
	c.text = f
	c.json = func(dst []byte, i int) []byte {
		scratch = f(scratch[:0], i)
		return AppendString(dst, scratch)
	}
}

func (c *column) blob(value func(int) []byte) {
	c.quoted(func(dst []byte, i int) []byte { return base64.StdEncoding.AppendEncode(dst, value(i)) })
}

func signed[T int8 | int16 | int32 | int64](c *column, value func(int) T) {
	c.text = func(dst []byte, i int) []byte { return strconv.AppendInt(dst, int64(value(i)), 10) }
	c.json = func(dst []byte, i int) []byte {
		v := int64(value(i))
		if v > maxExact || v < -maxExact {
			return append(strconv.AppendInt(append(dst, '"'), v, 10), '"')
		}
		return strconv.AppendInt(dst, v, 10)
	}
}

func unsigned[T uint8 | uint16 | uint32 | uint64](c *column, value func(int) T) {
	c.text = func(dst []byte, i int) []byte { return strconv.AppendUint(dst, uint64(value(i)), 10) }
	c.json = func(dst []byte, i int) []byte {
		v := uint64(value(i))
		if v > maxExact {
			return append(strconv.AppendUint(append(dst, '"'), v, 10), '"')
		}
		return strconv.AppendUint(dst, v, 10)
	}
}

func decimal[T interface{ ToString(scale int32) string }](c *column, a arrow.Array, value func(int) T) {
	scale := a.DataType().(arrow.DecimalType).GetScale()
	c.quoted(func(dst []byte, i int) []byte { return append(dst, value(i).ToString(scale)...) })
}

func (c *column) float(bits int, value func(int) float64) {
	text := func(dst []byte, i int) []byte {
		switch v := value(i); {
		case math.IsNaN(v):
			return append(dst, "NaN"...)
		case math.IsInf(v, 1):
			return append(dst, "Infinity"...)
		case math.IsInf(v, -1):
			return append(dst, "-Infinity"...)
		default:
			return appendFloat(dst, v, bits)
		}
	}
	c.text = text
	c.json = func(dst []byte, i int) []byte {
		if v := value(i); math.IsNaN(v) || math.IsInf(v, 0) {
			return append(text(append(dst, '"'), i), '"')
		}
		return text(dst, i)
	}
}

// appendFloat keeps a whole float readable (3.0, not 3) and uses an exponent
// where plain digits would be long, as the engine does.
func appendFloat(dst []byte, v float64, bits int) []byte {
	format := byte('f')
	if abs := math.Abs(v); abs != 0 && (abs < 1e-5 || abs >= 1e16) {
		format = 'e'
	}
	start := len(dst)
	dst = strconv.AppendFloat(dst, v, format, -1, bits)
	for _, b := range dst[start:] {
		if b == '.' || b == 'e' {
			return dst
		}
	}
	return append(dst, ".0"...)
}
