package duckdb

import (
	"fmt"
	"strconv"
	"strings"
	"unsafe"

	"github.com/apache/arrow-go/v18/arrow"
	bindings "github.com/duckdb/duckdb-go-bindings"
	"github.com/viewkeeper/viewkeeper"
)

// How each type of the engine is written in Arrow. What Arrow can say exactly it
// says; the rest is text, as the engine itself prints it. The engine's own name
// of a column's type is in [Result].Columns and in the field's metadata under
// [TypeMetadata].
//
//	BOOLEAN, [U]TINYINT ... [U]BIGINT, FLOAT, DOUBLE   the same
//	HUGEINT           decimal128(38, 0): its 128 bits hold every HUGEINT, also the few of 39 digits
//	UHUGEINT          decimal256(39, 0)
//	DECIMAL(w, s)     decimal128(w, s)
//	BIGNUM            text
//	VARCHAR, JSON     utf8
//	ENUM, UUID, BIT   utf8
//	BLOB, GEOMETRY    binary
//	DATE              date32; infinity is the largest day, -infinity its negative
//	TIME, TIME_NS     time64 in micro-, nanoseconds
//	TIMETZ            utf8, 12:34:56+02
//	TIMESTAMP[_S _MS _NS], TIMESTAMPTZ   timestamp in the type's unit, zone UTC for TIMESTAMPTZ;
//	                  infinity is the largest int64, -infinity its negative
//	INTERVAL          month_day_nano; an error beyond 292 years of hours
//	LIST, ARRAY, STRUCT, MAP   list, fixed-size list, struct, map
//	UNION             sparse union; a NULL union is a NULL of its first member
//	"NULL"            null
//	VARIANT           not sent: an error that says to cast it

// TypeMetadata is the key of the engine's type in the metadata of an Arrow field.
const TypeMetadata = "viewkeeper.type"

// resultType is one type of a result: the engine's and Arrow's, and how to get
// from a vector of the one to an array of the other.
type resultType struct {
	id    bindings.Type
	name  string // as DESCRIBE prints it
	arrow arrow.DataType

	// width is the size of a value where the engine's values and Arrow's are the
	// same bytes, else 0.
	width int
	// text appends a value as the bytes of a variable-width array, for the types
	// that become one.
	text func(dst []byte, data unsafe.Pointer, row int) []byte
	// narrow is the size of a DECIMAL's integer in the vector.
	narrow int
	// size is an ARRAY's length.
	size int
	// children are the members of a nested type: one for LIST, ARRAY and MAP (its
	// entries).
	children []*resultType
	// depth is the nesting of the type: 1 for one that is not nested.
	depth int
}

// maxResultDepth is how deep a column's type may be nested: Arrow's readers and
// writers give up at 64, and a column is a level by itself.
const maxResultDepth = 60

// fixedTypes are the types whose vectors Arrow arrays can take over byte by byte.
func fixedType(id bindings.Type) (name string, a arrow.DataType, width int) {
	switch id {
	case bindings.TypeTinyInt:
		return "TINYINT", arrow.PrimitiveTypes.Int8, 1
	case bindings.TypeSmallInt:
		return "SMALLINT", arrow.PrimitiveTypes.Int16, 2
	case bindings.TypeInteger:
		return "INTEGER", arrow.PrimitiveTypes.Int32, 4
	case bindings.TypeBigInt:
		return "BIGINT", arrow.PrimitiveTypes.Int64, 8
	case bindings.TypeUTinyInt:
		return "UTINYINT", arrow.PrimitiveTypes.Uint8, 1
	case bindings.TypeUSmallInt:
		return "USMALLINT", arrow.PrimitiveTypes.Uint16, 2
	case bindings.TypeUInteger:
		return "UINTEGER", arrow.PrimitiveTypes.Uint32, 4
	case bindings.TypeUBigInt:
		return "UBIGINT", arrow.PrimitiveTypes.Uint64, 8
	case bindings.TypeHugeInt:
		return "HUGEINT", &arrow.Decimal128Type{Precision: 38}, 16
	case bindings.TypeFloat:
		return "FLOAT", arrow.PrimitiveTypes.Float32, 4
	case bindings.TypeDouble:
		return "DOUBLE", arrow.PrimitiveTypes.Float64, 8
	case bindings.TypeDate:
		return "DATE", arrow.FixedWidthTypes.Date32, 4
	case bindings.TypeTime:
		return "TIME", arrow.FixedWidthTypes.Time64us, 8
	case bindings.TypeTimeNS:
		return "TIME_NS", arrow.FixedWidthTypes.Time64ns, 8
	case bindings.TypeTimestamp:
		return "TIMESTAMP", &arrow.TimestampType{Unit: arrow.Microsecond}, 8
	case bindings.TypeTimestampS:
		return "TIMESTAMP_S", &arrow.TimestampType{Unit: arrow.Second}, 8
	case bindings.TypeTimestampMS:
		return "TIMESTAMP_MS", &arrow.TimestampType{Unit: arrow.Millisecond}, 8
	case bindings.TypeTimestampNS:
		return "TIMESTAMP_NS", &arrow.TimestampType{Unit: arrow.Nanosecond}, 8
	case bindings.TypeTimestampTZ:
		return "TIMESTAMP WITH TIME ZONE", &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: "UTC"}, 8
	}
	return "", nil, 0
}

// describeType reads a logical type, which it destroys.
func describeType(logical bindings.LogicalType, keywords map[string]bool) (*resultType, error) {
	defer bindings.DestroyLogicalType(&logical)
	t := &resultType{id: bindings.GetTypeId(logical), depth: 1}
	t.name, t.arrow, t.width = fixedType(t.id)
	if t.arrow == nil {
		if err := t.describe(logical, keywords); err != nil {
			return nil, err
		}
	}
	if alias := bindings.LogicalTypeGetAlias(logical); alias != "" {
		t.name = alias
	}
	return t, nil
}

// describe fills in a type that is not of one width.
func (t *resultType) describe(logical bindings.LogicalType, keywords map[string]bool) error {
	switch t.id {
	case bindings.TypeBoolean:
		t.name, t.arrow = "BOOLEAN", arrow.FixedWidthTypes.Boolean
	case bindings.TypeSQLNull:
		t.name, t.arrow = `"NULL"`, arrow.Null
	case bindings.TypeVarchar:
		t.name, t.arrow, t.text = "VARCHAR", arrow.BinaryTypes.String, appendBytes
	case bindings.TypeBlob:
		t.name, t.arrow, t.text = "BLOB", arrow.BinaryTypes.Binary, appendBytes
	case bindings.TypeGeometry:
		t.name, t.arrow, t.text = "GEOMETRY", arrow.BinaryTypes.Binary, appendBytes
	case bindings.TypeUUID:
		t.name, t.arrow, t.text = "UUID", arrow.BinaryTypes.String, appendUUID
	case bindings.TypeBit:
		t.name, t.arrow, t.text = "BIT", arrow.BinaryTypes.String, appendBit
	case bindings.TypeBigNum:
		t.name, t.arrow, t.text = "BIGNUM", arrow.BinaryTypes.String, appendBigNum
	case bindings.TypeTimeTZ:
		t.name, t.arrow, t.text = "TIME WITH TIME ZONE", arrow.BinaryTypes.String, appendTimeTZ
	case bindings.TypeInterval:
		t.name, t.arrow = "INTERVAL", arrow.FixedWidthTypes.MonthDayNanoInterval
	case bindings.TypeUHugeInt:
		t.name, t.arrow = "UHUGEINT", &arrow.Decimal256Type{Precision: 39}
	case bindings.TypeDecimal:
		t.describeDecimal(logical)
	case bindings.TypeEnum:
		t.describeEnum(logical)
	case bindings.TypeList, bindings.TypeArray, bindings.TypeMap, bindings.TypeStruct, bindings.TypeUnion:
		return t.describeNested(logical, keywords)
	case bindings.TypeVariant:
		return fmt.Errorf("a result can't hold a VARIANT; cast it to JSON or VARCHAR")
	default:
		return fmt.Errorf("a result can't hold the engine's type number %d; cast it to VARCHAR", t.id)
	}
	return nil
}

func (t *resultType) describeDecimal(logical bindings.LogicalType) {
	width, scale := bindings.DecimalWidth(logical), bindings.DecimalScale(logical)
	t.name = fmt.Sprintf("DECIMAL(%d,%d)", width, scale)
	t.arrow = &arrow.Decimal128Type{Precision: int32(width), Scale: int32(scale)}
	switch bindings.DecimalInternalType(logical) {
	case bindings.TypeSmallInt:
		t.narrow = 2
	case bindings.TypeInteger:
		t.narrow = 4
	case bindings.TypeBigInt:
		t.narrow = 8
	default:
		t.width = 16
	}
}

func (t *resultType) describeEnum(logical bindings.LogicalType) {
	values := make([]string, bindings.EnumDictionarySize(logical))
	quotedValues := make([]string, len(values))
	for i := range values {
		values[i] = bindings.EnumDictionaryValue(logical, bindings.IdxT(i))
		quotedValues[i] = quoteLiteral(values[i])
	}
	t.name = "ENUM(" + strings.Join(quotedValues, ", ") + ")"
	t.arrow = arrow.BinaryTypes.String
	switch bindings.EnumInternalType(logical) {
	case bindings.TypeUTinyInt:
		t.text = func(dst []byte, data unsafe.Pointer, row int) []byte {
			return append(dst, values[valueAt[uint8](data, row)]...)
		}
	case bindings.TypeUSmallInt:
		t.text = func(dst []byte, data unsafe.Pointer, row int) []byte {
			return append(dst, values[valueAt[uint16](data, row)]...)
		}
	default:
		t.text = func(dst []byte, data unsafe.Pointer, row int) []byte {
			return append(dst, values[valueAt[uint32](data, row)]...)
		}
	}
}

func (t *resultType) describeNested(logical bindings.LogicalType, keywords map[string]bool) error {
	var names []string
	add := func(name string, logical bindings.LogicalType) error {
		child, err := describeType(logical, keywords)
		if err != nil {
			return err
		}
		names = append(names, name)
		t.children = append(t.children, child)
		t.depth = max(t.depth, child.depth+1)
		if t.id == bindings.TypeMap {
			t.depth = max(t.depth, child.depth+2) // its entries are structs
		}
		if t.depth > maxResultDepth {
			return planErrorf(viewkeeper.CodeComplexity, -1, "its type is nested more than %d deep; take it apart, or cast it to VARCHAR", maxResultDepth)
		}
		return nil
	}
	switch t.id {
	case bindings.TypeList:
		if err := add("", bindings.ListTypeChildType(logical)); err != nil {
			return err
		}
		t.name = t.children[0].name + "[]"
		t.arrow = arrow.ListOf(t.children[0].arrow)
	case bindings.TypeArray:
		if err := add("", bindings.ArrayTypeChildType(logical)); err != nil {
			return err
		}
		t.size = int(bindings.ArrayTypeArraySize(logical))
		t.name = t.children[0].name + "[" + strconv.Itoa(t.size) + "]"
		t.arrow = arrow.FixedSizeListOf(int32(t.size), t.children[0].arrow)
	case bindings.TypeMap:
		if err := add("key", bindings.MapTypeKeyType(logical)); err != nil {
			return err
		}
		if err := add("value", bindings.MapTypeValueType(logical)); err != nil {
			return err
		}
		key, value := t.children[0], t.children[1]
		t.name = "MAP(" + key.name + ", " + value.name + ")"
		of := arrow.MapOf(key.arrow, value.arrow)
		t.arrow = of
		t.children = []*resultType{{id: bindings.TypeStruct, arrow: of.Elem(), children: []*resultType{key, value}}}
	case bindings.TypeStruct:
		for i := range bindings.StructTypeChildCount(logical) {
			if err := add(bindings.StructTypeChildName(logical, i), bindings.StructTypeChildType(logical, i)); err != nil {
				return err
			}
		}
		t.name = "STRUCT(" + memberList(names, t.children, keywords) + ")"
		t.arrow = arrow.StructOf(memberFields(names, t.children)...)
	case bindings.TypeUnion:
		codes := make([]arrow.UnionTypeCode, 0, 8)
		for i := range bindings.UnionTypeMemberCount(logical) {
			codes = append(codes, arrow.UnionTypeCode(i))
			if err := add(bindings.UnionTypeMemberName(logical, i), bindings.UnionTypeMemberType(logical, i)); err != nil {
				return err
			}
		}
		t.name = "UNION(" + memberList(names, t.children, keywords) + ")"
		t.arrow = arrow.SparseUnionOf(memberFields(names, t.children), codes)
	}
	return nil
}

func memberFields(names []string, types []*resultType) []arrow.Field {
	fields := make([]arrow.Field, len(names))
	for i, name := range names {
		fields[i] = arrow.Field{Name: name, Type: types[i].arrow, Nullable: true}
	}
	return fields
}

// memberList prints the members of a STRUCT or UNION as the engine does. An
// unnamed struct, as row() makes it, has members without names.
func memberList(names []string, types []*resultType, keywords map[string]bool) string {
	parts := make([]string, len(names))
	for i, name := range names {
		parts[i] = types[i].name
		if name != "" {
			parts[i] = quoteMember(name, keywords) + " " + types[i].name
		}
	}
	return strings.Join(parts, ", ")
}

// quoteMember quotes a name where the engine's printer does: when it is not plain
// ASCII letters, digits and _, or is any kind of keyword.
func quoteMember(name string, keywords map[string]bool) string {
	plain := !digit(name[0]) && !keywords[strings.ToLower(name)]
	for i := 0; i < len(name) && plain; i++ {
		plain = name[i] < 0x80 && (wordStart(name[i]) || digit(name[i]))
	}
	if plain {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}
