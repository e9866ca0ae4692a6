package processor

import (
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// What strangers put over the owner's records is healed, and never counts.
func TestHealing(t *testing.T) {
	w := newWorld(t)
	statements := story()
	m := w.start("node-1", nil)
	for _, s := range statements {
		w.emit(s)
	}
	w.verify(statements)
	table := w.topics.Table()
	forged := viewkeeper.Row{Name: viewkeeper.MakeName("", "b"), Version: 2, Epoch: 0}
	w.write(
		&sarama.ProducerMessage{Topic: table, Key: sarama.StringEncoder("main.a")},
		&sarama.ProducerMessage{Topic: table, Key: sarama.StringEncoder("#commit"), Value: sarama.StringEncoder("rubbish")},
		&sarama.ProducerMessage{Topic: table, Key: sarama.StringEncoder("#ids/0000")},
		tableMessage(table, codec.Row{Row: forged}),
	)
	w.settled(0)
	w.verify(statements)
	c := w.table().Counts()
	if c.Tombstones != 2 || c.Unknown != 1 || c.Stale != 1 {
		t.Errorf("%+v", c)
	}
	// The owner is the same one, and goes on.
	statements = append(statements, create("e", 1))
	w.emit(statements[len(statements)-1])
	w.verify(statements)
	if s := m.waitOwner(); s.Err != "" {
		t.Errorf("%+v", s)
	}
}

// An owner whose fence is written over, or that sees a later one, takes over again
// with a higher epoch.
func TestFences(t *testing.T) {
	w := newWorld(t)
	m := w.start("node-1", nil)
	epoch := m.waitOwner().Epoch
	fence, _ := w.table().Fence()
	w.write(&sarama.ProducerMessage{Topic: w.topics.Table(), Key: sarama.StringEncoder(fence.Key())})
	higher := func(than viewkeeper.Epoch) func(Status) bool {
		return func(s Status) bool { return s.State == StateOwner && s.Epoch > than }
	}
	m.waitFor("another epoch", higher(epoch))
	w.write(tableMessage(w.topics.Table(), &codec.Fence{Nonce: "ab", EpochBase: 1000, Owner: "stranger"}))
	s := m.waitFor("another epoch", higher(1000))
	if s.Err != "" {
		t.Errorf("%+v", s)
	}
	if d := w.decided(w.emit(create("a", 1))); d.Epoch != s.Epoch {
		t.Errorf("%+v", d)
	}
}

// Damage that comes while nobody owns the catalog is healed at the take-over.
func TestHealingAtTheTakeOver(t *testing.T) {
	w := newWorld(t)
	statements := story()
	w.begin(statements)
	w.write(&sarama.ProducerMessage{Topic: w.topics.Table(), Key: sarama.StringEncoder("main.c")},
		&sarama.ProducerMessage{Topic: w.topics.Table(), Key: sarama.StringEncoder("#commit")})
	w.start("second", nil)
	w.settled(0)
	w.verify(statements)
}
