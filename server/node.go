package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Node is the follower of the catalog that a server answers for. All methods are
// safe for concurrent use.
type Node interface {
	// Status is what the node says of itself now. The caller owns the value.
	Status() viewkeeper.Status

	// Current is the factory that the node serves, never nil.
	Current() *registry.Factory

	// WaitVersion returns nil when the node's factory has reached v, else the
	// context's error.
	WaitVersion(ctx context.Context, v viewkeeper.Version) error

	// WaitDecision waits until the record at offset is decided, and returns its
	// decision. When the owner knew the record's id already and decided nothing
	// new, it is the first decision of that id. It does not wait for the factory.
	WaitDecision(ctx context.Context, id string, offset int64) (viewkeeper.Decision, error)

	// Decision is what is known of a statement id: its decision, nil with seen
	// when its record was seen and is not decided yet, nil and false when it was
	// not seen here (yet).
	Decision(ctx context.Context, id string) (d *viewkeeper.Decision, seen bool, err error)

	// Decisions pages through the history, oldest first.
	Decisions(ctx context.Context, q DecisionQuery) (DecisionPage, error)

	// HistoryLength counts the decisions known here about the name.
	HistoryLength(name viewkeeper.Name) int

	// Nodes is the status of every live node, compared with the rest.
	Nodes() []viewkeeper.NodeStatus

	// WaitFleet waits until every live node has v, and tells who has it and who
	// has not. A node that leaves during the wait stops counting. The error is the
	// context's; without one nobody is missing.
	WaitFleet(ctx context.Context, v viewkeeper.Version) (reached, missing []string, err error)

	// Watch calls send for each version above from that changed something, in
	// order, each when the node's factory has it, until ctx ends or send fails.
	Watch(ctx context.Context, from viewkeeper.Version, send func(Event) error) error
}

// DecisionQuery asks for decisions.
type DecisionQuery struct {
	// Since is exclusive.
	Since viewkeeper.Version
	// Name asks for the decisions that changed, or would have changed, one
	// definition; the zero Name for all.
	Name viewkeeper.Name
	// Limit is the largest number of decisions in the page.
	Limit int
}

// DecisionPage is an answer to a DecisionQuery.
type DecisionPage struct {
	Decisions []viewkeeper.Decision
	// CompleteFrom is the version from which on nothing is missing here, while
	// the index still loads.
	CompleteFrom viewkeeper.Version
	// More says that the history goes on behind the last decision of the page.
	More bool
}

// Event is a catalog version that changed something.
type Event struct {
	Version viewkeeper.Version `json:"version"`
	Changed []viewkeeper.Name  `json:"changed"`
}

// Engine answers queries through the node's current factory.
type Engine interface {
	// References tells which tables of the schema vk a text may read.
	References(sql string) []string

	// Query plans q and starts it. A user's mistake is a *registry.PlanError, the
	// engine's end a *registry.LostError, else the context's error. Cancelling ctx
	// ends the query also after Query has returned; the caller closes the body.
	Query(ctx context.Context, q Query) (*Result, error)
}

// Query is one query.
type Query struct {
	SQL string
	// Timeout bounds the query to its last row.
	Timeout time.Duration
	// VK holds the rows of each table that References gave, as a JSON array of
	// objects in the shape of the HTTP answer with the same content.
	VK map[string]json.RawMessage
}

// Result is a started query.
type Result struct {
	// Version is that of the factory which answers.
	Version viewkeeper.Version
	Columns []viewkeeper.Column
	// Body is an Arrow IPC stream. It ends with io.EOF when the result is whole and
	// with another error when it is cut.
	//
	// So that rows need not wait for the next ones, a body may have a method Ready()
	// bool, which tells whether a read would not wait for the engine, and a WriteTo that
	// calls its writer's Flush() error before it waits.
	Body io.ReadCloser
}

// Emitter writes statements to the definitions topic.
type Emitter interface {
	// Emit writes one record and returns its offset once it is acked. Errors:
	// [ErrForbidden] and [ErrTooLarge], nothing was written; [ErrNotWritten],
	// nothing was written since no broker was reached; any other error leaves open
	// whether it was.
	Emit(ctx context.Context, sub viewkeeper.Submission) (offset int64, err error)
}

// The errors of an Emitter that say for sure that nothing was written.
var (
	ErrForbidden  = errors.New("no right to write to the definitions topic")
	ErrTooLarge   = errors.New("the record is over the topic's size limit")
	ErrNotWritten = errors.New("the statement was not written")
)

// Checker tells what the judge would say.
type Checker interface {
	// Check judges sub over the node's catalog without changing it, and says at
	// which version that catalog is.
	Check(ctx context.Context, sub viewkeeper.Submission) (viewkeeper.Decision, viewkeeper.Version, error)
}
