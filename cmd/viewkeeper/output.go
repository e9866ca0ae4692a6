package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"

	"github.com/viewkeeper/viewkeeper/server"
)

// The forms of output.
const (
	formTable = "table"
	formJSON  = "json"
	formCSV   = "csv"
)

// form is what --output says, or what suits where the output goes.
func (a *app) form() string {
	switch {
	case a.Output != "":
		return a.Output
	case isTerminal(a.out):
		return formTable
	}
	return formJSON
}

// printRows prints rows of text: as a table, or as JSON objects in an array.
func (a *app) printRows(columns []string, rows [][]string) error {
	switch a.form() {
	case formJSON:
		list := make([]map[string]string, 0, len(rows))
		for _, row := range rows {
			object := map[string]string{}
			for i, c := range columns {
				object[c] = row[i]
			}
			list = append(list, object)
		}
		return a.printJSON(list)
	case formCSV:
		return usagef("--output csv is for the results of queries; this command prints a table or json")
	}
	t := newTable(a.out, columns, nil)
	for _, row := range rows {
		t.add(row)
	}
	return t.close()
}

// printJSON prints one document on one line.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// table prints rows in columns. The first rows are kept to find the columns'
// widths; what comes after them is printed as it comes, so that a large result
// needs no memory.
type table struct {
	w       *bufio.Writer
	columns []string
	right   []bool // columns of numbers
	widths  []int
	kept    [][]string
	flowing bool
	rows    int
	err     error
}

const (
	keptRows = 500
	maxWidth = 60 // of a column that is not the last one
)

func newTable(w io.Writer, columns []string, right []bool) *table {
	t := &table{w: bufio.NewWriterSize(w, 64<<10), columns: columns, right: right, widths: make([]int, len(columns))}
	if right == nil {
		t.right = make([]bool, len(columns))
	}
	t.measure(columns)
	return t
}

func (t *table) measure(row []string) {
	for i, cell := range row {
		places := width(oneLine(cell))
		if i < len(row)-1 {
			places = min(places, maxWidth)
		}
		t.widths[i] = max(t.widths[i], places)
	}
}

func (t *table) add(row []string) {
	t.rows++
	if t.flowing {
		t.print(row)
		return
	}
	t.measure(row)
	t.kept = append(t.kept, row)
	if len(t.kept) == keptRows {
		t.flow()
	}
}

// flow prints the head and what was kept.
func (t *table) flow() {
	t.flowing = true
	t.print(t.columns)
	rule := make([]string, len(t.columns))
	for i := range rule {
		rule[i] = strings.Repeat("─", t.widths[i])
	}
	t.print(rule)
	for _, row := range t.kept {
		t.print(row)
	}
	t.kept = nil
}

func (t *table) print(row []string) {
	var line bytes.Buffer
	for i, cell := range row {
		cell = oneLine(cell)
		if i > 0 {
			line.WriteString("  ")
		}
		if i < len(row)-1 && width(cell) > t.widths[i] {
			cell = runewidth.Truncate(cell, max(t.widths[i], 1), "…")
		}
		pad := strings.Repeat(" ", max(0, t.widths[i]-width(cell)))
		switch {
		case t.right[i]:
			line.WriteString(pad + cell)
		case i == len(row)-1:
			line.WriteString(cell)
		default:
			line.WriteString(cell + pad)
		}
	}
	if _, err := fmt.Fprintln(t.w, strings.TrimRight(line.String(), " ")); err != nil && t.err == nil {
		t.err = err
	}
}

func (t *table) close() error {
	if !t.flowing {
		t.flow()
	}
	return errors.Join(t.err, t.w.Flush())
}

// width is the number of places that s takes on a terminal.
func width(s string) int {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return runewidth.StringWidth(s)
		}
	}
	return len(s)
}

// oneLine keeps a cell on its line.
func oneLine(s string) string {
	if !strings.ContainsAny(s, "\r\n\t") {
		return s
	}
	return strings.NewReplacer("\r\n", "⏎", "\n", "⏎", "\r", "⏎", "\t", " ").Replace(s)
}

// settingRows gives the settings as the server shows them.
func (a *app) settingRows() []server.Setting {
	var rows []server.Setting
	for _, s := range a.list() {
		rows = append(rows, server.Setting(s))
	}
	return rows
}
