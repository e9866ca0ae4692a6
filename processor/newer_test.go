package processor

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// raw is a record of the table as bytes.
func (w *world) raw(key string, value any) *sarama.ProducerMessage {
	m := &sarama.ProducerMessage{Topic: w.topics.Table(), Key: sarama.StringEncoder(key)}
	switch v := value.(type) {
	case string:
		m.Value = sarama.StringEncoder(v)
	case map[string]any:
		text, err := json.Marshal(v)
		w.must(err)
		m.Value = sarama.ByteEncoder(text)
	}
	return m
}

// fields are those of a record as it would be written.
func (w *world) fields(r codec.Record) map[string]any {
	_, value := codec.EncodeRecord(r)
	out := map[string]any{}
	w.must(json.Unmarshal(value, &out))
	return out
}

// A program of a newer format has owned the catalog: this one does not own it before it
// is upgraded, says so, and takes nothing from what the newer one wrote.
func TestANewerOwnerIsNotGoneOnFrom(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	fence := w.fields(&codec.Fence{Nonce: "newer", Owner: "newer"})
	fence["format"], fence["lease_ms"] = 2, 5000
	w.write(w.raw("#fence/newer", fence))
	m := w.start("second", nil)
	s := m.waitReason(viewkeeper.ReasonUnknownRecords)
	if s.State != StateBlocked || !strings.Contains(s.Reasons[viewkeeper.ReasonUnknownRecords], "upgrade") {
		t.Errorf("%+v", s)
	}
	w.noFence(m)
}

// The same while this one owns: it stops at the newer one's first record, even one that
// it can't read. Where that turns out to be a stranger's, taking it away is the way out.
func TestAnOwnerStopsForANewerOne(t *testing.T) {
	w := newWorld(t)
	m := w.start("node-1", nil)
	w.decided(w.emit(create("a", 1)))
	m.waitOwner()
	w.write(w.raw("#fence/newer", `{"format":2,"type":"fence","epoch_base":"somewhere else"}`))
	m.waitReason(viewkeeper.ReasonUnknownRecords)
	w.write(w.raw("#fence/newer", nil))
	m.waitFor("the owner again", func(s Status) bool { return s.State == StateOwner && s.Reasons[viewkeeper.ReasonUnknownRecords] == "" })
	w.decided(w.emit(create("a", 2)))
}

// What can't be read and claims a newer format, on the catalog's own keys, is a
// stranger's where no newer fence is: it is healed as any rubbish.
func TestRubbishThatLooksNewerIsHealed(t *testing.T) {
	w := newWorld(t)
	statements := story()
	w.start("node-1", nil)
	for _, s := range statements {
		w.emit(s)
	}
	w.verify(statements)
	for _, key := range []string{"main.a", codec.KeyCommit, codec.KeyHeartbeat, "#ids/0000"} {
		w.write(w.raw(key, `{"format":7,"type":"poem"}`))
	}
	w.settled(0)
	w.verify(statements)
	f := w.table()
	for newer := f.Newer(); len(newer) > 0; newer = w.table().Newer() {
		w.must(w.ctx.Err())
	}
	if c := w.table().Counts(); c.Unknown != 4 || c.Newer != 4 {
		t.Errorf("%+v", c)
	}
}

// Fields that this program does not know, in every kind of record and at every depth,
// survive that it completes the last batch, heals, and goes on.
func TestFieldsOfANewerProgramSurvive(t *testing.T) {
	w := newWorld(t)
	statements := story()
	w.begin(statements)

	// Another program of this format owns, and knows more. It dies after its commit row.
	f := w.table()
	epoch := f.Epoch() + 1000
	w.write(w.raw("#fence/more", w.fields(&codec.Fence{Nonce: "more", EpochBase: epoch, Owner: "more"})))
	_, at := w.table().Fence()
	epoch += viewkeeper.Epoch(at) + 1

	name := viewkeeper.MakeName("", "more")
	version := f.Version() + 1
	w.emit(create("more", 1)) // the statement that it decided
	row := viewkeeper.Row{Name: name, Version: version, Epoch: epoch, Definition: &viewkeeper.Definition{
		Name: name, Kind: viewkeeper.KindView, SQL: "CREATE VIEW more AS SELECT 1 AS n", ID: version}}
	decision := viewkeeper.Decision{StatementID: "more", Version: version, Offset: int64(version) - 1, Verdict: viewkeeper.Accepted, Epoch: epoch,
		Rows: []viewkeeper.RowJSON{{Name: name, Version: version, Definition: row.Definition}}}
	next := *f.Commit()
	next.Version, next.Epoch, next.EpochBase, next.Owner = version, epoch, epoch-viewkeeper.Epoch(at)-1, "more"
	next.Decisions, next.Rows = []viewkeeper.Decision{decision}, []viewkeeper.Row{row}
	next.IDs = []codec.ID{{ID: "more", Text: "t", Version: version}}
	commit := w.fields(&next)
	commit["later_commit"] = 1
	one := func(of map[string]any, list string) map[string]any { return of[list].([]any)[0].(map[string]any) }
	one(commit, "decisions")["later_decision"] = 2
	one(one(commit, "decisions"), "rows")["definition"].(map[string]any)["later_inside"] = 3
	one(commit, "rows")["later_row"] = 4
	one(commit, "rows")["definition"].(map[string]any)["later_definition"] = 5
	one(commit, "ids")["later_id"] = 6
	a, ok := f.Row(viewkeeper.MakeName("", "a"))
	if !ok {
		t.Fatal("no row of a")
	}
	a.Epoch = epoch
	rowA := w.fields(codec.Row{Row: a})
	rowA["later_a"] = 7
	slot := w.fields(func() codec.Record { s := f.SlotRow(0, epoch); s.Epoch = epoch; return s }())
	slot["later_slot"] = 8
	w.write(w.raw("main.a", rowA), w.raw("#ids/0000", slot), w.raw(codec.KeyCommit, commit))
	// A stranger lies over two of them: they are healed.
	w.write(w.raw("main.a", "rubbish"), w.raw(codec.KeyCommit, "rubbish"))

	w.start("second", nil)
	w.decided(w.emit(create("b2", 1)))
	w.settled(0)
	last := map[string]string{}
	w.read(w.topics.Table(), func(m *sarama.ConsumerMessage) { last[string(m.Key)] = string(m.Value) })
	decided := ""
	w.read(w.topics.Decisions(), func(m *sarama.ConsumerMessage) {
		if string(m.Key) == "more" {
			decided = string(m.Value)
		}
	})
	for key, want := range map[string][]string{
		"main.a":        {`"later_a":7`},
		"main.more":     {`"later_row":4`, `"later_definition":5`},
		"#ids/0000":     {`"later_slot":8`, `"later_id":6`},
		codec.KeyCommit: {`"later_commit":1`}, // the batch's own went with the batch
	} {
		for _, field := range want {
			if !strings.Contains(last[key], field) {
				t.Errorf("%s is not in %s: %s", field, key, last[key])
			}
		}
	}
	for _, field := range []string{`"later_decision":2`, `"later_inside":3`} {
		if !strings.Contains(decided, field) {
			t.Errorf("%s is not in the decision: %s", field, decided)
		}
	}
	if t.Failed() {
		t.Log(fmt.Sprint(slices.Sorted(maps.Keys(last))))
	}
}

// A table without its beginning may lack any row: it is not gone on from.
func TestTruncatedTableBlocks(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	w.must(a.DeleteRecords(w.topics.Table(), map[int32]int64{0: 3}))
	m := w.start("second", nil)
	s := m.waitReason(viewkeeper.ReasonTableTruncated)
	if s.State != StateBlocked || !strings.Contains(s.Reasons[viewkeeper.ReasonTableTruncated], "restore") {
		t.Errorf("%+v", s)
	}
	w.noFence(m)
}
