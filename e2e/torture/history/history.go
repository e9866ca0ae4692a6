package history

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"github.com/viewkeeper/viewkeeper"
)

// Time is nanoseconds since the run began, on one monotonic clock.
type Time int64

// The outcomes of an Op, as its client saw them.
const (
	Decided    = "decided"     // it was told the decision
	Acked      = "acked"       // written, and no decision seen
	Unknown    = "unknown"     // nobody said what became of it
	NotWritten = "not written" // every answer said that nothing was written
)

// Op is one statement of one client, with all its tries: all have one id and text.
type Op struct {
	Client    int       `json:"client"`
	Door      string    `json:"door"` // http or kafka
	Statement Statement `json:"statement"`
	Call      Time      `json:"call"`
	Return    Time      `json:"return"`
	Tries     int       `json:"tries"`
	Outcome   string    `json:"outcome"`
	Why       string    `json:"why,omitempty"` // of the last failed try
	// Offset is the record's where Kafka acked it, else -1.
	Offset  int64    `json:"offset"`
	Told    *Told    `json:"told,omitempty"`
	Reached []string `json:"reached,omitempty"` // nodes that have it, by the answer
	// Again is set when the id is one that was used before: with the same text the
	// answer is the first one's, with another ID_REUSED.
	Again bool `json:"again,omitempty"`
}

// Told is what somebody said of a decision. Hash is over all of it but the epoch,
// which differs where an owner completed what another one began; Law is over what
// the law decides: without the id, the time and the owner.
type Told struct {
	ID      string `json:"id"`
	Version int64  `json:"version"`
	Verdict string `json:"verdict"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Epoch   int64  `json:"epoch,omitempty"`
	Rows    []Row  `json:"rows,omitempty"` // on the decisions topic only
	Hash    string `json:"hash"`
	Law     string `json:"law"`
}

// Row is a row that a decision wrote.
type Row struct {
	Name    string `json:"name"`
	Dropped bool   `json:"dropped,omitempty"`
}

// Tell takes from a decision what is compared.
func Tell(d viewkeeper.Decision) Told {
	t := Told{ID: d.StatementID, Version: int64(d.Version), Verdict: string(d.Verdict), Code: string(d.Code), Message: d.Message, Epoch: int64(d.Epoch)}
	for _, r := range d.Rows {
		t.Rows = append(t.Rows, Row{bare(r.Name), r.Dropped})
	}
	d = d.ForClient()
	d.Normalize()
	d.Epoch = 0
	t.Hash = digest(d)
	t.Law = digest([]any{d.Version, d.Verdict, d.Code, d.Message, d.Position, d.Changed, d.Broken, d.Repaired, d.Dropped, d.Warnings})
	return t
}

func digest(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8])
}

// Query is one answered read. Its version is that of the factory that answered.
type Query struct {
	Client  int    `json:"client"`
	Node    string `json:"node"`
	Min     int64  `json:"min"`
	Call    Time   `json:"call"`
	Return  Time   `json:"return"`
	Version int64  `json:"version"`
	// Name and Row are a SELECT * from one definition; Listing is all definitions
	// with their version, constant and state, in one answer. Absent: the answer was that
	// there is no such definition; then Version is only what the node had when it began.
	Name    string   `json:"name,omitempty"`
	Row     []int64  `json:"row,omitempty"`
	Absent  bool     `json:"absent,omitempty"`
	Listing []Listed `json:"listing,omitempty"`
}

// Listed is a definition as a node lists it.
type Listed struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	N       int64  `json:"n"`
	State   string `json:"state"`
	Comment string `json:"comment,omitempty"`
}

// List takes from a definition's text and state what is compared.
func List(name viewkeeper.Name, version viewkeeper.Version, sql, state string, comment *string) Listed {
	l := Listed{Name: bare(name), Version: int64(version), N: number(sql), State: state}
	if comment != nil {
		l.Comment = *comment
	}
	return l
}

// Sample is what a node said of itself at a moment.
type Sample struct {
	Node        string `json:"node"`
	Call        Time   `json:"call"`
	Return      Time   `json:"return"`
	Version     int64  `json:"version"`
	Digest      string `json:"digest"`
	BuildDigest string `json:"build_digest"`
	Broken      int    `json:"broken"`
	Ready       bool   `json:"ready"`
}

// Fault is one thing that was done to the fleet.
type Fault struct {
	Kind   string `json:"kind"`
	Target string `json:"target"`
	From   Time   `json:"from"`
	To     Time   `json:"to"` // when it was undone
}

// Start is a start of a node. One that may start from its own copy of the table while
// Kafka is away (--start-stale) may then have less than it had before; whoever asks for
// a minimum version still gets no less.
type Start struct {
	Node  string `json:"node"`
	At    Time   `json:"at"`
	Stale bool   `json:"stale,omitempty"` // it may
}

// Record is one record of the definitions topic, at the offset of its place in the log.
type Record struct {
	Key       string `json:"key"`
	ID        string `json:"id"` // as its header says, else <topic id>:<offset>
	SQL       string `json:"sql"`
	Tombstone bool   `json:"tombstone,omitempty"`
	Expect    *int64 `json:"expect,omitempty"`
}

// text is what makes two records with one id the same statement.
func (r Record) text() string {
	if r.Tombstone {
		return "\x00drop\x00" + r.Key
	}
	return r.SQL
}

// Node is what a node had at the end.
type Node struct {
	Name     string   `json:"name"`
	Sample   Sample   `json:"sample"`
	Failures []string `json:"failures,omitempty"`
	Listing  []Listed `json:"listing"`
	History  []Told   `json:"history"`
}

// Asked is what became of a statement, by a node that was asked for its id at the end.
type Asked struct {
	Node string `json:"node"`
	ID   string `json:"id"`
	Told *Told  `json:"told"` // nil: never heard of it
}

// History is a whole run.
type History struct {
	Seed    uint64   `json:"seed"`
	Ops     []Op     `json:"-"`
	Queries []Query  `json:"-"`
	Samples []Sample `json:"-"`
	Faults  []Fault  `json:"-"`
	Starts  []Start  `json:"starts,omitempty"`
	Exits   []string `json:"exits,omitempty"` // of processes that nobody ended

	// What lay in Kafka at the end.
	Log   []Record `json:"-"`
	Topic []Told   `json:"-"` // the decisions topic, in the order of its records
	// What nodes said at the end.
	Nodes []Node  `json:"-"`
	Asked []Asked `json:"-"`
	// Replay is what a fleet without faults decided of the same log; nil when it was not asked.
	Replay []Told `json:"-"`
}

// line is one line of a kept history: exactly one of its fields is set.
type line struct {
	Head   *History `json:"head,omitempty"`
	Op     *Op      `json:"op,omitempty"`
	Query  *Query   `json:"query,omitempty"`
	Sample *Sample  `json:"sample,omitempty"`
	Fault  *Fault   `json:"fault,omitempty"`
	Record *Record  `json:"record,omitempty"`
	Topic  *Told    `json:"topic,omitempty"`
	Node   *Node    `json:"node,omitempty"`
	Asked  *Asked   `json:"asked,omitempty"`
	Replay *Told    `json:"replay,omitempty"`
}

// Write writes the history as JSON lines.
func (h *History) Write(w io.Writer) error {
	b := bufio.NewWriter(w)
	e := json.NewEncoder(b)
	lines := []line{{Head: h}}
	lines = appendLines(lines, h.Faults, func(x *Fault) line { return line{Fault: x} })
	lines = appendLines(lines, h.Ops, func(x *Op) line { return line{Op: x} })
	lines = appendLines(lines, h.Queries, func(x *Query) line { return line{Query: x} })
	lines = appendLines(lines, h.Samples, func(x *Sample) line { return line{Sample: x} })
	lines = appendLines(lines, h.Log, func(x *Record) line { return line{Record: x} })
	lines = appendLines(lines, h.Topic, func(x *Told) line { return line{Topic: x} })
	lines = appendLines(lines, h.Nodes, func(x *Node) line { return line{Node: x} })
	lines = appendLines(lines, h.Asked, func(x *Asked) line { return line{Asked: x} })
	lines = appendLines(lines, h.Replay, func(x *Told) line { return line{Replay: x} })
	for _, l := range lines {
		if err := e.Encode(l); err != nil {
			return err
		}
	}
	return b.Flush()
}

func appendLines[T any](lines []line, all []T, wrap func(*T) line) []line {
	for i := range all {
		lines = append(lines, wrap(&all[i]))
	}
	return lines
}

// ReadFrom reads what Write wrote.
func ReadFrom(r io.Reader) (*History, error) {
	h := &History{}
	d := json.NewDecoder(r)
	for n := 1; ; n++ {
		var l line
		switch err := d.Decode(&l); {
		case err == io.EOF:
			return h, nil
		case err != nil:
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		switch {
		case l.Head != nil:
			h.Seed, h.Exits, h.Starts = l.Head.Seed, l.Head.Exits, l.Head.Starts
		case l.Op != nil:
			h.Ops = append(h.Ops, *l.Op)
		case l.Query != nil:
			h.Queries = append(h.Queries, *l.Query)
		case l.Sample != nil:
			h.Samples = append(h.Samples, *l.Sample)
		case l.Fault != nil:
			h.Faults = append(h.Faults, *l.Fault)
		case l.Record != nil:
			h.Log = append(h.Log, *l.Record)
		case l.Topic != nil:
			h.Topic = append(h.Topic, *l.Topic)
		case l.Node != nil:
			h.Nodes = append(h.Nodes, *l.Node)
		case l.Asked != nil:
			h.Asked = append(h.Asked, *l.Asked)
		case l.Replay != nil:
			h.Replay = append(h.Replay, *l.Replay)
		default:
			return nil, fmt.Errorf("line %d is of no known kind", n)
		}
	}
}
