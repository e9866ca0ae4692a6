package restore_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/kafka/kafkatest"
	"github.com/viewkeeper/viewkeeper/internal/restore"
)

// memory is a table's topic in memory, so that each of many crashes takes no time. Its
// first records are what a real owner wrote.
type memory struct {
	records []restore.Record
	// crash is after how many records the next write fails, -1 for never; before is called
	// ahead of each.
	crash  int
	before func(r restore.Record)
}

var errCrash = errors.New("crash")

func (m *memory) Write(_ context.Context, records []restore.Record) (offsets []int64, err error) {
	for _, r := range records {
		if m.crash == 0 {
			return nil, errCrash
		}
		m.crash--
		if m.before != nil {
			m.before(r)
		}
		offsets = append(offsets, int64(len(m.records)))
		m.records = append(m.records, r)
	}
	return offsets, nil
}

func (m *memory) Read(_ context.Context, from, to int64, each func(offset int64, key string, value []byte, headers []codec.Header)) error {
	for ; from < to; from++ {
		each(from, m.records[from].Key, m.records[from].Value, m.records[from].Headers)
	}
	return nil
}

func (m *memory) table() *restore.Table {
	t := restore.NewTable()
	for i, r := range m.records {
		t.Add(int64(i), r.Key, r.Value, r.Headers)
	}
	t.ReadTo()
	return t
}

// past is a catalog with a history, of which everything but the decisions is known.
type past struct {
	t      *testing.T
	known  restore.Known
	held   []restore.Record // the table
	old    *restore.Source  // an export of version 1
	now    *restore.Source
	before map[string]string // the definitions of old
	then   map[string]string // and of now
}

func newPast(t *testing.T) *past {
	w := newWorld(t)
	w.own()
	w.say("zero", "CREATE VIEW zero AS SELECT a FROM t")
	p := &past{t: t, old: w.source(restore.Export), before: w.rows()}
	w.story()
	w.stopOwn()
	p.now, p.then = w.source(restore.Copy), w.rows()
	p.known = *w.look()
	p.known.Decisions = restore.NewDecisions() // else they make up for the age of old
	p.known.Nodes = nil
	statements, err := p.known.Statements(w.ctx, 0, p.known.DefinitionsEnd)
	w.must(err)
	p.known.Statements = func(_ context.Context, from, to int64) ([]viewkeeper.Submission, error) {
		return statements[from:to], nil
	}
	end, err := w.topics.Admin.EndOffset(w.ctx, w.topics.Names.Table())
	w.must(err)
	ctx, stop := context.WithCancel(w.ctx)
	defer stop()
	w.must(kafkatest.Tail(ctx, w.settings, w.topics.Names.Table(), kafka.FromOldest, func(m *sarama.ConsumerMessage) error {
		p.held = append(p.held, restore.Record{Key: string(m.Key), Value: m.Value})
		if m.Offset+1 == end {
			stop()
		}
		return nil
	}))
	return p
}

// restore carries one out over a log.
func (p *past) restore(s *restore.Source, log *memory, limit int) error {
	p.t.Helper()
	k := p.known
	k.Table = log.table()
	plan, err := restore.Make(p.t.Context(), &k, s)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := plan.Allowed(&k, true, true); err != nil {
		p.t.Fatal(err)
	}
	_, err = plan.Write(p.t.Context(), &k, log, "restore", time.Now().UTC(), limit)
	return err
}

// The restore dies after its n-th record, for n = 0, 1, 2 … until it needs no more of
// them: into an empty table, with and without room for all rows in the commit row, and
// into one that holds a catalog. At each point the catalog is as it was, which for a lost
// one is that nobody owns it, or as it is to be; and when it is run again all is well.
func TestARestoreThatDies(t *testing.T) {
	p := newPast(t)
	for _, c := range []struct {
		name         string
		table        []restore.Record
		source       *restore.Source
		limit        int
		before, then map[string]string
	}{
		{"an empty table", nil, p.now, kafka.MaxRecordBytes, nil, p.then},
		{"an empty table, more than a record holds", nil, p.now, 1500, nil, p.then},
		{"a table that holds a catalog", p.held, p.old, kafka.MaxRecordBytes, p.then, p.before},
	} {
		t.Run(c.name, func(t *testing.T) {
			for n := 0; ; n++ {
				log := &memory{records: slices.Clone(c.table), crash: n}
				err := p.restore(c.source, log, c.limit)
				if err == nil {
					if n < 5 {
						t.Errorf("it needs %d records", n)
					}
					break
				}
				if !errors.Is(err, errCrash) {
					t.Fatalf("after %d records: %v", n, err)
				}
				shown := log.table()
				switch got := live(shown); {
				case maps.Equal(got, c.then) && shown.Fold.Commit() != nil:
				case c.before != nil && maps.Equal(got, c.before):
				case c.before == nil && shown.Fold.Commit() == nil:
				default:
					t.Errorf("after %d records the table shows\n%v", n, got)
				}
				log.crash = -1
				if err := p.restore(c.source, log, c.limit); err != nil {
					t.Errorf("after %d records and a second run: %v", n, err)
				}
				f := log.table().Fold
				if got := live(log.table()); !maps.Equal(got, c.then) {
					t.Errorf("after %d records and a second run the table shows\n%v", n, got)
				}
				if left := append(f.Completion(f.Epoch()), f.Heal(f.Epoch())...); len(left) > 0 {
					t.Errorf("after %d records and a second run an owner finds %d records to write, the first is %s", n, len(left), left[0].Key())
				}
			}
		})
	}
}

// What would change at once in a table that holds a catalog must fit a record.
func TestTooMuchToChangeAtOnce(t *testing.T) {
	p := newPast(t)
	log := &memory{records: slices.Clone(p.held), crash: -1}
	err := p.restore(p.old, log, 1500)
	var large *restore.TooLargeError
	if !errors.As(err, &large) || large.Limit != 1500 || len(log.records) != len(p.held) {
		t.Errorf("%v", err)
	}
}

// An owner takes over between any two records of a restore. Before the commit row,
// nothing of the restore counts, and it says so; after it, all of it does.
func TestAnOwnerComesBetween(t *testing.T) {
	p := newPast(t)
	for n := 1; ; n++ {
		log := &memory{records: slices.Clone(p.held), crash: -1}
		written, committed, came := 0, false, false
		log.before = func(r restore.Record) {
			if written == n {
				key, value := codec.EncodeRecord(&codec.Fence{Nonce: fmt.Sprint("between", n), EpochBase: 1 << 20, Owner: "other"})
				log.records = append(log.records, restore.Record{Key: key, Value: value})
				came = true
			}
			committed = committed || r.Key == codec.KeyCommit && !came
			written++
		}
		err := p.restore(p.old, log, kafka.MaxRecordBytes)
		log.before = nil
		if !came {
			if err != nil || n < 5 {
				t.Errorf("%d records, %v", n, err)
			}
			return
		}
		want := p.then
		if committed {
			want = p.before
		}
		if committed != (err == nil) || !committed && !errors.Is(err, restore.ErrTakenOver) {
			t.Errorf("a fence before record %d: %v", n, err)
		}
		if got := live(log.table()); !maps.Equal(got, want) {
			t.Errorf("a fence before record %d: the table shows\n%v", n, got)
		}
		if err := p.restore(p.old, log, kafka.MaxRecordBytes); err != nil {
			t.Errorf("a fence before record %d, and a second run: %v", n, err)
		}
		if got := live(log.table()); !maps.Equal(got, p.before) {
			t.Errorf("a fence before record %d, and a second run: the table shows\n%v", n, got)
		}
	}
}
