package processor

import (
	"maps"
	"slices"
	"unicode/utf8"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// commitRow gives the commit row of a batch, of which one item at least has a
// version. It goes on from the row before: what that says of the catalog as a whole,
// in fields that a newer program added too, stays.
func commitRow(before *codec.Commit, batch []*item) *codec.Commit {
	c := *before
	c.Decisions, c.Rows, c.IDs = nil, nil, nil
	c.Extra = maps.Clone(before.Extra)
	for _, ofTheBatch := range []string{"decisions", "rows", "ids"} {
		delete(c.Extra, ofTheBatch)
	}
	rows := map[viewkeeper.Name]viewkeeper.Row{}
	for _, it := range batch {
		if it.version == 0 {
			continue
		}
		c.Version = it.version
		if it.decision != nil {
			c.Decisions = append(c.Decisions, *it.decision)
		}
		for _, r := range it.rows {
			rows[r.Name] = r // the last one of a name counts
		}
		if it.id != nil {
			c.IDs = append(c.IDs, *it.id)
		}
	}
	for _, r := range rows {
		r.Epoch = c.Epoch
		c.Rows = append(c.Rows, r)
	}
	slices.SortFunc(c.Rows, func(a, b viewkeeper.Row) int { return a.Name.Compare(b.Name) })
	return &c
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
