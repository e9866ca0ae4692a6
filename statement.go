package viewkeeper

import "time"

// Kind tells what a name stands for.
type Kind string

// The kinds. Macros, types and files occur only among the things that a
// definition reads.
const (
	KindView         Kind = "view"         // a plain definition
	KindMaterialized Kind = "materialized" // a materialized definition
	KindRelation     Kind = "relation"     // a base relation
	KindDefinition   Kind = "definition"   // either kind of definition, as something that is read
	KindMacro        Kind = "macro"
	KindType         Kind = "type"
	KindFile         Kind = "file"
)

// IsDefinition reports whether k is one of the two kinds of definition.
func (k Kind) IsDefinition() bool { return k == KindView || k == KindMaterialized }

// Noun gives the words for k in a message: "materialized view", "base relation".
func (k Kind) Noun() string {
	switch k {
	case KindMaterialized:
		return "materialized view"
	case KindRelation:
		return "base relation"
	}
	return string(k)
}

// Submission is one record of the definitions topic: the text and all that came
// with it.
type Submission struct {
	// Key is the record's key. SQL is its value, byte for byte; Tombstone says
	// that it was null or empty, which drops the view that Key names.
	Key       string
	SQL       string
	Tombstone bool

	// ID is the statement id: any text of up to 128 bytes without ':', or
	// <topic id>:<offset> when the producer gave none.
	ID string
	// Author is what the producer says, unverified.
	Author string
	Reason string
	// ExpectVersion is the version that the single target must have, 0 that it
	// must not exist; nil asks nothing.
	ExpectVersion *Version
	// HeaderError says what is wrong with the record's headers, or is "". The
	// judge refuses such a statement with code OPTION.
	HeaderError string
	Traceparent string

	// Offset is the record's offset, At the time that the broker gave it, UTC.
	Offset int64
	At     time.Time
}

// Fragment is a piece of a statement's text that the engine reads: a body or an
// option's query. Text is what the engine gets: the literal's content, with white
// space that the engine does not know replaced by as many spaces.
type Fragment struct {
	Text string
	// Map translates offsets in Text to offsets in the submitted text. Each
	// entry says that Text[At:] up to the next entry lies at Source. Sorted by At.
	Map []Segment
}

// Segment is one run of a Fragment that was copied without a change in length.
type Segment struct{ At, Source int }

// Source gives the place in the submitted text of an offset in f.Text; -1 stays -1.
func (f Fragment) Source(offset int) int {
	if offset < 0 {
		return -1
	}
	src := offset
	for _, s := range f.Map {
		if s.At > offset {
			break
		}
		src = s.Source + offset - s.At
	}
	return src
}

// Statement is one parsed DDL statement. The set is closed: *Create, *Drop,
// *Rename, *Comment and *ChangeSet.
type Statement interface {
	// Targets are the names that the statement is about, in the order written.
	Targets() []Name
	isStatement()
}

// Create is CREATE [OR REPLACE] [MATERIALIZED] VIEW.
type Create struct {
	Name        Name
	Kind        Kind // KindView or KindMaterialized
	OrReplace   bool
	IfNotExists bool
	// Columns is the column list as written, unquoted, not folded; nil when absent.
	Columns []string
	// Body is the query of a plain definition.
	Body Fragment
	// Materialized holds the options of a materialized one, else nil.
	Materialized *Materialized
	// SQL is the statement's own text without a closing semicolon, byte for byte;
	// Offset is where it starts in the submitted text.
	SQL    string
	Offset int
	// NameOffset is where the name starts in the submitted text.
	NameOffset int
	// Canonical is equal for two statements exactly when their definitions are
	// the same text by docs/language.md: tokens, comments dropped, keywords and unquoted
	// names folded, options in any order, OR REPLACE and IF NOT EXISTS left out.
	Canonical string
}

// OnReplace says what becomes of partitions already built.
type OnReplace string

// The policies of ON REPLACE.
const (
	OnReplaceKeep    OnReplace = "KEEP"
	OnReplaceRebuild OnReplace = "REBUILD"
)

// Materialized is the options of a materialized definition, well formed.
type Materialized struct {
	Extract  Fragment // with {begin} and {end}
	CountSrc Fragment // with {begin} and {end}
	Merge    Fragment // with {source}
	// MinTimeColumn and MaxTimeColumn are the same when time_column was given.
	MinTimeColumn string
	MaxTimeColumn string
	// UpdateGroup is 0 when it is to be derived.
	UpdateGroup int32
	// SourceDelta and MergeDelta are the lengths of a source and of a merge
	// partition; MergeDelta is a whole multiple of SourceDelta.
	SourceDelta time.Duration
	MergeDelta  time.Duration
	// SortOrder is the columns of merge_sort_order, nil when absent.
	SortOrder []SortColumn
	OnReplace OnReplace
	// Places maps an option's name to where its value starts in the submitted text.
	Places map[string]int
}

// SortColumn is one column of merge_sort_order.
type SortColumn struct {
	Name string
	Desc bool
	// Offset is where the column stands in the submitted text, -1 if unknown.
	Offset int
}

// Drop is DROP [MATERIALIZED] VIEW.
type Drop struct {
	Names    []Name
	Offsets  []int // where each name starts in the submitted text
	Kind     Kind  // KindView or KindMaterialized, or KindDefinition for "of either kind" (a tombstone)
	IfExists bool
	Cascade  bool
}

// Rename is ALTER VIEW name RENAME TO view; both have one schema.
type Rename struct {
	From, To             Name
	FromOffset, ToOffset int
}

// Comment is COMMENT ON VIEW. A nil Text removes the comment.
type Comment struct {
	Name       Name
	NameOffset int
	Text       *string
}

// ChangeSet is BEGIN; ...; COMMIT: all or nothing. It holds no other change set.
type ChangeSet struct{ Statements []Statement }

// Targets gives the created name.
func (s *Create) Targets() []Name { return []Name{s.Name} }

// Targets gives the dropped names.
func (s *Drop) Targets() []Name { return s.Names }

// Targets gives the old and the new name.
func (s *Rename) Targets() []Name { return []Name{s.From, s.To} }

// Targets gives the commented name.
func (s *Comment) Targets() []Name { return []Name{s.Name} }

// Targets gives those of all statements in order.
func (s *ChangeSet) Targets() []Name {
	var names []Name
	for _, st := range s.Statements {
		names = append(names, st.Targets()...)
	}
	return names
}

func (*Create) isStatement()    {}
func (*Drop) isStatement()      {}
func (*Rename) isStatement()    {}
func (*Comment) isStatement()   {}
func (*ChangeSet) isStatement() {}
