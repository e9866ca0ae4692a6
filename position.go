package viewkeeper

import "unicode/utf8"

// Position is a place in the text of a statement as submitted.
type Position struct {
	// Offset counts bytes from 0.
	Offset int `json:"offset"`
	// Line and Column count from 1; Column counts characters.
	Line   int `json:"line"`
	Column int `json:"column"`
}

// PositionAt finds the position of a byte offset in text. An offset outside text
// is moved to its nearest end; a negative one gives nil, which is no place.
func PositionAt(text string, offset int) *Position {
	if offset < 0 {
		return nil
	}
	offset = min(offset, len(text))
	p := &Position{Offset: offset, Line: 1, Column: 1}
	for i := 0; i < offset; {
		if text[i] == '\n' {
			p.Line++
			p.Column = 1
			i++
			continue
		}
		_, size := utf8.DecodeRuneInString(text[i:])
		p.Column++
		i += size
	}
	return p
}
