package viewkeeper_test

import (
	"strings"
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

// A place is in the text, and what comes later in it does not come before.
func FuzzPosition(f *testing.F) {
	f.Add("SELECT 1\nFROM é", 12, 5)
	f.Add("\r\n\xff", 3, -1)
	f.Fuzz(func(t *testing.T, text string, a, b int) {
		if a > b {
			a, b = b, a
		}
		p, q := viewkeeper.PositionAt(text, a), viewkeeper.PositionAt(text, b)
		for _, x := range []*viewkeeper.Position{p, q} {
			if x != nil && (x.Offset < 0 || x.Offset > len(text) || x.Line < 1 || x.Column < 1 || x.Line > 1+strings.Count(text, "\n") || x.Column > len(text)+1) {
				t.Fatalf("%+v", x)
			}
		}
		if (p == nil) != (a < 0) || (q == nil) != (b < 0) {
			t.Fatal(p, q)
		}
		if p != nil && (p.Line > q.Line || p.Line == q.Line && p.Column > q.Column) {
			t.Fatalf("%+v comes behind %+v", p, q)
		}
	})
}
