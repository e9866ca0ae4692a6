package rowtext

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/decimal128"
	"github.com/apache/arrow-go/v18/arrow/memory"
)

func TestValues(t *testing.T) {
	micros := func(zone string) arrow.DataType { return &arrow.TimestampType{Unit: arrow.Microsecond, TimeZone: zone} }
	for _, c := range []struct {
		name string
		kind arrow.DataType
		in   string // one value, as Arrow's JSON has it
		json string
		csv  string
	}{
		{"bool", arrow.FixedWidthTypes.Boolean, `true`, `true`, `true`},
		{"small", arrow.PrimitiveTypes.Int8, `-7`, `-7`, `-7`},
		{"exact", arrow.PrimitiveTypes.Int64, `9007199254740992`, `9007199254740992`, `9007199254740992`},
		{"beyond 2^53", arrow.PrimitiveTypes.Int64, `9007199254740993`, `"9007199254740993"`, `9007199254740993`},
		{"below -2^53", arrow.PrimitiveTypes.Int64, `-9007199254740993`, `"-9007199254740993"`, `-9007199254740993`},
		{"unsigned", arrow.PrimitiveTypes.Uint64, `18446744073709551615`, `"18446744073709551615"`, `18446744073709551615`},
		{"whole float", arrow.PrimitiveTypes.Float64, `3`, `3.0`, `3.0`},
		{"float", arrow.PrimitiveTypes.Float64, `0.1`, `0.1`, `0.1`},
		{"large float", arrow.PrimitiveTypes.Float64, `1e300`, `1e+300`, `1e+300`},
		{"float32", arrow.PrimitiveTypes.Float32, `0.1`, `0.1`, `0.1`},
		{"decimal", &arrow.Decimal128Type{Precision: 18, Scale: 2}, `"-1234567890123.45"`, `"-1234567890123.45"`, `-1234567890123.45`},
		{"hugeint", &arrow.Decimal128Type{Precision: 38, Scale: 0}, `"5"`, `"5"`, `5`},
		{"text", arrow.BinaryTypes.String, `"a \"b\"\n\u0001 é,"`, `"a \"b\"\n\u0001 é,"`, "\"a \"\"b\"\"\n\x01 é,\""},
		{"empty text", arrow.BinaryTypes.String, `""`, `""`, `""`},
		{"blob", arrow.BinaryTypes.Binary, `"AP8="`, `"AP8="`, `AP8=`},
		{"date", arrow.FixedWidthTypes.Date32, `"2013-01-02"`, `"2013-01-02"`, `2013-01-02`},
		{"time", arrow.FixedWidthTypes.Time64us, `"05:06:07.500000"`, `"05:06:07.5"`, `05:06:07.5`},
		{"timestamp", micros(""), `"2013-01-01 05:00:00"`, `"2013-01-01 05:00:00"`, `2013-01-01 05:00:00`},
		{"timestamp with fraction", micros(""), `"1969-12-31 23:59:59.123456"`, `"1969-12-31 23:59:59.123456"`, `1969-12-31 23:59:59.123456`},
		{"timestamp with time zone", micros("UTC"), `"2013-01-01T05:00:00Z"`, `"2013-01-01 05:00:00+00"`, `2013-01-01 05:00:00+00`},
		{"interval", arrow.FixedWidthTypes.MonthDayNanoInterval, `{"months":14,"days":1,"nanoseconds":3600000000000}`,
			`"1 year 2 months 1 day 01:00:00"`, `1 year 2 months 1 day 01:00:00`},
		{"no interval", arrow.FixedWidthTypes.MonthDayNanoInterval, `{"months":0,"days":0,"nanoseconds":0}`, `"00:00:00"`, `00:00:00`},
		{"list", arrow.ListOf(arrow.PrimitiveTypes.Int64), `[1,null,9007199254740993]`, `[1,null,"9007199254740993"]`, `"[1,null,""9007199254740993""]"`},
		{"struct", arrow.StructOf(arrow.Field{Name: `a"b`, Type: arrow.BinaryTypes.String, Nullable: true}), `{"a\"b":null}`, `{"a\"b":null}`, `"{""a\""b"":null}"`},
		{"map", arrow.MapOf(arrow.PrimitiveTypes.Int32, arrow.BinaryTypes.String), `[{"key":1,"value":"x"}]`,
			`[{"key":1,"value":"x"}]`, `"[{""key"":1,""value"":""x""}]"`},
		{"enum", &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Uint8, ValueType: arrow.BinaryTypes.String}, `"ok"`, `"ok"`, `ok`},
	} {
		t.Run(c.name, func(t *testing.T) {
			// The row before is NULL: what is printed must come from the right row.
			batch := fromJSON(t, c.kind, `[{"c":null},{"c":`+c.in+`}]`)
			b := NewBatch(batch, []string{"c"})
			if got := string(b.AppendArray(nil, 0)); got != `[null]` {
				t.Errorf("NULL as JSON is %s", got)
			}
			if got := string(b.AppendCSV(nil, 0)); got != "\n" {
				t.Errorf("NULL as CSV is %q", got)
			}
			got := string(b.AppendArray(nil, 1))
			if got != "["+c.json+"]" {
				t.Errorf("JSON is %s, want [%s]", got, c.json)
			}
			if !json.Valid([]byte(got)) {
				t.Errorf("%s is not JSON", got)
			}
			if got := string(b.AppendObject(nil, 1)); got != `{"c":`+c.json+`}` {
				t.Errorf("object is %s", got)
			}
			if got := string(b.AppendCSV(nil, 1)); got != c.csv+"\n" {
				t.Errorf("CSV is %q, want %q", got, c.csv)
			}
		})
	}
}

// Far decimals: 128 bits without a detour through a float.
func TestDecimalIsExact(t *testing.T) {
	kind := &arrow.Decimal128Type{Precision: 38, Scale: 0}
	builder := array.NewDecimal128Builder(memory.DefaultAllocator, kind)
	v, err := decimal128.FromString("99999999999999999999999999999999999999", 38, 0)
	if err != nil {
		t.Fatal(err)
	}
	builder.Append(v)
	c := newColumn(builder.NewDecimal128Array())
	if got := string(c.appendJSON(nil, 0)); got != `"`+strings.Repeat("9", 38)+`"` {
		t.Errorf("got %s", got)
	}
}

func TestTimestampsFarAway(t *testing.T) {
	for _, c := range []struct {
		v    int64
		unit arrow.TimeUnit
		want string
	}{
		{infinity, arrow.Microsecond, "infinity"},
		{-infinity, arrow.Microsecond, "-infinity"},
		{253402300800, arrow.Second, "10000-01-01 00:00:00"},
		{-62198755200, arrow.Second, "0002-01-01 (BC) 00:00:00"},
		{1, arrow.Nanosecond, "1970-01-01 00:00:00.000000001"},
	} {
		if got := string(appendTimestamp(nil, c.v, c.unit, false)); got != c.want {
			t.Errorf("%d %s is %s, want %s", c.v, c.unit, got, c.want)
		}
	}
}

// What the engine calls infinite is so in every type that has it, alone and within
// others, and its neighbours are ordinary.
func TestInfiniteTimes(t *testing.T) {
	infinite := func(b array.Builder) {
		switch b := b.(type) {
		case *array.Date32Builder:
			b.AppendValues([]arrow.Date32{infiniteDay, -infiniteDay}, nil)
		case *array.TimestampBuilder:
			b.AppendValues([]arrow.Timestamp{infinity, -infinity}, nil)
		}
	}
	kinds := []arrow.DataType{arrow.FixedWidthTypes.Date32}
	for _, unit := range arrow.TimeUnitValues {
		kinds = append(kinds, &arrow.TimestampType{Unit: unit}, &arrow.TimestampType{Unit: unit, TimeZone: "UTC"})
	}
	for _, kind := range kinds {
		alone := array.NewBuilder(memory.DefaultAllocator, kind)
		infinite(alone)
		c := newColumn(alone.NewArray())
		for i, want := range []string{"infinity", "-infinity"} {
			if got := string(c.text(nil, i)); got != want {
				t.Errorf("%s: %s, want %s", kind, got, want)
			}
			if got := string(c.appendJSON(nil, i)); got != `"`+want+`"` {
				t.Errorf("%s: %s, want %s in quotes", kind, got, want)
			}
		}
		list := array.NewListBuilder(memory.DefaultAllocator, kind)
		list.Append(true)
		infinite(list.ValueBuilder())
		if got := string(newColumn(list.NewArray()).appendJSON(nil, 0)); got != `["infinity","-infinity"]` {
			t.Errorf("a list of %s: %s", kind, got)
		}
	}
	// The last days that the engine's DATE has, of which one is as far as the other.
	days := array.NewDate32Builder(memory.DefaultAllocator)
	days.AppendValues([]arrow.Date32{infiniteDay - 1, 0}, nil)
	if got := string(newColumn(days.NewArray()).text(nil, 0)); got != "5881580-07-10" {
		t.Errorf("the last day is %s", got)
	}
}

func TestFloatsWithoutJSON(t *testing.T) {
	batch := fromJSON(t, arrow.PrimitiveTypes.Float64, `[{"c":"NaN"},{"c":"+Inf"},{"c":"-Inf"}]`)
	b := NewBatch(batch, []string{"c"})
	for i, want := range []string{"NaN", "Infinity", "-Infinity"} {
		if got := string(b.AppendArray(nil, i)); got != `["`+want+`"]` {
			t.Errorf("JSON is %s", got)
		}
		if got := string(b.AppendCSV(nil, i)); got != want+"\n" {
			t.Errorf("CSV is %s", got)
		}
	}
}

func TestUniqueNames(t *testing.T) {
	got := strings.Join(UniqueNames([]string{"a", "b", "a", "a_1", "a"}), " ")
	if got != "a b a_1 a_1_1 a_2" {
		t.Errorf("got %s", got)
	}
}

// A query can name a column by one name tens of thousands of times.
func TestUniqueNamesOfManyEqualOnes(t *testing.T) {
	const n = 200_000
	names := make([]string, n)
	for i := range names {
		names[i] = "a"
	}
	if got := UniqueNames(names)[n-1]; got != "a_199999" {
		t.Errorf("got %s", got)
	}
}

func TestStringRepairsBytes(t *testing.T) {
	if got := string(AppendString(nil, []byte("a\xffb\\"))); got != `"a`+"\uFFFD"+`b\\"` {
		t.Errorf("got %s", got)
	}
}

func fromJSON(t *testing.T, kind arrow.DataType, rows string) arrow.RecordBatch {
	t.Helper()
	schema := arrow.NewSchema([]arrow.Field{{Name: "c", Type: kind, Nullable: true}}, nil)
	batch, _, err := array.RecordFromJSON(memory.DefaultAllocator, schema, strings.NewReader(rows))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(batch.Release)
	return batch
}
