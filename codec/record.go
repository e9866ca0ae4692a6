package codec

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"time"

	"github.com/viewkeeper/viewkeeper"
)

// Record is one record of the table. The set is closed: [Row], [Commit], [Fence],
// [Heartbeat], [IDs], [Purge], [Tombstone] and [Unknown].
type Record interface {
	// Key is the record's key in the table.
	Key() string
	isRecord()
}

// Row is a definition's row, or its drop. Its key is the name.
type Row struct{ viewkeeper.Row }

// Commit is the commit row: one reserved key, overwritten for each batch of
// decided statements. Its content counts at once and whole when it is read; the
// rows and decisions that are written after it repeat it.
type Commit struct {
	// Version is the catalog's version after the batch, Epoch the owner that wrote
	// this copy.
	Version viewkeeper.Version
	Epoch   viewkeeper.Epoch
	// Owner is the node id of the owner that wrote this copy, At when.
	Owner      string
	At         time.Time
	Engine     string
	BaseDigest string

	// DefinitionsTopic is the Kafka topic id of the definitions topic that Version
	// counts in. Another id means that the topic was made anew.
	DefinitionsTopic string
	// VersionBase and EpochBase are added to offsets. They are 0 until a topic is
	// adopted or restored, which sets them so that versions and epochs go on.
	VersionBase viewkeeper.Version
	EpochBase   viewkeeper.Epoch
	// PurgedThrough is the version up to which drop rows may have been purged. A
	// follower that was away since an older version starts from nothing.
	PurgedThrough viewkeeper.Version

	// Decisions are those of the batch in full, in the order of their offsets,
	// with SQL and Rows.
	Decisions []viewkeeper.Decision
	// Rows is every row that the batch changed, as it is after the batch, once
	// each. Their epoch is the commit row's.
	Rows []viewkeeper.Row
	// IDs are the batch's statement ids, those that producers gave.
	IDs []ID
	// Live sums up the definitions that the catalog has after the batch, so that one that
	// the table has lost is missed. Nil when it is not said.
	Live *LiveSum

	Format int
	Extra  map[string]json.RawMessage
}

// LiveSum is a sum over the definitions that the catalog has at a version. One of
// another version than its commit row's was left there by a program that does not know
// of it, and says nothing.
type LiveSum struct {
	Version viewkeeper.Version `json:"version"`
	// Sum is sixteen hexadecimal digits: of each live row's [HashRow], the sum modulo 2^64.
	Sum string `json:"sum"`
}

// HashRow is what a row adds to a LiveSum: the first eight bytes of the SHA-256 of the
// JSON list of its version, name, kind, sql, comment and id; 0 for a drop. These are all
// for ever: a field that is added later is not summed, or programs would not agree.
func HashRow(r viewkeeper.Row) uint64 {
	if !r.Live() {
		return 0
	}
	d := r.Definition
	sum := sha256.Sum256(marshal([]any{r.Version, d.Name, d.Kind, d.SQL, d.Comment, d.ID}, nil))
	return binary.BigEndian.Uint64(sum[:])
}

// Fence is what a new owner writes first, under a key that nobody writes again.
// The owner's epoch is EpochBase + the fence's offset + 1.
type Fence struct {
	// Nonce is random and makes the key.
	Nonce     string
	EpochBase viewkeeper.Epoch
	Owner     string
	At        time.Time

	Format int
	Extra  map[string]json.RawMessage
}

// Heartbeat says that the owner lives. It also keeps the table's end a record
// that a follower can reach.
type Heartbeat struct {
	Version    viewkeeper.Version
	Epoch      viewkeeper.Epoch
	Owner      string
	At         time.Time
	Engine     string
	BaseDigest string
	// Reasons are what is wrong with the owner or its input, code and sentence.
	Reasons map[string]string

	Format int
	Extra  map[string]json.RawMessage
}

// Purge is a drop that is not kept: a record without a value, so that compaction takes
// it in the end, with what a drop row says in its headers. An owner writes it over a
// drop row that is old enough.
type Purge struct {
	Name    viewkeeper.Name
	Version viewkeeper.Version // the drop row's
	Epoch   viewkeeper.Epoch   // of the owner that wrote this record
}

// Tombstone is any other record without a value. viewkeeper writes none.
type Tombstone struct{ TableKey string }

// Unknown is a record that this program does not understand.
type Unknown struct {
	TableKey string
	Value    []byte
	// Newer says that it looks like the work of a newer program and not like
	// rubbish. It is left where it is.
	Newer bool
	// Reason says what is wrong with it.
	Reason string
}

// Key gives the name.
func (r Row) Key() string { return r.Name.String() }

// Key gives KeyCommit.
func (*Commit) Key() string { return KeyCommit }

// Key gives the fence's own key.
func (f *Fence) Key() string { return prefixFence + f.Nonce }

// Key gives KeyHeartbeat.
func (*Heartbeat) Key() string { return KeyHeartbeat }

// Key gives the key of the slot.
func (r *IDs) Key() string { return slotKey(r.Slot) }

// Key gives the name.
func (p Purge) Key() string { return p.Name.String() }

// Key gives the key that was removed.
func (t Tombstone) Key() string { return t.TableKey }

// Key gives the record's key.
func (u Unknown) Key() string { return u.TableKey }

func (Row) isRecord()        {}
func (*Commit) isRecord()    {}
func (*Fence) isRecord()     {}
func (*Heartbeat) isRecord() {}
func (*IDs) isRecord()       {}
func (Purge) isRecord()      {}
func (Tombstone) isRecord()  {}
func (Unknown) isRecord()    {}

// WithEpoch gives the commit row as another owner writes it again: the version and
// the content are the same, and the epoch everywhere is the one given.
func (c *Commit) WithEpoch(epoch viewkeeper.Epoch) *Commit {
	again := *c
	again.Epoch = epoch
	again.Decisions = slices.Clone(c.Decisions)
	for i := range again.Decisions {
		again.Decisions[i].Epoch = epoch
	}
	again.Rows = slices.Clone(c.Rows)
	for i := range again.Rows {
		again.Rows[i].Epoch = epoch
	}
	return &again
}

// FormatOf gives the number of the format that a record was read in: 0 for a new one,
// and for one that can't be read.
func FormatOf(r Record) int {
	switch r := r.(type) {
	case Row:
		return r.Format
	case *Commit:
		return r.Format
	case *Fence:
		return r.Format
	case *Heartbeat:
		return r.Format
	case *IDs:
		return r.Format
	}
	return 0
}
