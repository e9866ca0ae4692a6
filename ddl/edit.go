package ddl

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
)

// Edit puts Text in place of the bytes [At, End) of a text. At == End inserts.
type Edit struct {
	At, End int
	Text    string
}

// OffsetMap leads from an edited text back to the one before. The zero OffsetMap
// changes nothing.
type OffsetMap struct{ runs []run }

// run is a stretch of the edited text that starts at at. A copied one lies at
// source in the old text; all of a new one belongs to the place source.
type run struct {
	at, source int
	copied     bool
}

// Source gives the place in the old text of an offset in the edited one. What an
// edit put in belongs to where that edit stands. -1, no place, stays -1.
func (m OffsetMap) Source(offset int) int {
	if offset < 0 {
		return -1
	}
	i := sort.Search(len(m.runs), func(i int) bool { return m.runs[i].at > offset }) - 1
	if i < 0 {
		return offset
	}
	if r := m.runs[i]; !r.copied {
		return r.source
	} else {
		return r.source + offset - r.at
	}
}

// ApplyEdits makes all edits at once; their places are those of text itself, in
// any order. It panics when two of them overlap or one lies outside text, which
// is a mistake of the program, never of its input. Two insertions at one place
// go in the order given.
func ApplyEdits(text string, edits []Edit) (string, OffsetMap) {
	if len(edits) == 0 {
		return text, OffsetMap{}
	}
	edits = slices.Clone(edits)
	slices.SortStableFunc(edits, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.End, b.End))
	})
	var b strings.Builder
	m := OffsetMap{runs: make([]run, 0, 2*len(edits)+1)}
	done := 0
	for _, e := range edits {
		if e.At < done || e.End < e.At || e.End > len(text) {
			panic(fmt.Sprintf("ddl: edit [%d, %d) overlaps one that ends at %d or lies outside a text of %d bytes", e.At, e.End, done, len(text)))
		}
		if e.At > done {
			m.runs = append(m.runs, run{at: b.Len(), source: done, copied: true})
			b.WriteString(text[done:e.At])
		}
		if e.Text != "" {
			m.runs = append(m.runs, run{at: b.Len(), source: e.At})
			b.WriteString(e.Text)
		}
		done = e.End
	}
	m.runs = append(m.runs, run{at: b.Len(), source: done, copied: true})
	b.WriteString(text[done:])
	return b.String(), m
}
