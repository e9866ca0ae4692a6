package rowtext

import (
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
)

// Batch prints the rows of one record batch. It is used by one goroutine and
// only while the batch is held.
type Batch struct {
	columns []column
	object  object
	scratch []byte
}

// NewBatch prepares the printing of a batch. names are the keys of AppendObject,
// one a column, see [UniqueNames].
func NewBatch(b arrow.RecordBatch, names []string) *Batch {
	batch := &Batch{}
	var fields []arrow.Field
	for i, a := range b.Columns() {
		batch.columns = append(batch.columns, newColumn(a))
		fields = append(fields, arrow.Field{Name: names[i]})
	}
	batch.object = newObject(fields, batch.columns)
	return batch
}

// AppendArray appends row i as a JSON array.
func (b *Batch) AppendArray(dst []byte, i int) []byte {
	dst = append(dst, '[')
	for c, column := range b.columns {
		if c > 0 {
			dst = append(dst, ',')
		}
		dst = column.appendJSON(dst, i)
	}
	return append(dst, ']')
}

// AppendObject appends row i as a JSON object.
func (b *Batch) AppendObject(dst []byte, i int) []byte { return b.object.append(dst, i) }

// AppendCSV appends row i as a CSV line, its end included.
func (b *Batch) AppendCSV(dst []byte, i int) []byte {
	for c, column := range b.columns {
		if c > 0 {
			dst = append(dst, ',')
		}
		if !column.array.IsNull(i) {
			b.scratch = column.text(b.scratch[:0], i)
			dst = AppendField(dst, b.scratch)
		}
	}
	return append(dst, '\n')
}

// UniqueNames numbers the column names that came before, so that all can be keys
// of one object: a, a_1. The numbers of a name go on where they were, since trying
// them from 1 for each of thousands of equal names would hold the keeper for minutes.
func UniqueNames(names []string) []string {
	seen := make(map[string]bool, len(names))
	next := make(map[string]int)
	unique := make([]string, len(names))
	for i, n := range names {
		unique[i] = n
		for seen[unique[i]] {
			next[n]++
			unique[i] = fmt.Sprintf("%s_%d", n, next[n])
		}
		seen[unique[i]] = true
	}
	return unique
}
