package viewkeeper_test

import (
	"testing"

	"github.com/viewkeeper/viewkeeper"
)

func TestPositionAt(t *testing.T) {
	text := "SELECT é,\r\n  x\nFROM t"
	for _, c := range []struct{ offset, line, column int }{
		{0, 1, 1}, {7, 1, 8}, {9, 1, 9}, {12, 2, 1}, {14, 2, 3}, {16, 3, 1}, {len(text), 3, 7},
	} {
		p := viewkeeper.PositionAt(text, c.offset)
		if p == nil || p.Offset != c.offset || p.Line != c.line || p.Column != c.column {
			t.Errorf("offset %d is %+v; want line %d column %d", c.offset, p, c.line, c.column)
		}
	}
	if p := viewkeeper.PositionAt(text, -1); p != nil {
		t.Errorf("no place became %+v", p)
	}
	if p := viewkeeper.PositionAt(text, len(text)+9); p.Offset != len(text) {
		t.Errorf("an offset past the end became %+v", p)
	}
}

func TestFragmentSource(t *testing.T) {
	// 'it''s x' as a literal that starts at 10: the text is it's x.
	f := viewkeeper.Fragment{Text: "it's x", Map: []viewkeeper.Segment{{At: 0, Source: 11}, {At: 3, Source: 15}}}
	for at, want := range map[int]int{-1: -1, 0: 11, 2: 13, 3: 15, 5: 17} {
		if got := f.Source(at); got != want {
			t.Errorf("Source(%d) = %d, want %d", at, got, want)
		}
	}
}
