package registry

import (
	"context"
	"errors"
	"fmt"

	"github.com/viewkeeper/viewkeeper"
)

// Planner is what the registry asks of an engine. Types are the engine's own
// strings; the graph of who reads whom, and cycles, are the registry's.
//
// A planner keeps one scratch catalog: the base's relations and macros, and one
// stub for each definition, an empty relation with the definition's columns. A
// query bound over the stubs binds as it would over the definitions themselves,
// at the cost of one bind whatever the depth below it.
//
// Every call is coarse, since it may cross to another process: the registry puts
// all that it wants to know at one moment in one call. A planner serves one
// caller at a time. A user's mistake is a *PlanError inside the answer; a Go error
// is the engine's own trouble: a *LostError when it died or outlasted its
// deadline (the scratch catalog is gone and the next call begins with an empty
// one), the context's error when the caller gave up.
type Planner interface {
	// Describe tells what the engine is and what the base holds.
	Describe(ctx context.Context) (*Engine, error)

	// Parse analyses each query by itself: the gate, what it reads, how complex
	// it is. It looks at no definition and has no side effects; the answer for one
	// text is always the same.
	Parse(ctx context.Context, queries []Query) ([]Parsed, error)

	// Bind changes the scratch catalog, then plans each query over it. The
	// changes are a trial until Settle; a second Bind adds to the same trial.
	// Queries do not see one another.
	Bind(ctx context.Context, stubs []Stub, queries []Query) ([]Bound, error)

	// Settle ends the trial: keep makes its stubs the scratch catalog, otherwise
	// they are as if they had never been. Without an open trial it does nothing.
	Settle(ctx context.Context, keep bool) error

	// Reset empties the scratch catalog of stubs and ends an open trial.
	Reset(ctx context.Context) error

	// Close ends the engine.
	Close() error
}

// Applier is the optional side of an engine that answers queries through the
// definitions: real views in place of stubs.
type Applier interface {
	// Apply makes all changes in one transaction, after which queries see them all
	// and run at version; before it, or after an error, none of them. With reset
	// the definitions that are not among the changes are gone. Changes come in
	// dependency order for what they create; drops may stand anywhere.
	//
	// An *ApplyError names definitions that the engine refuses, at least one of
	// those that are to blame: the caller leaves them out and applies the rest.
	// They need not be among the changes: a view may have been lost since it was
	// applied. Any other error is the engine's own trouble, or the context's.
	Apply(ctx context.Context, version viewkeeper.Version, reset bool, changes []Apply) error
}

// Merger is the optional side of a planner that runs merge queries over rows of its
// own making, to find those that cannot merge what they merged. It is sound and
// not complete: a counterexample is one whatever the data, and for what a planner
// cannot be sure of it says that it does not know.
type Merger interface {
	// MergeTwice answers for each merge, in order. It reads and changes nothing of
	// the scratch catalog, and ends no trial. The errors are those of a [Planner].
	MergeTwice(ctx context.Context, merges []Merge) ([]Algebra, error)
}

// Merge is a merge query to be run.
type Merge struct {
	// Query is the qualified merge query. It has been bound.
	Query Query `json:"query"`
	// Source is the relation that {source} became in it, Columns what that has.
	Source  viewkeeper.Name     `json:"source"`
	Columns []viewkeeper.Column `json:"columns"`
}

// Algebra is what a planner found out about a merge query. The zero value says that
// merging once more changed nothing.
type Algebra struct {
	// Unknown says why the planner does not know, or is "".
	Unknown string `json:"unknown,omitempty"`
	// Counter is a case in which merging once more changed something, or nil.
	Counter *Counterexample `json:"counter,omitempty"`
	// Err is ENGINE_KILLED or ENGINE_TIMEOUT when the registry puts it there.
	Err *PlanError `json:"err,omitempty"`
}

// Counterexample is one row that a merge query gave, and what it became when the
// query was given its own result. Values are as the engine prints them, "NULL" for
// none, in the order of the columns.
type Counterexample struct {
	Once []string `json:"once"`
	// Twice is nil when no row is left that the first could have become, and Once is
	// nil when a row came from nowhere.
	Twice []string `json:"twice"`
	// Changed are the indexes of the columns that differ, when both rows are there.
	Changed []int `json:"changed,omitempty"`
}

// Apply is one change to the real views.
type Apply struct {
	Name viewkeeper.Name `json:"name"`
	// Query is the qualified query of the view; "" drops the view.
	Query string `json:"query,omitempty"`
	// Columns is the column list, nil when the query's own names hold.
	Columns []string `json:"columns,omitempty"`
	// Empty is set for a materialized definition instead of Query: until its
	// partitions are kept, it reads as an empty relation of these columns.
	Empty []viewkeeper.Column `json:"empty,omitempty"`
	// Reads are the definitions that Query reads, each once: they are among the
	// changes, or were applied before. Files says that it reads files.
	Reads []viewkeeper.Name `json:"reads,omitempty"`
	Files bool              `json:"files,omitempty"`
}

// ApplyError is the applier's no to definitions that the planner had bound: a file
// that vanished between the two, for instance. Nothing was applied.
type ApplyError struct {
	// Refused has each definition once, and is never empty. One that only reads
	// another one of them may be among them.
	Refused []RefusedApply
}

// RefusedApply is one definition that an applier refuses, and why.
type RefusedApply struct {
	Name viewkeeper.Name `json:"name"`
	// Reason is a sentence for people, as that of a PlanError.
	Reason string `json:"reason"`
}

// Error names the first definition and says why it was refused.
func (e *ApplyError) Error() string {
	if len(e.Refused) == 0 {
		return "definitions could not be applied"
	}
	first := fmt.Sprintf("%s could not be applied: %s", e.Refused[0].Name, e.Refused[0].Reason)
	if n := len(e.Refused) - 1; n > 0 {
		first += fmt.Sprintf(" (and %d more)", n)
	}
	return first
}

// AsRefused gives the ApplyError in err's chain, or nil.
func AsRefused(err error) *ApplyError {
	var e *ApplyError
	if errors.As(err, &e) {
		return e
	}
	return nil
}

// Engine is what a planner says of itself and of its base.
type Engine struct {
	// Name is the engine and its version, "duckdb 1.5.6".
	Name string `json:"name"`
	// BaseDigest is equal for two bases exactly when they hold the same objects
	// with the same schemas and the same texts.
	BaseDigest string `json:"base_digest"`
	// Answers is equal for two planners exactly when they give the same answers over
	// one base, as far as files do not decide: the program, its limits. "" when the
	// planner does not say; then no answer of its outlives it.
	Answers string `json:"answers,omitempty"`
	// Relations is the base's tables and views.
	Relations []Relation `json:"relations"`
	// Macros and Types are the base's, folded, qualified as schema.name.
	Macros []Macro  `json:"macros"`
	Types  []string `json:"types"`
}

// Relation is a table or a view of the base.
type Relation struct {
	Name    viewkeeper.Name     `json:"name"`
	Columns []viewkeeper.Column `json:"columns"`
	// Volatile says why a view of the base is volatile or depends on time, or is "".
	Volatile string `json:"volatile,omitempty"`
}

// Macro is a scalar or table macro of the base. References are the relations that
// its text reads, as written, also through other macros.
type Macro struct {
	Name       viewkeeper.Name `json:"name"`
	Table      bool            `json:"table"`
	References []TableRef      `json:"references"`
	// Volatile says why the macro is volatile or depends on time, or is "".
	Volatile string `json:"volatile,omitempty"`
}

// Query is a text to parse or to plan.
type Query struct {
	// Text is one query. To Bind it comes qualified: every reference to a relation
	// has its schema.
	Text string `json:"text"`
	// Origin is set for Bind when Parse was given another text: that, of which Text
	// differs only in the schemas of references. A planner may use what it remembers of it.
	Origin string `json:"origin,omitempty"`
	// Columns is a column list over the query's output, or nil.
	Columns []string `json:"columns,omitempty"`
	// Strict asks the gate to refuse what a materialized definition's query may
	// not hold, with code VOLATILE: anything volatile or dependent on time.
	Strict bool `json:"strict,omitempty"`
	// Parquet asks Bind for the types that the output has after it was written to
	// a Parquet file and read back, in Bound.Parquet.
	Parquet bool `json:"parquet,omitempty"`
	// Schemas is the definition's own schema, for macros and types that are named
	// without one; "" is main.
	Schema string `json:"schema,omitempty"`
}

// Parsed is what the text of a query says by itself.
type Parsed struct {
	// Err is the gate's refusal, or nil. Nothing else is set with it.
	Err *PlanError `json:"err,omitempty"`

	// References are the relations that the text reads itself, CTE scoping
	// resolved, one for each place, in the order of their places.
	References []TableRef `json:"references,omitempty"`
	// Macros are the base's macros that the text calls, Types the base's types
	// that it names, Files the paths that it reads. Sorted, once each.
	Macros []viewkeeper.Name `json:"macros,omitempty"`
	Types  []string          `json:"types,omitempty"`
	Files  []string          `json:"files,omitempty"`
	// Volatile is the first thing that is volatile or depends on time, also in
	// the macros that it calls, or nil.
	Volatile *PlanError `json:"volatile,omitempty"`

	// Layers is the largest number of GROUP BY, window and EXISTS layers on one
	// path through the text; each TableRef has those above it. Nesting and Joins
	// are within the text. Leaves counts what it scans: references, files,
	// table functions.
	Layers  int `json:"layers,omitempty"`
	Nesting int `json:"nesting,omitempty"`
	Joins   int `json:"joins,omitempty"`
	Leaves  int `json:"leaves,omitempty"`

	// Scopes are the SELECT nodes, outer before inner, for the warnings.
	Scopes []Scope `json:"scopes,omitempty"`
}

// TableRef is one place where a text reads a relation.
type TableRef struct {
	// Schema is "" when the text gives none. Both parts are folded.
	Schema string `json:"schema,omitempty"`
	View   string `json:"view"`
	// At and End are the place of the name, schema included, in the query's text.
	// -1 for a reference that is not in the text itself but in a macro.
	At  int `json:"at"`
	End int `json:"end"`
	// Macro is the macro that the reference comes through, or the zero Name.
	Macro viewkeeper.Name `json:"macro,omitzero"`
	// Unused says that it stands in a CTE that nothing reads, which the engine
	// never binds.
	Unused bool `json:"unused,omitempty"`
	// Layers is the number of layers above the reference, see Parsed.Layers.
	Layers int `json:"layers,omitempty"`
}

// Scope is one SELECT node, as much of it as the warnings need.
type Scope struct {
	// Parent is the index of the enclosing scope that this one may take columns
	// from (it is a subquery expression or lateral), or -1.
	Parent int `json:"parent"`
	// Output says that the scope makes the query's output columns, itself or as a
	// side of a set operation.
	Output bool `json:"output,omitempty"`
	// SetOperation says that the scope is a side of a UNION, INTERSECT or EXCEPT
	// that matches columns by position.
	SetOperation bool `json:"set_operation,omitempty"`
	// Star says that the select list has a * (or alias.*).
	Star bool `json:"star,omitempty"`
	// Sources are the FROM items.
	Sources []Source `json:"sources,omitempty"`
	// Items are the select list, * left out.
	Items []Item `json:"items,omitempty"`
	// Columns are the unqualified column names used in the scope itself.
	Columns []ColumnUse `json:"columns,omitempty"`
	// Joins are its NATURAL and USING joins.
	Joins []Join `json:"joins,omitempty"`
}

// Source is one item of a FROM clause.
type Source struct {
	// Reference is an index into Parsed.References, or -1 for a subquery, a CTE, a
	// function or a file, whose columns the text alone does not give.
	Reference int    `json:"reference"`
	Alias     string `json:"alias,omitempty"`
}

// Item is one expression of a select list.
type Item struct {
	// Name is the alias, or the column's name where the item is a column; "" when
	// the engine makes up a name.
	Name string `json:"name,omitempty"`
	// Aliased says that the name was given with AS.
	Aliased bool `json:"aliased,omitempty"`
	At      int  `json:"at"`
}

// ColumnUse is one unqualified column name in an expression.
type ColumnUse struct {
	Name string `json:"name"`
	At   int    `json:"at"`
	// Clause is where it stands: "select", "where", "group", "having", "qualify",
	// "order", "join".
	Clause string `json:"clause"`
}

// Join is one NATURAL or USING join. Left and Right are indexes into Sources.
type Join struct {
	Natural bool     `json:"natural,omitempty"`
	Using   []string `json:"using,omitempty"`
	Left    []int    `json:"left"`
	Right   []int    `json:"right"`
	At      int      `json:"at"`
}

// Stub is a change to the scratch catalog.
type Stub struct {
	Name viewkeeper.Name `json:"name"`
	// Columns is what the definition gives; nil removes the stub.
	Columns []viewkeeper.Column `json:"columns,omitempty"`
}

// Bound is the answer for one planned query.
type Bound struct {
	Err     *PlanError          `json:"err,omitempty"`
	Columns []viewkeeper.Column `json:"columns,omitempty"`
	// Parquet is the columns after a Parquet round trip, when they were asked for.
	Parquet []viewkeeper.Column `json:"parquet,omitempty"`
}

// PlanError is the engine's or the gate's no to a query.
type PlanError struct {
	// Code is SYNTAX, NOT_ONE_QUERY, NOT_ALLOWED, VOLATILE, BIND, COMPLEXITY, or
	// ENGINE_KILLED or ENGINE_TIMEOUT when the registry puts it there.
	Code viewkeeper.Code `json:"code"`
	// Message is the reason in one or two sentences, without the engine's echo of
	// the text and with long candidate lists cut.
	Message string `json:"message"`
	// At is the place in the query's text, or -1.
	At int `json:"at"`
}

// Error gives the message with its code.
func (e *PlanError) Error() string { return string(e.Code) + ": " + e.Message }

// LostError says that the engine died, or was killed at a deadline or for its
// memory, during a call. Its scratch catalog is gone.
type LostError struct {
	// Timeout is true when the engine was killed because it outlasted a deadline.
	Timeout bool
	// Detail says how it ended: "killed: resident memory 1.6 GB over the limit of 1.5 GB".
	Detail string
}

// Error says what happened.
func (e *LostError) Error() string { return "the engine was lost: " + e.Detail }

// AsLost gives the LostError in err's chain, or nil.
func AsLost(err error) *LostError {
	var l *LostError
	if errors.As(err, &l) {
		return l
	}
	return nil
}
