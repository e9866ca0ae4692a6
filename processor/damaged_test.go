package processor

import (
	"strings"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// Rubbish lay over a row while nobody owned, and compaction took the row: nothing in the
// table speaks of it any more but the sum in the commit row. Nobody goes on from that.
func TestARowThatIsGoneIsMissed(t *testing.T) {
	for name, rubbish := range map[string]any{
		"rubbish": "rubbish", "a tombstone": nil,
		"a row that nobody wrote": `{"format":1,"type":"row","name":"main.a","version":100,"epoch":EPOCH,"dropped":true}`,
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settledStory()
			if text, ok := rubbish.(string); ok {
				rubbish = strings.ReplaceAll(text, "EPOCH", w.table().Epoch().String())
			}
			w.write(w.raw("main.a", rubbish))
			w.compact()
			m := w.start("second", nil)
			s := m.waitReason(viewkeeper.ReasonTableDamaged)
			if s.State != StateBlocked || !strings.Contains(s.Reasons[viewkeeper.ReasonTableDamaged], "restore") {
				t.Errorf("%+v", s)
			}
			w.noFence(m)
		})
	}
}

// settledStory judges the story and then one more, so that the commit row does not hold
// the story's rows any more.
func (w *world) settledStory() {
	m := w.start("first", nil)
	statements := story()
	for _, s := range statements {
		w.emit(s)
	}
	w.verify(statements)
	statements = append(statements, create("z", 1))
	w.emit(statements[len(statements)-1])
	w.verify(statements)
	m.stop()
}

// compact lets the broker take all that a later record of the key lies over; the last
// batch it leaves out of account.
func (w *world) compact() {
	w.write(w.raw("stranger", "the last batch"))
	w.broker.Cluster().Compact()
}

// The same of the commit row.
func TestACommitRowThatIsGoneIsMissed(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	w.write(w.raw(codec.KeyCommit, "rubbish"))
	w.compact()
	m := w.start("second", nil)
	s := m.waitReason(viewkeeper.ReasonTableBehind)
	if s.State != StateBlocked || !strings.Contains(s.Reasons[viewkeeper.ReasonTableBehind], "restore") {
		t.Errorf("%+v", s)
	}
	w.noFence(m)
}

// Before compaction nothing is gone, and the next owner heals it.
func TestRubbishBeforeCompactionIsHealed(t *testing.T) {
	w := newWorld(t)
	statements := story()
	w.begin(statements)
	w.write(w.raw("main.a", "rubbish"), w.raw("main.b", nil), w.raw(codec.KeyCommit, "rubbish"))
	w.start("second", nil)
	w.settled(0)
	w.verify(statements)
	if w.table().Damaged() {
		t.Error("the table is healed, and says that it is damaged")
	}
}

// A former program's commit row has no sum, or kept that of another version.
func TestNoSumIsNoDamage(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	f := w.table()
	for _, live := range []*codec.LiveSum{nil, {Version: 1, Sum: "0123456789abcdef"}} {
		c := f.Commit().WithEpoch(f.Epoch())
		c.Live = live
		w.write(tableMessage(w.topics.Table(), c))
		m := w.start("owner", nil)
		m.waitOwner()
		m.stop()
	}
}
