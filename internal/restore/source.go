package restore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Kind says what a source is.
type Kind string

// The kinds.
const (
	Export  Kind = "export"
	Copy    Kind = "copy"
	InTable Kind = "table"
	Decided Kind = "decisions"
)

// Source is a catalog as something has it. What was decided after it is taken from the
// decisions topic.
type Source struct {
	Kind Kind
	// Place is where it is, for people.
	Place   string
	Version viewkeeper.Version
	// Epoch is the highest that it speaks of.
	Epoch viewkeeper.Epoch
	// DefinitionsTopic is the topic that its versions count in, and VersionBase what is
	// added to that topic's offsets; "" when it does not say.
	DefinitionsTopic string
	VersionBase      viewkeeper.Version
	// Rows are its definitions, and drops.
	Rows []viewkeeper.Row
	// IDs are the statement ids that it knows.
	IDs []codec.ID
}

// FromDecisions is the source that has nothing, so that all is taken from the
// decisions topic.
func FromDecisions(topic string) *Source { return &Source{Kind: Decided, Place: topic} }

// FromTable gives what a table holds, of this topic or of a copy. Where the commit row
// is gone, its rows are still what was committed: none is written before its commit row
// is acked.
func FromTable(kind Kind, place string, t *Table) (*Source, error) {
	f := t.Fold
	if key := f.NewerOwner(); key != "" {
		return nil, fmt.Errorf("the record %s is of a newer format than this program's; restore with the program that wrote it", key)
	}
	if kind == Copy && f.Damaged() {
		return nil, fmt.Errorf("the copy in %s lacks definitions, as the table did when it was read", place)
	}
	s := &Source{Kind: kind, Place: place, Version: f.Version(), Epoch: max(f.Epoch(), f.EpochBase()), Rows: f.Rows()}
	if c := f.Commit(); c != nil {
		s.DefinitionsTopic, s.VersionBase = c.DefinitionsTopic, c.VersionBase
	} else {
		s.Version = t.version
		s.Rows = slices.SortedFunc(maps.Values(t.best), func(a, b viewkeeper.Row) int { return a.Name.Compare(b.Name) })
	}
	for id := range f.IDs {
		s.IDs = append(s.IDs, id)
	}
	return s, nil
}
