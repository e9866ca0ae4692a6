package view

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/tablecopy"
)

// withCopy is the configuration of a node that keeps a copy in dir.
func withCopy(t *testing.T, addr, dir string) Config {
	t.Helper()
	cfg := config(t, addr, "n1")
	cfg.DataDir = dir
	cfg.Registerer = prometheus.NewRegistry()
	return cfg
}

// recordsRead counts the records of the table that a node has read from Kafka.
func (r *running) recordsRead() int {
	r.t.Helper()
	return int(r.metric("viewkeeper_table_records_total"))
}

// hasRead waits until the node has read so many records of the table from Kafka, and
// wants it to read no more.
func (r *running) hasRead(want int, what string) {
	r.t.Helper()
	r.until(what, func() bool { return r.recordsRead() >= want })
	r.copied()
	if got := r.recordsRead(); got != want {
		r.t.Errorf("%d records were read, and %d are new: %s", got, want, what)
	}
}

// metric sums a metric over its labels.
func (r *running) metric(name string) float64 {
	r.t.Helper()
	families, err := r.cfg.Registerer.(*prometheus.Registry).Gather()
	if err != nil {
		r.t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	return sum
}

// copied waits until the copy has all that the node has read.
func (r *running) copied() {
	r.t.Helper()
	r.until("the copy", func() bool {
		r.copy.mu.Lock()
		defer r.copy.mu.Unlock()
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.accepted != nil && r.copy.of == r.accepted && r.copy.last.Offset == r.accepted.fold.Next()-1
	})
}

// stopped is a node that has followed everything, and stopped with its copy.
func stopped(t *testing.T, addr, dir string, o *owner) {
	t.Helper()
	n := run(t, withCopy(t, addr, dir), fast())
	n.ready()
	n.version(o.version)
	n.whole()
	a, err := settings(t, addr).OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	end, err := a.EndOffset(t.Context(), topics.Table())
	if err != nil {
		t.Fatal(err)
	}
	n.until("the table's end", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.accepted.fold.Next() == end
	})
	n.stop()
	if m, _, err := tablecopy.Read(tablecopy.Dir(dir)); err != nil || m.Version != o.version {
		t.Fatalf("the copy: %+v, %v", m, err)
	}
}

// rewriteCopy changes what a copy says of itself, and adds records to it.
func rewriteCopy(t *testing.T, dir string, change func(*tablecopy.Meta) []tablecopy.Record) {
	t.Helper()
	s, m, _, err := tablecopy.Open(tablecopy.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	records := change(&m)
	if err := s.Write(m, tablecopy.Batch{Put: records}); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// onlyWhole fails the test when the node ever serves something else than one of the
// catalogs, by version and number of definitions, or goes back, or takes ready back.
func (r *running) onlyWhole(lengths map[viewkeeper.Version]int) {
	end, ended := make(chan struct{}), make(chan struct{})
	r.t.Cleanup(func() { close(end); <-ended })
	go func() {
		defer close(ended)
		wasReady := false
		var last viewkeeper.Version
		for {
			c := r.Changed()
			f, s := r.Current(), r.Status()
			if want, ok := lengths[f.Version()]; (!ok && f.Version() > 0) || f.Len() != want || f.Version() < last {
				r.t.Errorf("a factory of version %d with %d definitions after version %d", f.Version(), f.Len(), last)
			}
			if wasReady && !s.Ready {
				r.t.Errorf("ready was taken back: %+v", s)
			}
			if s.Ready && s.Version == 0 {
				r.t.Errorf("ready with nothing: %+v", s)
			}
			wasReady, last = s.Ready, f.Version()
			select {
			case <-c:
			case <-end:
				return
			}
		}
	}()
}

func TestARestartReadsOnlyWhatIsNew(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	for range 20 {
		o.accept("", view("v", "SELECT a FROM t"))
		o.accept("", view("w", "SELECT b FROM t"))
	}
	dir := t.TempDir()
	stopped(t, b.Addr(), dir, o)
	o.accept("", view("x", "SELECT a FROM v"))
	o.accept("", change{"w", ""})

	n := run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.version(o.version)
	n.has("main.v", "main.x")
	n.hasRead(4, "two commit rows, two rows")
	if got := n.metric("viewkeeper_table_copy_loaded_records"); got != 4 {
		t.Errorf("the copy had %v records: the fence, the commit row, two rows", got)
	}
	n.whole()
	if got, complete, _ := n.page(DecisionQuery{Limit: 100}); len(got) != 42 || complete != 0 {
		t.Errorf("%d decisions, complete from %d", len(got), complete)
	}
	n.stop()
	// Nothing is new.
	n = run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.has("main.v", "main.x")
	if got := n.recordsRead(); got != 0 {
		t.Errorf("%d records were read again", got)
	}
}

// What was compacted while the node was away: it reads to the end before it shows
// anything, also when it serves its copy meanwhile.
func TestACopyBehindACompactedTable(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	names := []string{"a", "b", "c", "d", "e"}
	for _, name := range names {
		o.accept("", view(name, "SELECT a FROM t"))
	}
	dir := t.TempDir()
	stopped(t, b.Addr(), dir, o)
	lengths := map[viewkeeper.Version]int{0: 0, o.version: 5}
	for range 30 {
		for _, name := range names {
			o.accept("", view(name, "SELECT a, b FROM t"))
		}
	}
	o.accept("", change{"a", ""})
	lengths[o.version] = 4
	b.Cluster().Compact()

	n := run(t, withCopy(t, b.Addr(), dir), fast())
	n.onlyWhole(lengths)
	n.ready()
	n.version(o.version)
	n.has("main.b", "main.c", "main.d", "main.e")
	n.copied()
	n.stop()
	again := run(t, withCopy(t, b.Addr(), dir), fast())
	again.ready()
	again.has("main.b", "main.c", "main.d", "main.e")
	if got := again.recordsRead(); got != 0 {
		t.Errorf("%d records were read again", got)
	}
}

// Kafka is away when the node starts: its copy is served, with its age. When Kafka is
// back the node goes on from there.
func TestStartWithoutKafka(t *testing.T) {
	d := startDirBroker(t)
	o := newOwner(t, d.addr)
	o.takeOver()
	o.accept("first", view("v", "SELECT a FROM t"))
	o.accept("second", view("w", "SELECT b FROM t"))
	dir := t.TempDir()
	stopped(t, d.addr, dir, o)
	d.stop()

	n := run(t, withCopy(t, d.addr, dir), fast())
	n.onlyWhole(map[viewkeeper.Version]int{0: 0, 2: 2, 3: 3})
	n.ready()
	n.has("main.v", "main.w")
	s := n.Status()
	if s.Version != 2 || s.StaleFor <= 0 || !slices.Contains(s.Degraded, viewkeeper.ReasonKafkaAway) || s.Owner != "owner-1" || s.Digest == "" {
		t.Errorf("%+v", s)
	}
	// Time goes on.
	n.until("a greater age", func() bool { return n.Status().StaleFor > s.StaleFor+0.05 })
	// The history is there, and nobody says that it is whole.
	n.until("the history", func() bool {
		got, complete, _ := n.page(DecisionQuery{Limit: 10})
		return len(got) == 2 && complete == 2
	})
	if x, _, err := n.Decision(t.Context(), "first"); err != nil || x == nil || x.Version != 1 {
		t.Errorf("%+v, %v", x, err)
	}
	// Nobody can say who lives.
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, _, err := n.WaitFleet(ctx, 1); err != context.DeadlineExceeded {
		t.Errorf("waiting for the fleet: %v", err)
	}

	d.start()
	n.degraded(viewkeeper.ReasonKafkaAway, false)
	again := newOwner(t, d.addr)
	again.version = o.version
	again.takeOver()
	again.accept("", view("x", "SELECT a FROM v"))
	n.version(3)
	n.until("the age 0", func() bool { return n.Status().StaleFor == 0 })
	n.has("main.v", "main.w", "main.x")
	n.hasRead(3, "a fence, a commit row, a row")
	n.whole()
	if got, complete, _ := n.page(DecisionQuery{Limit: 10}); len(got) != 3 || complete != 0 {
		t.Errorf("%d decisions, complete from %d", len(got), complete)
	}
}

func TestStartWithoutKafkaIsNotAllowed(t *testing.T) {
	d := startDirBroker(t)
	o := newOwner(t, d.addr)
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, d.addr, dir, o)
	d.stop()
	cfg := withCopy(t, d.addr, dir)
	cfg.NoStartStale = true
	n := run(t, cfg, fast())
	n.reason(viewkeeper.ReasonKafkaAway)
	if f := n.Current(); f.Version() != 0 {
		t.Errorf("version %d is served", f.Version())
	}
	d.start()
	n.ready()
	n.has("main.v")
	if got := n.recordsRead(); got != 0 {
		t.Errorf("%d records were read again", got)
	}
}

// Without a copy there is nothing to serve.
func TestStartWithoutKafkaAndWithoutACopy(t *testing.T) {
	n := run(t, withCopy(t, "127.0.0.1:1", t.TempDir()), fast())
	n.reason(viewkeeper.ReasonKafkaAway)
	n.degraded(viewkeeper.ReasonCopyFailed, false)
}

// A copy that is too old, or whose age nobody can tell since the clock went back, is
// served and not ready; Kafka makes it ready.
func TestStartWithoutKafkaTooOld(t *testing.T) {
	d := startDirBroker(t)
	o := newOwner(t, d.addr)
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	for what, at := range map[string]time.Time{
		"a day old":       time.Now().Add(-24 * time.Hour),
		"from the future": time.Now().Add(24 * time.Hour),
	} {
		dir := t.TempDir()
		stopped(t, d.addr, dir, o)
		rewriteCopy(t, dir, func(m *tablecopy.Meta) []tablecopy.Record { m.At = at; return nil })
		d.stop()
		n := run(t, withCopy(t, d.addr, dir), fast())
		n.reason(viewkeeper.ReasonStale)
		if s := n.Status(); s.StaleFor <= DefaultMaxStale.Seconds() || s.Version != 1 {
			t.Errorf("%s: %+v", what, s)
		}
		n.has("main.v")
		d.start()
		n.ready()
		n.until("the age 0", func() bool { return n.Status().StaleFor == 0 })
		n.stop()
		if m, _, err := tablecopy.Read(tablecopy.Dir(dir)); err != nil || time.Since(m.At).Abs() > time.Hour {
			t.Errorf("%s: the copy is current at %v, %v", what, m.At, err)
		}
	}
}

// Damage: the table is read anew.
func TestADamagedCopyIsReadAnew(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	for what, damage := range map[string]func(dir string) error{
		"a missing file": func(dir string) error { return os.Remove(filepath.Join(dir, "CURRENT")) },
		"another record": func(dir string) error {
			rewriteCopy(t, filepath.Dir(dir), func(m *tablecopy.Meta) []tablecopy.Record {
				m.Version = 7 // and what it holds makes version 1
				return nil
			})
			return nil
		},
	} {
		dir := t.TempDir()
		stopped(t, b.Addr(), dir, o)
		if err := damage(tablecopy.Dir(dir)); err != nil {
			t.Fatal(err)
		}
		n := run(t, withCopy(t, b.Addr(), dir), fast())
		n.ready()
		n.has("main.v")
		n.hasRead(3, "a fence, a commit row, a row")
		if discarded := n.metric("viewkeeper_table_copy_discarded_total"); discarded != 1 {
			t.Errorf("%s: %v copies thrown away", what, discarded)
		}
		n.stop()
		if m, _, err := tablecopy.Read(tablecopy.Dir(dir)); err != nil || m.Version != 1 {
			t.Errorf("%s: the new copy: %+v, %v", what, m, err)
		}
	}
}

// Another topic under the table's name, or another cluster, while the node was down:
// the copy is of something else. It is kept aside, since it may be all that is left.
func TestACopyOfSomethingElse(t *testing.T) {
	for what, change := range map[string]func(*tablecopy.Meta){
		"topic":   func(m *tablecopy.Meta) { m.Topic = "another" },
		"cluster": func(m *tablecopy.Meta) { m.Cluster = "another" },
	} {
		b := startBroker(t)
		o := newOwner(t, b.Addr())
		o.takeOver()
		o.accept("", view("v", "SELECT a FROM t"))
		dir := t.TempDir()
		stopped(t, b.Addr(), dir, o)
		rewriteCopy(t, dir, func(m *tablecopy.Meta) []tablecopy.Record {
			change(m)
			return nil
		})
		n := run(t, withCopy(t, b.Addr(), dir), fast())
		n.ready()
		n.hasRead(3, "a fence, a commit row, a row")
		if discarded := n.metric("viewkeeper_table_copy_discarded_total"); discarded != 1 {
			t.Errorf("%s: %v copies thrown away", what, discarded)
		}
		n.stop()
		was, _, err := tablecopy.Read(tablecopy.Old(tablecopy.Dir(dir)))
		if err != nil || was.Topic != "another" && was.Cluster != "another" {
			t.Errorf("%s: %+v, %v", what, was, err)
		}
	}
}

// The table was emptied, or lost its end, while the node was down: what the copy has
// goes on being served, as by a node that was running.
func TestACopyOfMoreThanTheTableHas(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, b.Addr(), dir, o)
	rewriteCopy(t, dir, func(m *tablecopy.Meta) []tablecopy.Record {
		later := &owner{t: t, epoch: o.epoch, version: o.version, topic: o.topic, name: o.name}
		d, rows := later.decision("lost", view("w", "SELECT b FROM t"))
		key, value := codec.EncodeRecord(&codec.Commit{
			Version: d.Version, Epoch: o.epoch, Owner: o.name, DefinitionsTopic: o.topic,
			Decisions: []viewkeeper.Decision{d}, Rows: rows,
		})
		m.Offset, m.Version = 50, d.Version
		return []tablecopy.Record{{Offset: 50, Key: key, Value: value}}
	})
	n := run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.degraded(viewkeeper.ReasonTopicRecreated, true)
	n.has("main.v", "main.w")
	n.until("the table is read", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.following != n.accepted && !n.following.fold.Collecting() && n.following.fold.Version() == 1
	})
	if s := n.Status(); s.Version != 2 || s.StaleFor <= 0 || !s.Ready {
		t.Errorf("%+v", s)
	}
	// A table that is not behind is followed again, and copied; the other copy is kept.
	o.accept("", view("y", "SELECT b FROM t"))
	n.degraded(viewkeeper.ReasonTopicRecreated, false)
	n.until("its definitions", func() bool { return slices.Equal(n.names(), []string{"main.v", "main.y"}) })
	n.copied()
	n.stop()
	if m, _, err := tablecopy.Read(tablecopy.Dir(dir)); err != nil || m.Offset != 4 || m.Version != 2 {
		t.Errorf("%+v, %v", m, err)
	}
	if m, _, err := tablecopy.Read(tablecopy.Old(tablecopy.Dir(dir))); err != nil || m.Offset != 50 {
		t.Errorf("%+v, %v", m, err)
	}
}

// Records that the copy has not were deleted: what it has is served, and nothing that
// comes after the hole.
func TestACopyBeforeATruncatedTable(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, b.Addr(), dir, o)
	o.accept("", view("w", "SELECT a FROM t"))
	o.accept("", view("x", "SELECT a FROM t"))

	// Before the hole is nothing that the copy has not.
	if err := b.Cluster().DeleteRecords(topics.Table(), 0, 2); err != nil {
		t.Fatal(err)
	}
	kept := t.TempDir()
	if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	on := run(t, withCopy(t, b.Addr(), kept), fast())
	on.ready()
	on.degraded(viewkeeper.ReasonTableTruncated, true)
	on.version(3)
	on.has("main.v", "main.w", "main.x")
	on.stop()

	if err := b.Cluster().DeleteRecords(topics.Table(), 0, 5); err != nil {
		t.Fatal(err)
	}
	n := run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.degraded(viewkeeper.ReasonTableTruncated, true)
	n.has("main.v")
	o.accept("", view("y", "SELECT a FROM t"))
	n.until("another attempt", func() bool { return n.metric("viewkeeper_view_restarts_total") > 2 })
	n.has("main.v")
	if s := n.Status(); s.Version != 1 || s.StaleFor <= 0 || slices.Contains(s.Degraded, viewkeeper.ReasonKafkaAway) {
		t.Errorf("%+v", s)
	}
}

// The table is not there, or nobody may read it, when the node starts.
func TestStartWithTheTableMissing(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, b.Addr(), dir, o)
	if err := b.Cluster().DeleteTopic(topics.Table()); err != nil {
		t.Fatal(err)
	}
	n := run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.degraded(viewkeeper.ReasonTopicMissing, true)
	n.has("main.v")
	// Made anew and restored, it is followed.
	createTopics(t, b.Addr())
	n.degraded(viewkeeper.ReasonTopicRecreated, true)
	again := newOwner(t, b.Addr())
	again.version, again.noDecisions = o.version, true
	again.takeOver()
	again.accept("", view("v", "SELECT a FROM t"), view("w", "SELECT a FROM t"))
	n.version(2)
	n.has("main.v", "main.w")
	n.degraded(viewkeeper.ReasonTopicRecreated, false)
}

// Two nodes with one directory: the second says so, and goes on without a copy until
// it can have one.
func TestTwoNodesWithOneDirectory(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	first := run(t, withCopy(t, b.Addr(), dir), fast())
	first.ready()
	first.copied()
	cfg := withCopy(t, b.Addr(), dir)
	cfg.NodeID = "n2"
	second := run(t, cfg, fast())
	second.ready()
	second.has("main.v")
	second.degraded(viewkeeper.ReasonCopyFailed, true)
	if d := second.Status().Details[viewkeeper.ReasonCopyFailed]; !strings.Contains(d, "--data-dir") {
		t.Errorf("%q", d)
	}
	o.accept("", view("w", "SELECT a FROM t"))
	first.version(2)
	second.version(2)
	first.stop()
	second.degraded(viewkeeper.ReasonCopyFailed, false)
	second.copied()
	second.stop()
	if m, _, err := tablecopy.Read(tablecopy.Dir(dir)); err != nil || m.Version != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}

// A copy that can't be written costs nothing else, and is written again when it can be.
func TestACopyThatCannotBeWritten(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	where := tablecopy.Dir(dir)
	if err := os.WriteFile(where, []byte("in the way"), 0o644); err != nil {
		t.Fatal(err)
	}
	n := run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.degraded(viewkeeper.ReasonCopyFailed, true)
	o.accept("", view("w", "SELECT a FROM t"))
	n.version(2)
	if err := os.Remove(where); err != nil {
		t.Fatal(err)
	}
	n.degraded(viewkeeper.ReasonCopyFailed, false)
	n.copied()
	if n.metric("viewkeeper_table_copy_failures_total") == 0 {
		t.Error("no failure was counted")
	}

	// One that fails between two steps goes on where it was.
	n.copy.mu.Lock()
	_ = n.copy.store.Close()
	n.copy.mu.Unlock()
	failures := n.metric("viewkeeper_table_copy_failures_total")
	o.accept("", view("x", "SELECT a FROM t"))
	n.version(3)
	n.copied()
	if n.metric("viewkeeper_table_copy_failures_total") == failures {
		t.Error("no failure was counted")
	}
	n.stop()
	if m, records, err := tablecopy.Read(where); err != nil || m.Version != 3 || len(records) != 5 {
		t.Errorf("%+v, %d records, %v", m, len(records), err)
	}
}

// A node whose copy is taken away while it runs says so, and does not make a copy of a
// part of the table.
func TestACopyThatIsTakenAway(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	n := run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.copied()
	n.copy.mu.Lock()
	_ = n.copy.store.Close()
	if err := os.RemoveAll(tablecopy.Dir(dir)); err != nil {
		t.Fatal(err)
	}
	n.copy.mu.Unlock()
	o.accept("", view("w", "SELECT a FROM t"))
	n.degraded(viewkeeper.ReasonCopyFailed, true)
	n.version(2)
	n.until("it gives up", func() bool {
		n.copy.mu.Lock()
		defer n.copy.mu.Unlock()
		return n.copy.lost != nil
	})
	o.accept("", view("x", "SELECT a FROM t"))
	n.version(3)
	n.stop()
	if _, _, err := tablecopy.Read(tablecopy.Dir(dir)); err != tablecopy.ErrNone {
		t.Error(err)
	}
	n = run(t, withCopy(t, b.Addr(), dir), fast())
	n.ready()
	n.has("main.v", "main.w", "main.x")
	n.copied()
	n.degraded(viewkeeper.ReasonCopyFailed, false)
}

// The brokers go away while the node, which has a copy, reads what is new: it serves
// the copy, and nothing of what it had got to.
func TestKafkaGoesAwayWhileACopyCatchesUp(t *testing.T) {
	d := startDirBroker(t)
	o := newOwner(t, d.addr)
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, d.addr, dir, o)
	o.accept("", view("w", "SELECT a FROM t"), view("v", "SELECT b FROM t"))
	// The end is told, the records are not.
	d.b.Cluster().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		d.b.Cluster().KeepControl()
		req := r.(*kmsg.FetchRequest)
		if !slices.ContainsFunc(req.Topics, func(t kmsg.FetchRequestTopic) bool { return t.Topic == topics.Table() }) {
			return nil, nil, false
		}
		return nil, io.ErrUnexpectedEOF, true
	})
	n := run(t, withCopy(t, d.addr, dir), fast())
	n.onlyWhole(map[viewkeeper.Version]int{0: 0, 1: 1, 2: 2})
	n.until("the view", func() bool { return n.metric("viewkeeper_view_restarts_total") > 0 || n.State() == CatchUp })
	d.stop()
	n.ready()
	n.has("main.v")
	n.degraded(viewkeeper.ReasonKafkaAway, true)
	d.start()
	n.version(2)
	n.has("main.v", "main.w")
}

// Where records were read already that are behind the copy, it is read once more.
func TestACopyThatHasReadOn(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, b.Addr(), dir, o)
	cfg := withCopy(t, b.Addr(), dir)
	cfg.NoStartStale = true
	n, err := newNode(cfg, fast())
	if err != nil {
		t.Fatal(err)
	}
	n.loadCopy()
	t.Cleanup(n.copy.close)
	s := n.following
	_, rows := o.decision("", view("v", "SELECT b FROM t"))
	key, value := codec.EncodeRecord(codec.Row{Row: rows[0]})
	n.record(s, 7, codec.DecodeRecord(key, value), value) // behind a gap
	n.serveCopy(io.EOF)
	if n.accepted == nil || n.accepted == s || n.following != n.accepted || n.accepted.fold.Next() != 3 {
		t.Fatalf("accepted %+v, before %+v", n.accepted, s)
	}
	if p, rows := n.takePending(); !p.full || p.version != 1 || len(rows) != 1 || rows[0].Definition.SQL != "CREATE VIEW v AS SELECT a FROM t" {
		t.Errorf("%+v, %+v", p, rows)
	}
	n.record(s, 8, codec.DecodeRecord(key, value), value) // a view that was left behind
	if n.accepted.fold.Next() != 3 {
		t.Error("it reads into the session that is served")
	}
}

// A process that starts before the one that it replaces has ended, while Kafka is away.
func TestACopyThatIsFreeLater(t *testing.T) {
	d := startDirBroker(t)
	o := newOwner(t, d.addr)
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	dir := t.TempDir()
	stopped(t, d.addr, dir, o)
	d.stop()
	held, _, _, err := tablecopy.Open(tablecopy.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	n := run(t, withCopy(t, d.addr, dir), fast())
	n.reason(viewkeeper.ReasonKafkaAway)
	n.degraded(viewkeeper.ReasonCopyFailed, true)
	if err := held.Close(); err != nil {
		t.Fatal(err)
	}
	n.ready()
	n.has("main.v")
	n.degraded(viewkeeper.ReasonCopyFailed, false)
}

// A factory is never built of a table that is still being read, also when a build that
// failed is done again.
func TestABuildThatIsDoneAgainWaitsForTheTable(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	n, err := newNode(config(t, b.Addr(), "n1"), fast())
	if err != nil {
		t.Fatal(err)
	}
	s := n.following
	readTable(t, b.Addr(), n, s)
	if p, rows := n.takePending(); !p.full || len(rows) != 1 {
		t.Fatalf("%+v, %v", p, rows)
	}
	n.built(pending{full: true, since: time.Now()}, context.DeadlineExceeded)
	// A gap: what the fold has is no catalog until its end is known.
	key, value := codec.EncodeRecord(codec.Row{Row: viewkeeper.Row{Name: viewkeeper.MakeName("", "w"), Version: 1, Epoch: o.epoch}})
	n.record(s, 10, codec.DecodeRecord(key, value), value)
	if p, _ := n.takePending(); !p.empty() {
		t.Errorf("%+v is built", p)
	}
	n.mu.Lock()
	gap, _ := s.fold.NeedEnd()
	s.fold.EndIs(gap, 11)
	n.mu.Unlock()
	if p, _ := n.takePending(); p.empty() || !p.full {
		t.Errorf("%+v", p)
	}
}
