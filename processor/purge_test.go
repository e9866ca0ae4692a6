package processor

import (
	"fmt"
	"testing"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
)

// purging makes a processor look for old drop rows all the time, and find all of them old.
func purging(p *Processor) {
	p.cfg.PurgeAfter = time.Millisecond
	p.sweeps.every = 10 * time.Millisecond
}

// drops gives the names that the table says were dropped.
func drops(f *fold.Fold) (names []string) {
	f.Take() // what was purged is there until it was told
	for _, r := range f.Rows() {
		if !r.Live() {
			names = append(names, r.Name.View)
		}
	}
	return names
}

// compactAll compacts the table to what Kafka would leave one day.
func (w *world) compactAll() {
	w.t.Helper()
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	none := "0"
	w.must(a.IncrementalAlterConfig(sarama.TopicResource, w.topics.Table(), map[string]sarama.IncrementalAlterConfigsEntry{
		"delete.retention.ms": {Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &none}}, false))
	w.broker.Cluster().Compact()
}

// Drops that are old are purged, all but those that the commit row still names; what is
// created again under their names stays, and so does all else, for this owner, the next
// one, and whoever reads the table from nothing.
func TestOldDropsArePurged(t *testing.T) {
	w := newWorld(t)
	m := w.start("node-1", purging)
	m.waitOwner()
	statements := []viewkeeper.Submission{create("kept", 1)}
	for n := range 5 {
		for range 2 {
			name := fmt.Sprintf("n%d", n)
			statements = append(statements, create(name, n), sql("main."+name, "DROP VIEW "+name))
		}
	}
	last := viewkeeper.Version(len(statements))
	for _, s := range statements {
		w.emit(s)
	}
	w.decided(int64(last) - 1)
	statements = append(statements, create("n3", 7)) // in a commit row of its own
	w.emit(statements[last])
	w.decided(int64(last))
	f := w.table()
	for len(drops(f)) > 0 {
		w.must(w.ctx.Err())
		f = w.table()
	}
	if got := f.Commit().PurgedThrough; got != last {
		t.Errorf("purged through version %s, the last drop is of version %s", got, last)
	}
	w.compactAll()
	check := func(statements []viewkeeper.Submission) {
		t.Helper()
		f := w.settled(0)
		_, rows := w.law(statements)
		for name, want := range rows {
			got, ok := f.Row(name)
			if ok != want.Live() && got.Live() != want.Live() || want.Live() && (got.Version != want.Version || *got.Definition != *want.Definition) {
				t.Errorf("the table has %+v, the law %+v", got, want)
			}
		}
	}
	check(statements)

	// The judge agrees, now and after the next take-over.
	for _, s := range []viewkeeper.Submission{create("n1", 1), sql("main.n0", "DROP VIEW n0")} {
		statements = append(statements, s)
		w.emit(s)
	}
	w.decided(int64(len(statements) - 1))
	check(statements)
	m.stop()
	w.start("node-2", purging).waitOwner()
	statements = append(statements, sql("main.n1", "DROP VIEW n1"), create("n2", 2))
	for _, s := range statements[len(statements)-2:] {
		w.emit(s)
	}
	w.decided(int64(len(statements) - 1))
	check(statements)
	w.decisions("all decisions", func(all []decision) bool { return len(byOffset(all)) == len(statements) })
}

// Twenty thousand names that were created and dropped leave nothing behind.
func TestATableOfDropsStaysSmall(t *testing.T) {
	const names = 20_000
	w := newWorld(t)
	topicID, err := w.admin.TopicID(w.ctx, w.topics.Definitions())
	w.must(err)
	live := viewkeeper.MakeName("", "kept")
	kept := viewkeeper.Row{Name: live, Version: 1, Epoch: 1, Definition: &viewkeeper.Definition{
		Name: live, Kind: viewkeeper.KindView, SQL: "CREATE VIEW kept AS SELECT a FROM t", ID: 1}}
	table := []codec.Record{&codec.Fence{Nonce: "00", Owner: "before"}}
	for n := range names {
		table = append(table, codec.Row{Row: viewkeeper.Row{Name: viewkeeper.MakeName("", fmt.Sprint("n", n)), Version: viewkeeper.Version(n + 2), Epoch: 1}})
	}
	table = append(table, codec.Row{Row: kept}, &codec.Commit{
		Version: names + 1, Epoch: 1, Owner: "before", DefinitionsTopic: topicID, VersionBase: names + 1})
	var messages []*sarama.ProducerMessage
	for _, r := range table {
		messages = append(messages, tableMessage(w.topics.Table(), r))
	}
	w.write(messages...)
	m := w.start("node-1", purging)
	m.waitOwner()
	f := w.table()
	for len(drops(f)) > 0 {
		w.must(w.ctx.Err())
		f = w.table()
	}
	w.compactAll()
	records := 0
	w.read(w.topics.Table(), func(*sarama.ConsumerMessage) { records++ })
	// Heartbeats, slots, fences: what a table has that never held more than one definition.
	if got, ok := w.table().Row(live); !ok || got.Version != 1 || records > 100 {
		t.Errorf("%d records, %+v", records, got)
	}
}

// The processor of a purge is superseded between the commit row that says so and the
// purge; the name is created again meanwhile. What comes late counts for nothing.
func TestAPurgeThatComesLate(t *testing.T) {
	w := newWorld(t)
	asleep, wake := make(chan struct{}), make(chan struct{})
	slept := false
	one := w.start("one", func(p *Processor) {
		purging(p)
		withFaults(func(_ int, messages []*sarama.ProducerMessage) (int, error) {
			if messages[0].Topic == w.topics.Table() && messages[0].Value == nil && !slept {
				slept = true
				close(asleep)
				<-wake
			}
			return 0, nil
		})(p)
	})
	one.waitOwner()
	statements := []viewkeeper.Submission{create("a", 1), sql("main.a", "DROP VIEW a"), create("b", 1)}
	for _, s := range statements[:2] {
		w.emit(s)
	}
	w.decided(1)
	w.emit(statements[2]) // in a commit row of its own
	select {
	case <-asleep:
	case <-w.ctx.Done():
		t.Fatal("nothing is purged")
	}
	w.remove("one")
	two := w.start("two", nil)
	two.waitOwner()
	statements = append(statements, create("a", 2))
	w.emit(statements[3])
	w.decided(3)
	stale := w.table().Counts().Stale
	close(wake)
	for w.table().Counts().Stale == stale {
		w.must(w.ctx.Err())
	}
	w.verify(statements)
	w.compactAll()
	w.verify(statements)
}
