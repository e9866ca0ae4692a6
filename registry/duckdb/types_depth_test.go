package duckdb

import "testing"

func TestTypeDepth(t *testing.T) {
	for text, want := range map[string]int{
		"INTEGER": 1, "DECIMAL(18,3)": 2, "INTEGER[]": 2, "INTEGER[3][]": 3, "STRUCT(a INTEGER, b INTEGER[])": 3, "STRUCT(a INTEGER)[]": 3,
		"STRUCT(a STRUCT(b STRUCT(c INTEGER)))": 4, "MAP(VARCHAR, INTEGER[])[]": 4, `STRUCT("a(((b" INTEGER)`: 2, "ENUM('((', '[[')": 2,
	} {
		if got := typeDepth(text); got != want {
			t.Errorf("%s: %d, want %d", text, got, want)
		}
	}
}
