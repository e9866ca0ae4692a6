package processor

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
)

// 64 producers at once: every statement has one decision, versions only rise, and the
// catalog is what the law makes of the order in the topic.
func TestManyProducers(t *testing.T) {
	w := newWorld(t)
	m := w.start("node-1", nil)
	const producers, each = 64, 5
	statements := make([]viewkeeper.Submission, producers*each)
	var all sync.WaitGroup
	for p := range producers {
		all.Go(func() {
			emitter := w.settings.NewEmitter(w.topics)
			defer emitter.Close()
			for n := range each {
				s := create(fmt.Sprintf("v%d", p%16), p*each+n)
				if n == 3 {
					s = sql("main.x", fmt.Sprintf("CREATE VIEW broken%d AS SELECT nothing FROM t", p))
				}
				s.ID = fmt.Sprintf("%d-%d", p, n)
				r, err := emitter.Emit(w.ctx, s)
				if err != nil {
					t.Error(err)
					return
				}
				statements[r.Offset] = s
			}
		})
	}
	all.Wait()
	w.verify(statements)
	var last decision
	for i, d := range w.decisions("all", func(all []decision) bool { return len(all) >= len(statements) }) {
		if i > 0 && (d.Offset != last.Offset+1 || d.Version != last.Version+1) {
			t.Errorf("offset %d, version %d after offset %d, version %d", d.Offset, d.Version, last.Offset, last.Version)
		}
		last = d
	}
	// All is finished and marked when the processor gives the partition back.
	m.waitFor("the last version", func(s Status) bool { return s.Version == viewkeeper.Version(len(statements)) })
}

// The same id with the same text has one decision, with another text it is refused;
// also while the first is pending, and after a restart.
func TestStatementIDs(t *testing.T) {
	w := newWorld(t)
	with := func(id string, s viewkeeper.Submission) viewkeeper.Submission { s.ID = id; return s }
	a := with("one", create("a", 1))
	w.emit(a)
	w.emit(a)
	other := w.emit(with("one", create("b", 1)))
	drop := viewkeeper.Submission{Key: "main.a", Tombstone: true}
	w.emit(with("two", drop))
	otherDrop := w.emit(with("two", viewkeeper.Submission{Key: "main.b", Tombstone: true}))
	m := w.start("node-1", nil)
	last := w.emit(create("c", 1))
	if d := w.decided(last); d.Version != 6 {
		t.Errorf("%+v", d)
	}
	m.stop()
	w.start("node-1", nil)
	again := w.emit(a)
	reused := w.emit(with("one", create("z", 1)))
	w.decided(w.emit(create("d", 1)))

	all := w.decisions("all", func(all []decision) bool { return len(all) > 0 && all[len(all)-1].Offset == 8 })
	got := byOffset(all)
	if _, ok := got[1]; ok || len(got) != 7 {
		t.Errorf("%d offsets are decided: %v", len(got), got)
	}
	if _, ok := got[again]; ok {
		t.Error("a repeated statement is decided again after a restart")
	}
	for _, offset := range []int64{other, otherDrop, reused} {
		if d := got[offset]; d.Code != viewkeeper.CodeIDReused || d.Version != viewkeeper.Version(offset)+1 || d.Epoch == 0 {
			t.Errorf("offset %d: %+v", offset, d)
		}
	}
}

// A header that is given twice is refused, as the law says; goka would hide the first.
// The nodes' own reader says the same of it.
func TestAHeaderGivenTwice(t *testing.T) {
	w := newWorld(t)
	w.start("node-1", nil)
	for _, headers := range [][2]string{{"id", "id"}, {"author", "author"}, {"expect-version", "expect-version"}} {
		m := &sarama.ProducerMessage{Topic: w.topics.Definitions(), Key: sarama.StringEncoder("main.a"), Value: sarama.StringEncoder("CREATE OR REPLACE VIEW a AS SELECT a FROM t")}
		for i, h := range headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(h), Value: fmt.Append(nil, i)})
		}
		w.write(m)
		if d := w.decided(m.Offset); d.Code != viewkeeper.CodeOption || !strings.Contains(d.Message, "twice") {
			t.Errorf("%s twice: %s %s", headers[0], d.Code, d.Message)
		}
	}
	m := &sarama.ProducerMessage{Topic: w.topics.Definitions(), Key: sarama.StringEncoder("main.a"), Value: sarama.StringEncoder("CREATE VIEW a AS SELECT a FROM t"),
		Headers: []sarama.RecordHeader{{Key: []byte("x"), Value: []byte("1")}, {Key: []byte("x"), Value: []byte("2")}, {Key: []byte("id\x00"), Value: []byte("3")}, {Key: []byte("id"), Value: []byte("4")}}}
	w.write(m)
	if d := w.decided(m.Offset); d.Verdict != viewkeeper.Accepted || d.StatementID != "4" {
		t.Errorf("%+v", d)
	}
}
