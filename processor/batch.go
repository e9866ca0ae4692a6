package processor

import (
	"slices"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// commitRow gives the commit row of a batch, of which one item at least has a version.
func commitRow(before *codec.Commit, batch []*item) *codec.Commit {
	decided := make([]fold.Decided, len(batch))
	for i, it := range batch {
		decided[i] = fold.Decided{Version: it.version, Decision: it.decision, Rows: it.rows, ID: it.id}
	}
	return fold.CommitRow(before, decided)
}

// sizeOf gives what a decided statement adds to a commit row, in bytes of JSON.
func sizeOf(decision codec.Message, rows []viewkeeper.Row, id *codec.ID) int {
	n := len(decision.Value)
	for _, r := range rows {
		_, value := codec.EncodeRecord(codec.Row{Row: r})
		n += len(value)
	}
	if id != nil {
		n += len(id.ID) + 128
	}
	return n
}

// The most of a text, and of a list, that a decision keeps which is over the limit
// for a record.
const (
	keptText  = 64 << 10
	keptShort = 4 << 10
	keptItems = 20
)

// tooLarge gives the refusal of a statement whose outcome fits no record.
func tooLarge(d viewkeeper.Decision, size, limit int) viewkeeper.Decision {
	e := viewkeeper.Errorf(viewkeeper.CodeTooLarge,
		"what this statement makes of the catalog takes %d bytes, and a record holds %d; split it, or make the definitions smaller", size, limit)
	d.Verdict, d.Code, d.Message, d.Position = viewkeeper.Refused, e.Code, e.Message, nil
	d.Repaired, d.Dropped, d.Rows = nil, nil, nil
	return shrink(d)
}

// shrink cuts a decision down so that it fits a record whatever it was about. What
// is cut is the statement's own text and the lists of what it is about; the verdict
// and its reason stay.
func shrink(d viewkeeper.Decision) viewkeeper.Decision {
	d.SQL = cut(d.SQL, keptText)
	d.Message = cut(d.Message, keptShort)
	d.Author, d.Reason = cut(d.Author, keptShort), cut(d.Reason, keptShort)
	d.Changed = first(d.Changed)
	for i := range d.Changed {
		d.Changed[i].ColumnsBefore = first(d.Changed[i].ColumnsBefore)
		d.Changed[i].ColumnsAfter = first(d.Changed[i].ColumnsAfter)
	}
	d.Broken = first(d.Broken)
	for i := range d.Broken {
		d.Broken[i].Reason = cut(d.Broken[i].Reason, keptShort)
	}
	d.Warnings = first(d.Warnings)
	for i := range d.Warnings {
		d.Warnings[i].Message = cut(d.Warnings[i].Message, keptShort)
	}
	d.Repaired, d.Dropped = first(d.Repaired), first(d.Dropped)
	d.Normalize()
	return d
}

// first gives a copy of the first few of a list.
func first[T any](list []T) []T { return slices.Clone(list[:min(len(list), keptItems)]) }

// cut gives the first bytes of a text, whole characters only.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	for most > 0 && !utf8.RuneStart(s[most]) {
		most--
	}
	return s[:most]
}
