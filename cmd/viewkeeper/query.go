package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/server"
)

// runQuery prints the answer of a query as it comes. begun is called when the first
// of it is there.
func (a *app) runQuery(ctx context.Context, node *client, sql string, min viewkeeper.Version, begun func()) error {
	form, accept := a.form(), server.TypeJSON
	if form == formCSV {
		accept = server.TypeCSV
	}
	var timeout time.Duration
	if a.source("timeout") != "default" {
		timeout = a.Timeout
	}
	body, header, err := node.query(ctx, sql, min, timeout, accept)
	if err != nil {
		return err
	}
	defer body.Close()
	begun()
	if form == formTable {
		err = a.printResult(body, header.Get(server.HeaderVersion))
	} else {
		_, err = io.Copy(a.out, body)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return refusedf("the answer was cut: what is printed is not all of it; the node's log has the reason")
	}
	return err
}

// printResult prints a JSON result as a table, row by row.
func (a *app) printResult(body io.Reader, version string) error {
	dec := json.NewDecoder(bufio.NewReaderSize(body, 64<<10))
	dec.UseNumber()
	var columns []viewkeeper.Column
	if err := expect(dec, json.Delim('{'), "columns"); err != nil {
		return err
	}
	if err := dec.Decode(&columns); err != nil {
		return err
	}
	if err := expect(dec, "rows", json.Delim('[')); err != nil {
		return err
	}
	names, right := make([]string, len(columns)), make([]bool, len(columns))
	for i, c := range columns {
		names[i], right[i] = c.Name, isNumber(c.Type)
	}
	t := newTable(a.out, names, right)
	for dec.More() {
		var row []json.RawMessage
		if err := dec.Decode(&row); err != nil {
			return errors.Join(t.close(), err)
		}
		cells := make([]string, len(row))
		for i, v := range row {
			cells[i] = cell(v)
		}
		t.add(cells)
	}
	// What follows the rows tells a whole answer from a cut one.
	if err := expect(dec, json.Delim(']'), json.Delim('}')); err != nil {
		return errors.Join(t.close(), err)
	}
	if err := t.close(); err != nil {
		return err
	}
	noun := "rows"
	if t.rows == 1 {
		noun = "row"
	}
	_, err := fmt.Fprintf(a.out, "(%d %s, version %s)\n", t.rows, noun, version)
	return err
}

func expect(dec *json.Decoder, tokens ...json.Token) error {
	for _, want := range tokens {
		got, err := dec.Token()
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("the answer is not a query's: %v in place of %v", got, want)
		}
	}
	return nil
}

// cell words a value: NULL bare, strings without quotes, all else as JSON.
func cell(v json.RawMessage) string {
	if bytes.Equal(v, []byte("null")) {
		return "NULL"
	}
	var text string
	if v[0] == '"' && json.Unmarshal(v, &text) == nil {
		return text
	}
	return string(v)
}

func isNumber(kind string) bool {
	kind, _, _ = strings.Cut(kind, "(")
	switch kind {
	case "TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UTINYINT", "USMALLINT", "UINTEGER", "UBIGINT", "UHUGEINT", "FLOAT", "DOUBLE", "DECIMAL":
		return true
	}
	return false
}
