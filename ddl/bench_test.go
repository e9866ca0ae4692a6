package ddl_test

import (
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper/ddl"
)

// typical is a view of about 1 KB.
var typical = "-- Mean delays by carrier and day.\nCREATE OR REPLACE VIEW ops.daily (day, carrier, flights, mean_delay) AS\n" +
	"WITH clean AS (\n  SELECT time_hour::DATE AS day, carrier, dep_delay\n  FROM main.flights\n  WHERE dep_delay IS NOT NULL /* cancelled */\n)\n" +
	"SELECT c.day, a.name, count(*), round(avg(c.dep_delay), 1)\nFROM clean c JOIN main.airlines a USING (carrier)\nWHERE " +
	strings.Repeat("a.name <> 'it''s not one' AND\n  ", 20) + "c.day >= DATE '2013-01-01'\nGROUP BY ALL ORDER BY 1, 2;\n"

func BenchmarkParse(b *testing.B) {
	b.SetBytes(int64(len(typical)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ddl.Parse(typical); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkEngineText(b *testing.B) {
	b.SetBytes(int64(len(typical)))
	b.ReportAllocs()
	for b.Loop() {
		ddl.EngineText(typical)
	}
}
