package processor

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

func TestOwnershipMovesAndGoesOn(t *testing.T) {
	w := newWorld(t)
	statements := story()
	one := w.start("node-1", nil)
	first := one.waitOwner()
	for _, s := range statements[:3] {
		w.emit(s)
	}
	w.decided(2)
	two := w.start("node-2", nil)
	two.waitFor("standing by, or owning", func(s Status) bool { return s.State == StateStandby || s.State == StateOwner })
	for _, s := range statements[3:5] {
		w.emit(s)
	}
	w.decided(4)
	one.stop()
	second := two.waitOwner()
	for _, s := range statements[5:] {
		w.emit(s)
	}
	w.verify(statements)
	if second.Epoch <= first.Epoch {
		t.Errorf("epoch %d after %d", second.Epoch, first.Epoch)
	}
	two.stop()

	// A process that comes back goes on.
	three := w.start("node-1", nil)
	if s := three.waitOwner(); s.Version != viewkeeper.Version(len(statements)) || s.Epoch <= second.Epoch {
		t.Errorf("%+v", s)
	}
	statements = append(statements, create("e", 1))
	w.emit(statements[len(statements)-1])
	w.verify(statements)
}

// A process that joins does not take the role from an owner that is well, whatever its
// name.
func TestJoiningTakesNothing(t *testing.T) {
	w := newWorld(t)
	owner := w.start("node-5", nil)
	owner.waitOwner()
	for n, name := range []string{"node-1", "node-9", "a"} {
		joined := w.start(name, nil)
		joined.waitFor("standing by, or owning", func(s Status) bool { return s.State == StateStandby || s.State == StateOwner })
		if d := w.decided(w.emit(create("a", n))); d.Owner != "node-5" {
			t.Fatalf("after %s joined, %s decides", name, d.Owner)
		}
	}
}

// Two processes with one node id: the one that is thrown out says why, and stays out
// while the other lives, instead of throwing it out in turn.
func TestOneNodeIDTwice(t *testing.T) {
	w := newWorld(t)
	one := w.start("node-1", nil)
	first := one.waitOwner()
	two := w.start("node-1", nil)
	second := two.waitOwner()
	s := one.waitReason(viewkeeper.ReasonNodeIDTaken)
	if s.State != StateBlocked || !strings.Contains(s.Reasons[viewkeeper.ReasonNodeIDTaken], "--node-id") {
		t.Errorf("%+v", s)
	}
	for n := range 3 {
		w.decided(w.emit(create("a", n)))
	}
	if s := two.Status(); s.State != StateOwner || s.Epoch != second.Epoch || s.Epoch <= first.Epoch {
		t.Errorf("the second one is %+v", s)
	}
	two.stop()
	if s := one.waitOwner(); s.Epoch <= second.Epoch || len(s.Reasons) > 0 {
		t.Errorf("when the second has gone the first is %+v", s)
	}
}

// A zombie: the owner hangs before its n-th flight, loses the partition to another
// owner, and writes on when it wakes up. What it wrote counts for nobody, and is
// healed.
func TestZombieAtEachFlight(t *testing.T) {
	w := newWorld(t)
	for n, flight := range []string{"commit row", "rows and decisions"} {
		t.Run(flight, func(t *testing.T) {
			t.Parallel()
			w := w.catalog(t, fmt.Sprintf("zombie%d", n))
			statements := story()
			var armed atomic.Bool
			asleep, wake := make(chan struct{}), make(chan struct{})
			flights := 0
			one := w.start("zombie", withFaults(func(_ int, messages []*sarama.ProducerMessage) (int, error) {
				if !armed.Load() || isHeartbeat(messages) {
					return 0, nil
				}
				if flights++; flights == n+1 {
					close(asleep)
					<-wake
				}
				return 0, nil
			}))
			one.waitOwner()
			for _, s := range statements[:3] {
				w.emit(s)
			}
			w.decided(2)
			armed.Store(true)
			w.emit(statements[3])
			<-asleep

			w.remove("zombie")
			two := w.start("other", nil)
			epoch := two.waitOwner().Epoch
			for _, s := range statements[4:] {
				w.emit(s)
			}
			w.decided(5)
			stale := w.table().Counts().Stale
			close(wake)
			// Its late records come, and count for nobody.
			for w.table().Counts().Stale == stale {
				w.must(w.ctx.Err())
			}
			f := w.settled(0)
			if f.Epoch() != epoch {
				t.Errorf("epoch %d, the owner's is %d", f.Epoch(), epoch)
			}
			w.verify(statements)
			one.stop()
			two.stop()
		})
	}
}

// The very first owner hangs before its first commit row, and so does the next one; then
// the first one wakes up. Its commit row counts for nobody, so its decision must not be
// there either: the third one would take the table for one that was lost.
func TestZombieOfTheFirstStart(t *testing.T) {
	w := newWorld(t)
	hangs := func() (change func(*Processor), asleep, wake chan struct{}) {
		asleep, wake = make(chan struct{}), make(chan struct{})
		var once sync.Once
		return withFaults(func(_ int, messages []*sarama.ProducerMessage) (int, error) {
			if key, _ := messages[0].Key.Encode(); string(key) == codec.KeyCommit {
				once.Do(func() {
					close(asleep)
					<-wake
				})
			}
			return 0, nil
		}), asleep, wake
	}
	faults, oneAsleep, wakeOne := hangs()
	one := w.start("one", faults)
	one.waitOwner()
	w.emit(create("a", 1))
	<-oneAsleep

	w.remove("one")
	faults, twoAsleep, wakeTwo := hangs()
	two := w.start("two", faults)
	two.waitOwner()
	<-twoAsleep
	close(wakeOne)
	for w.table().Counts().Stale == 0 {
		w.must(w.ctx.Err())
	}
	one.stop()

	w.remove("two")
	three := w.start("three", nil)
	three.waitOwner()
	close(wakeTwo)
	if d := w.decided(0); d.Owner != "three" || d.Version != 1 {
		t.Errorf("%+v", d)
	}
	w.verify([]viewkeeper.Submission{create("a", 1)})
}

func isHeartbeat(messages []*sarama.ProducerMessage) bool {
	key, _ := messages[0].Key.Encode()
	return string(key) == "#heartbeat"
}

// remove throws a member out of the group, as a broker does with one that is silent.
func (w *world) remove(node string) {
	w.t.Helper()
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	_, err = a.RemoveMemberFromConsumerGroup(string(w.topics.Group()), []string{instanceID(node)})
	w.must(err)
}
