package restore

import (
	"context"
	"maps"
	"slices"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// Known is what the catalog's topics say now.
type Known struct {
	Catalog string
	Table   *Table
	// Decisions is the decisions topic.
	Decisions *Decisions
	// DefinitionsTopic is the id of the definitions topic, DefinitionsEnd its end.
	DefinitionsTopic string
	DefinitionsEnd   int64
	// Committed is the offset that the group has committed for that topic, -1 for none.
	Committed int64
	// Nodes are those that have said within the topic's memory what they serve.
	Nodes []viewkeeper.Status
	// Statements reads the definitions topic from one offset up to before another.
	// Those that are no longer there are left out.
	Statements func(ctx context.Context, from, to int64) ([]viewkeeper.Submission, error)
}

// Table is the table as it lies there.
type Table struct {
	// Begin is its first offset. Above 0, its first records were deleted.
	Begin int64
	Fold  *fold.Fold

	// best is each name's row that counts most, whether a commit row has it or not.
	best       map[viewkeeper.Name]viewkeeper.Row
	names      map[viewkeeper.Name]struct{}
	unreadable map[string]struct{}
	// version is the highest that any record that counts speaks of, a heartbeat or a row
	// above the commit row too.
	version viewkeeper.Version
}

// NewTable has read nothing.
func NewTable() *Table {
	return &Table{
		Fold: fold.New(), best: map[viewkeeper.Name]viewkeeper.Row{},
		names: map[viewkeeper.Name]struct{}{}, unreadable: map[string]struct{}{},
	}
}

// Add takes the next record, and reports whether it counts.
func (t *Table) Add(offset int64, key string, value []byte, headers []codec.Header) bool {
	r := codec.DecodeTable(key, value, headers)
	counts := t.Fold.Add(offset, r)
	delete(t.unreadable, key)
	switch r := r.(type) {
	case codec.Row:
		t.names[r.Name] = struct{}{}
		t.saw(r.Version, counts)
		if was, ok := t.best[r.Name]; counts && (!ok || was.Epoch < r.Epoch || was.Epoch == r.Epoch && was.Version <= r.Version) {
			t.best[r.Name] = r.Row
		}
	case *codec.Commit:
		t.saw(r.Version, counts)
	case *codec.Heartbeat:
		t.saw(r.Version, counts)
	case codec.Purge:
		if counts {
			delete(t.names, r.Name)
			delete(t.best, r.Name)
		}
	case codec.Unknown:
		t.unreadable[key] = struct{}{}
	}
	return counts
}

func (t *Table) saw(v viewkeeper.Version, counts bool) {
	if counts {
		t.version = max(t.version, v)
	}
}

// ReadTo says that there is nothing more to read. Where the last offsets have no
// record, the fold would go on collecting for them.
func (t *Table) ReadTo() {
	if gap, need := t.Fold.NeedEnd(); need {
		t.Fold.EndIs(gap, t.Fold.Next())
	}
}

// Unreadable gives the keys, sorted, whose last record can't be read.
func (t *Table) Unreadable() []string { return slices.Sorted(maps.Keys(t.unreadable)) }
