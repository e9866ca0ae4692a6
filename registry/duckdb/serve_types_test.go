package duckdb

import (
	"context"
	"strings"
	"testing"
)

// typeCases are values of every type with how they must read in Arrow. The type's
// name is not written here: the engine's own DESCRIBE is the oracle.
var typeCases = []struct{ sql, want string }{
	{"true", "true"},
	{"(-128)::TINYINT", "-128"},
	{"(-32768)::SMALLINT", "-32768"},
	{"(-2147483648)::INTEGER", "-2147483648"},
	{"(-9223372036854775808)::BIGINT", "-9223372036854775808"},
	{"255::UTINYINT", "255"},
	{"65535::USMALLINT", "65535"},
	{"4294967295::UINTEGER", "4294967295"},
	{"18446744073709551615::UBIGINT", "18446744073709551615"},
	{"170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727"},
	{"(-170141183460469231731687303715884105728)::HUGEINT", "-170141183460469231731687303715884105728"},
	{"340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455"},
	{"1.5::FLOAT", "1.5"},
	{"0.1::DOUBLE", "0.1"},
	{"(-1.5)::DECIMAL(4,1)", "-1.5"},
	{"(-12345.678)::DECIMAL(9,3)", "-12345.678"},
	{"(-1234567890.12345)::DECIMAL(18,5)", "-1234567890.12345"},
	{"(-12345678901234567890.12345)::DECIMAL(38,5)", "-12345678901234567890.12345"},
	{"'a string that is not inlined'", "a string that is not inlined"},
	{"'short'", "short"},
	{"''", ""},
	{"chr(233) || 'é'", "éé"},
	{`'{"a": 1}'::JSON`, `{"a": 1}`},
	{`'\xAA\x00bc'::BLOB`, "qgBiYw=="},
	{"'0010110011'::BIT", "0010110011"},
	{"'b'::ENUM('a', 'b', 'it''s')", "b"},
	{"'c199'::ENUM(" + manyWords(300) + ")", "c199"},
	{"'4ac7a9e9-607c-4c8a-84f3-843f0191e3fd'::UUID", "4ac7a9e9-607c-4c8a-84f3-843f0191e3fd"},
	{"'00000000-0000-0000-0000-000000000000'::UUID", "00000000-0000-0000-0000-000000000000"},
	{"DATE '1992-09-20'", "1992-09-20"},
	{"DATE '0044-03-15 (BC)'", "-0043-03-15"},
	{"TIME '11:30:00.123456'", "11:30:00.123456"},
	{"'11:30:00.123456789'::TIME_NS", "11:30:00.123456789"},
	{"'11:30:00.1+02'::TIMETZ", "11:30:00.1+02"},
	{"'11:30:00-05:30:15'::TIMETZ", "11:30:00-05:30:15"},
	{"TIMESTAMP '1992-09-20 11:30:00.123456'", "1992-09-20T11:30:00.123456"},
	{"'1992-09-20 11:30:00'::TIMESTAMP_S", "1992-09-20T11:30:00"},
	{"'1992-09-20 11:30:00.123'::TIMESTAMP_MS", "1992-09-20T11:30:00.123"},
	{"'1992-09-20 11:30:00.123456789'::TIMESTAMP_NS", "1992-09-20T11:30:00.123456789"},
	{"TIMESTAMPTZ '1992-09-20 11:30:00+02'", "1992-09-20T09:30:00Z"},
	{"INTERVAL '1 year 2 months 3 days 04:05:06.789'", `{"months":14,"days":3,"nanoseconds":14706789000000}`},
	{"'-123456789012345678901234567890123456789012345'::BIGNUM", "-123456789012345678901234567890123456789012345"},
	{"'340282366920938463463374607431768211455'::BIGNUM", "340282366920938463463374607431768211455"},
	{"'0'::BIGNUM", "0"},
	{"[1, NULL, 3]", "[1,null,3]"},
	{"[]::INTEGER[]", "[]"},
	{"[['a'], NULL, [], ['b', 'a string that is not inlined']]", `[["a"],null,[],["b","a string that is not inlined"]]`},
	{"[1, 2, 3]::INTEGER[3]", "[1,2,3]"},
	{"{'a': 1, 'select': 'x', 'b c': NULL, 'Ü': 1, 'X9': [1.5]}", `{"X9":["1.5"],"a":1,"b c":null,"select":"x","Ü":1}`},
	{"row(1, 'x')", ""},
	{"MAP {'k': 1, 'l': NULL}", `[{"key":"k","value":1},{"key":"l","value":null}]`},
	{"MAP {}::MAP(INTEGER, VARCHAR[])", `[]`},
	{"union_value(num := 2)::UNION(num INTEGER, str VARCHAR)", `[0,2]`},
	{"'x'::UNION(num INTEGER, str VARCHAR)", `[1,"x"]`},
	{"[{'a': [MAP {1: {'b': 'x'}}]}]", `[{"a":[[{"key":1,"value":{"b":"x"}}]]}]`},
	{"NULL", "(null)"},
}

func manyWords(n int) string {
	words := make([]string, n)
	for i := range words {
		words[i] = "'c" + string(rune('0'+i/100)) + string(rune('0'+i/10%10)) + string(rune('0'+i%10)) + "'"
	}
	return strings.Join(words, ", ")
}

func TestEveryTypeReads(t *testing.T) {
	s := openTestServer(t, Options{})
	for _, c := range typeCases {
		// A NULL beside it, in both orders, and more rows than one chunk has.
		for _, sql := range []string{
			"SELECT " + c.sql + " AS v",
			"SELECT unnest([" + c.sql + ", NULL]) AS v",
			"SELECT CASE WHEN range % 3 = 1 THEN NULL ELSE " + c.sql + " END AS v FROM range(5000)",
		} {
			r, err := s.Query(context.Background(), QueryRequest{SQL: sql})
			if err != nil && strings.Contains(err.Error(), "Unimplemented type for case") {
				continue // the engine has no CASE over an ARRAY
			}
			a := readAll(t, r, err)
			if got := a.rows[0][0]; got != c.want && c.want != "" {
				t.Errorf("%s\n got %s\nwant %s", sql, got, c.want)
			}
			for i, row := range a.rows {
				null := len(a.rows) == 2 && i == 1 || len(a.rows) == 5000 && i%3 == 1
				if null && row[0] != "(null)" && !strings.Contains(c.sql, "UNION") || !null && row[0] != a.rows[0][0] {
					t.Fatalf("%s: row %d is %s", sql, i, row[0])
				}
			}
			r, err = s.Query(context.Background(), QueryRequest{SQL: "DESCRIBE " + sql})
			if described := readAll(t, r, err); described.rows[0][1] != a.columns[0].Type {
				t.Errorf("%s\n    got type %s\nDESCRIBE says %s", sql, a.columns[0].Type, described.rows[0][1])
			}
		}
	}
}

// What a struct, list or array holds under a NULL is not data: it must not be read.
func TestNestedNulls(t *testing.T) {
	s := openTestServer(t, Options{})
	for _, value := range []string{
		"{'a': 'a string that is not inlined', 'b': [1, 2]}",
		"['a string that is not inlined', 'b']",
		"[{'a': [1]}, {'a': [2]}, NULL]::STRUCT(a INTEGER[])[3]",
		"MAP {'a string that is not inlined': [{'x': 1}]}",
		"{'u': 'x'::UNION(n INTEGER, s VARCHAR)}",
	} {
		sql := "SELECT v FROM range(5000), (SELECT unnest([" + value + ", NULL]) AS v) ORDER BY hash(range + (v IS NULL)::INT)"
		r, err := s.Query(context.Background(), QueryRequest{SQL: sql})
		a := readAll(t, r, err)
		counts := map[string]int{}
		for _, row := range a.rows {
			counts[row[0]]++
		}
		if len(counts) != 2 || counts["(null)"] != 5000 {
			t.Errorf("%s: %v", value, counts)
		}
	}
}

func TestVariantIsAnErrorThatHelps(t *testing.T) {
	s := openTestServer(t, Options{})
	_, err := s.Query(context.Background(), QueryRequest{SQL: "SELECT 1::VARIANT AS v"})
	if err == nil || !strings.Contains(err.Error(), "cast it") {
		t.Fatal(err)
	}
}
