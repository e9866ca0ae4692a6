package processor

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
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
	const most = 34
	var crashes [most]bool
	t.Run("n", func(t *testing.T) {
		for n := range most {
			t.Run(fmt.Sprint(n), func(t *testing.T) {
				t.Parallel()
				crashes[n] = crashAfter(w.catalog(t, fmt.Sprintf("crash%d", n)), n)
			})
		}
	})
	needed := slices.Index(crashes[:], false)
	if needed < 20 || slices.Contains(crashes[needed:], true) {
		t.Errorf("%d records are written when nothing fails: %v", needed, crashes)
	}
}

// crashAfter reports whether there was a crash, which is when the owner wrote more
// than n records.
func crashAfter(w *world, n int) bool {
	errCrash := errors.New("crash")
	var crashed atomic.Bool
	statements := story()
	for _, s := range statements[:4] {
		w.emit(s)
	}
	m := w.start("node-1", func(p *Processor) {
		p.cfg.Heartbeat = time.Hour // only what the statements need is counted
		p.cfg.BatchBytes = 1500     // about two statements
		withFaults(func(sent int, flight []*sarama.ProducerMessage) (int, error) {
			if left := n - sent; left < len(flight) && !crashed.Swap(true) {
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
	return crashed.Load()
}
