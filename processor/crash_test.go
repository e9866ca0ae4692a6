package processor

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// story is a few statements of every kind.
func story() []viewkeeper.Submission {
	s := []viewkeeper.Submission{
		create("a", 1),
		sql("main.b", "CREATE VIEW b AS SELECT n FROM a"),
		sql("main.x", "CREATE VIEW x AS SELECT nothing FROM a"),
		create("a", 2),
		sql("set", "BEGIN; CREATE VIEW c AS SELECT n FROM b; CREATE VIEW d AS SELECT n FROM c; COMMIT"),
		{Key: "main.d", Tombstone: true},
	}
	for i := range s {
		s[i].ID = fmt.Sprintf("s%d", i)
	}
	return append(s, s[1])
}

// The owner is stopped after its n-th record, for n = 0, 1, 2 … until a run needs no
// more of them. Whatever it had come to, nothing is lost, and nothing is decided twice
// with different content.
func TestCrashAfterEachRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("many runs")
	}
	w := newWorld(t)
	errCrash := errors.New("crash")
	for n := 0; ; n++ {
		w.topics = kafka.Topics{Catalog: fmt.Sprintf("crash%d", n)}
		_, err := w.admin.CreateTopics(w.ctx, w.topics)
		w.must(err)
		w.emitter = w.settings.NewEmitter(w.topics)

		var crashed atomic.Bool
		statements := story()
		for _, s := range statements[:4] {
			w.emit(s)
		}
		m := w.start("node-1", func(p *Processor) {
			p.cfg.Heartbeat = time.Hour // only what the statements need is counted
			p.cfg.BatchBytes = 1500     // about two statements
			withFaults(func(sent int, flight []*sarama.ProducerMessage) (int, error) {
				if left := n - sent; left <= len(flight) && !crashed.Swap(left <= len(flight)) {
					return left, errCrash
				}
				return 0, nil
			})(p)
		})
		for _, s := range statements[4:] {
			w.emit(s)
		}
		w.verify(statements)
		m.stop()
		w.must(w.emitter.Close())
		if !crashed.Load() {
			t.Logf("%d records", n)
			if n < 20 {
				t.Errorf("only %d crashes", n)
			}
			return
		}
	}
}
