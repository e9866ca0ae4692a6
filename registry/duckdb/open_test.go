package duckdb

import (
	"context"
	"strings"
	"testing"
)

func TestOpenInstance(t *testing.T) {
	i, err := openInstance(context.Background(), Options{Threads: 3, BaseSQL: "CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE SCHEMA s; CREATE VIEW s.v AS SELECT a::VARCHAR a, 'x' b FROM t;"})
	if err != nil {
		t.Fatal(err)
	}
	defer i.close()
	c, err := i.connect()
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	rows, err := c.query(context.Background(), "FROM s.v")
	if err != nil || len(rows) != 1 || rows[0][0] != "1" || rows[0][1] != "x" {
		t.Fatal(rows, err)
	}
	if rows, err := c.query(context.Background(), "SELECT current_setting('threads')::VARCHAR"); err != nil || rows[0][0] != "3" {
		t.Errorf("threads: %v, %v", rows, err)
	}
	if err := c.exec(context.Background(), "SET threads = 1"); err == nil {
		t.Fatal("the configuration is not locked")
	}
}

// What the parser says of the base comes in another form than what the binder says.
func TestErrorsOfTheBaseAreText(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE VIEW x AS SELEC 1":            `base, statement 1 (CREATE VIEW x AS SELEC 1): syntax error at or near "SELEC"`,
		"CREATE VIEW x AS SELECT * FROM nope": `base, statement 1 (CREATE VIEW x AS SELECT * FROM nope): Table with name nope does not exist!`,
	} {
		_, err := openInstance(context.Background(), Options{BaseSQL: text})
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
