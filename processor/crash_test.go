package processor

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
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

// crashStory is what an owner gets through however often it is stopped.
type crashStory struct {
	name string
	// before is what lies in the topics when the owner starts that is to be stopped.
	before func(w *world, statements []viewkeeper.Submission)
	// done is how many of the statements before sends.
	done int
	// during comes while it works.
	during func(w *world)
	// decisionsFirst lets a flight that is cut short leave decisions, not rows: they
	// are of another topic, and may be written in any order.
	decisionsFirst bool
	// least and most bound the number of records that it writes when nothing fails.
	least, most int
}

func crashStories() []crashStory {
	return []crashStory{
		{name: "statements", least: 20, most: 34},
		{name: "statements, decisions first", decisionsFirst: true, least: 20, most: 34},
		{name: "take-over, completion and healing", before: leftBehind, done: 4, decisionsFirst: true, least: 15, most: 40},
		{name: "healing", during: strangers, least: 24, most: 44},
	}
}

// The owner is stopped after its n-th record, for n = 0, 1, 2 … until a run needs no
// more of them. Whatever it had come to, nothing is lost, and nothing is decided twice
// with different content.
func TestCrashAfterEachRecord(t *testing.T) {
	if testing.Short() {
		t.Skip("many runs")
	}
	w := newWorld(t)
	for i, story := range crashStories() {
		crashes := make([]bool, story.most)
		var ran atomic.Int64 // fewer when -run names some of them
		t.Run(story.name, func(t *testing.T) {
			for n := range story.most {
				t.Run(fmt.Sprint(n), func(t *testing.T) {
					t.Parallel()
					crashes[n] = crashAfter(w.catalog(t, fmt.Sprintf("crash%d-%d", i, n)), story, n)
					ran.Add(1)
				})
			}
		})
		// How statements fall into batches, and with it the number, is not always the same.
		needed := slices.Index(crashes, false)
		if int(ran.Load()) == story.most && (needed < story.least || crashes[story.most-1]) {
			t.Errorf("%s: %d records are written when nothing fails: %v", story.name, needed, crashes)
		}
	}
}

// crashAfter reports whether there was a crash, which is when the owner wrote more
// than n records. Heartbeats are not counted.
func crashAfter(w *world, s crashStory, n int) bool {
	errCrash := errors.New("crash")
	var crashed atomic.Bool
	var mu sync.Mutex
	sent := 0
	statements := story()
	if s.before != nil {
		s.before(w, statements[:s.done])
	} else {
		for _, st := range statements[:4] {
			w.emit(st)
		}
	}
	m := w.start("node-1", func(p *Processor) {
		p.cfg.BatchBytes = 1500 // about two statements
		withFaults(func(_ int, flight []*sarama.ProducerMessage) (int, error) {
			if isHeartbeat(flight) {
				return 0, nil
			}
			if s.decisionsFirst {
				slices.SortStableFunc(flight, func(a, b *sarama.ProducerMessage) int { return strings.Compare(a.Topic, b.Topic) })
			}
			mu.Lock()
			defer mu.Unlock()
			if left := n - sent; left < len(flight) && !crashed.Swap(true) {
				return left, errCrash
			}
			sent += len(flight)
			return 0, nil
		})(p)
	})
	for _, st := range statements[max(s.done, 4):] {
		w.emit(st)
	}
	w.verify(statements)
	if s.during != nil {
		s.during(w)
		w.verify(statements)
	}
	m.stop()
	return crashed.Load()
}

// leftBehind is the worst that an owner can find: the one before died between the
// commit row of these statements and everything that follows it, another one right after
// its fence, and a zombie wrote over the commit row, rows and ids meanwhile.
func leftBehind(w *world, statements []viewkeeper.Submission) {
	for _, s := range statements {
		w.emit(s)
	}
	died, end := make(chan struct{}), make(chan struct{})
	m := w.start("first", withFaults(func(_ int, flight []*sarama.ProducerMessage) (int, error) {
		if key, _ := flight[0].Key.Encode(); string(key) != "main.a" {
			return 0, nil
		}
		close(died)
		<-end
		return 0, errors.New("it is dead")
	}))
	<-died
	m.cancel()
	close(end)
	<-m.ended
	f := w.table()
	if f.Commit() == nil || len(f.Completion(1)) == 0 {
		w.t.Fatalf("there is nothing to complete: %+v", f.Commit())
	}
	table, old := w.topics.Table(), f.Epoch()
	stale := *f.Commit()
	stale.Version++
	stale.Rows = []viewkeeper.Row{{Name: viewkeeper.MakeName("", "zz"), Version: stale.Version, Epoch: old}}
	w.write(
		tableMessage(table, &codec.Fence{Nonce: "dead", EpochBase: f.EpochBase(), Owner: "second"}),
		tableMessage(table, &stale),
		tableMessage(table, codec.Row{Row: stale.Rows[0]}),
		tableMessage(table, codec.Row{Row: viewkeeper.Row{Name: viewkeeper.MakeName("", "a"), Version: stale.Version, Epoch: old}}),
		tableMessage(table, &codec.IDs{Slot: 0, Epoch: old, Version: 1, IDs: []codec.ID{{ID: "stranger", Text: "0", Version: 1}}}),
		&sarama.ProducerMessage{Topic: table, Key: sarama.StringEncoder("main.b")},
	)
}

// strangers write over everything that an owner at work has written.
func strangers(w *world) {
	table := w.topics.Table()
	stale := *w.table().Commit()
	stale.Epoch, stale.Version = 0, stale.Version+7
	w.write(
		&sarama.ProducerMessage{Topic: table, Key: sarama.StringEncoder("main.a")},
		&sarama.ProducerMessage{Topic: table, Key: sarama.StringEncoder("main.c"), Value: sarama.StringEncoder("rubbish")},
		&sarama.ProducerMessage{Topic: table, Key: sarama.StringEncoder("#ids/0000")},
		tableMessage(table, codec.Row{Row: viewkeeper.Row{Name: viewkeeper.MakeName("", "b"), Version: 2}}),
		tableMessage(table, &stale),
	)
}
