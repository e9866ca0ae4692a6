package processor

import (
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/fold"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// begin judges a few statements and stops.
func (w *world) begin(statements []viewkeeper.Submission) {
	w.t.Helper()
	m := w.start("first", nil)
	for _, s := range statements {
		w.emit(s)
	}
	w.verify(statements)
	m.stop()
}

// remake deletes a topic and makes it anew, empty.
func (w *world) remake(topic string) {
	w.t.Helper()
	w.must(w.broker.Cluster().DeleteTopic(topic))
	_, err := w.admin.CreateTopics(w.ctx, w.topics)
	w.must(err)
}

// noFence fails the test when a blocked processor writes a fence.
func (w *world) noFence(m *member) {
	w.t.Helper()
	m.stop()
	f := w.table()
	if fence, _ := f.Fence(); fence != nil && fence.Owner == m.cfg.NodeID {
		w.t.Error("a process that may not own the catalog has written a fence")
	}
}

func TestLostTableBlocks(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	w.remake(w.topics.Table())
	m := w.start("second", nil)
	s := m.waitReason(viewkeeper.ReasonTableBehind)
	if s.State != StateBlocked || !strings.Contains(s.Reasons[viewkeeper.ReasonTableBehind], "restore") {
		t.Errorf("%+v", s)
	}
	w.noFence(m)
}

func TestLostTableBlocksWithoutOffsets(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	w.remake(w.topics.Table())
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	w.must(a.DeleteConsumerGroup(string(w.topics.Group())))
	m := w.start("second", nil)
	m.waitReason(viewkeeper.ReasonTableBehind) // the decisions are there
	w.noFence(m)
}

// Kafka forgets a group's offsets when nobody was in it for long. Nothing is judged
// twice then, and nothing is left out.
func TestOffsetsExpired(t *testing.T) {
	w := newWorld(t)
	statements := story()
	w.begin(statements)
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	w.must(a.DeleteConsumerGroup(string(w.topics.Group())))
	if _, ok, err := w.admin.Committed(w.ctx, string(w.topics.Group()), w.topics.Definitions()); ok || err != nil {
		t.Fatalf("the offset is still there: %v", err)
	}
	log := &lines{}
	w.log = slog.New(slog.NewTextHandler(log, nil))
	w.start("second", nil)
	statements = append(statements, create("e", 1))
	w.emit(statements[len(statements)-1])
	w.verify(statements)
	if n := log.count("statement judged"); n != 1 {
		t.Errorf("%d statements were judged, one is new", n)
	}
}

func TestTableBehindBlocks(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	for range 3 {
		w.emit(create("z", 1))
	}
	c, err := sarama.NewClient(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer c.Close()
	coordinator, err := c.Coordinator(string(w.topics.Group()))
	w.must(err)
	req := &sarama.OffsetCommitRequest{Version: 2, ConsumerGroup: string(w.topics.Group()), ConsumerGroupGeneration: -1, RetentionTime: -1}
	req.AddBlock(w.topics.Definitions(), 0, 9, 0, "")
	_, err = coordinator.CommitOffset(req)
	w.must(err)
	m := w.start("second", nil)
	m.waitReason(viewkeeper.ReasonTableBehind)
	// The nodes are told, although nothing is written to the table.
	var told viewkeeper.Blocked
	for told.Node == "" {
		w.must(w.ctx.Err())
		w.read(w.topics.Nodes(), func(m *sarama.ConsumerMessage) {
			if string(m.Key) == viewkeeper.BlockedKey {
				w.must(json.Unmarshal(m.Value, &told))
			}
		})
	}
	if told.Node != "second" || told.Reasons[viewkeeper.ReasonTableBehind] == "" {
		t.Errorf("%+v", told)
	}
	w.noFence(m)
}

func TestRecreatedDefinitionsBlock(t *testing.T) {
	w := newWorld(t)
	w.begin(story())
	w.remake(w.topics.Definitions())
	m := w.start("second", nil)
	m.waitReason(viewkeeper.ReasonTopicRecreated)
	w.noFence(m)
}

// Topics that are made anew under a running owner are noticed, and not judged.
func TestRecreatedUnderARunningOwner(t *testing.T) {
	for _, topic := range []string{kafka.Topics{Catalog: "test"}.Definitions(), kafka.Topics{Catalog: "test"}.Table()} {
		t.Run(topic, func(t *testing.T) {
			w := newWorld(t)
			m := w.start("node-1", nil)
			w.decided(w.emit(create("a", 1)))
			m.waitOwner()
			w.remake(topic)
			m.waitReason(viewkeeper.ReasonTopicRecreated)
			m.stop()
		})
	}
}

func TestWrongSettingsBlock(t *testing.T) {
	w := newWorld(t)
	w.must(w.broker.Cluster().DeleteTopic(w.topics.Table()))
	w.must(w.broker.Cluster().CreateTopic(w.topics.Table(), 1, map[string]string{"cleanup.policy": "delete"}))
	m := w.start("node-1", nil)
	s := m.waitReason(viewkeeper.ReasonTopicSettings)
	if !strings.Contains(s.Reasons[viewkeeper.ReasonTopicSettings], "cleanup.policy") {
		t.Errorf("%+v", s)
	}
}

// A topic that is not there is called that, as nodes call it; it is said once, and
// the processor goes on when it is created.
func TestMissingTableBlocks(t *testing.T) {
	w := newWorld(t)
	w.must(w.broker.Cluster().DeleteTopic(w.topics.Table()))
	log := &lines{}
	w.log = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	m := w.start("node-1", nil)
	s := m.waitReason(viewkeeper.ReasonTopicMissing)
	if !strings.Contains(s.Reasons[viewkeeper.ReasonTopicMissing], "topics create") || s.Reasons[viewkeeper.ReasonTopicSettings] != "" {
		t.Errorf("%+v", s)
	}
	m.waitFor("several lives", func(Status) bool { return log.count("will be started again") > 3 })
	_, err := w.admin.CreateTopics(w.ctx, w.topics)
	w.must(err)
	if s := m.waitOwner(); len(s.Reasons) > 0 {
		t.Errorf("%+v", s)
	}
	if n := log.count("level=WARN"); n != 1 || log.count("reason=TOPIC_MISSING") != 1 {
		t.Errorf("%d warnings", n)
	}
}

// A topic that is deleted under a running owner is noticed as soon as one that is made
// anew, long before the next look at the topics' settings.
func TestDefinitionsDeletedUnderARunningOwner(t *testing.T) {
	w := newWorld(t)
	m := w.start("node-1", func(p *Processor) { p.cfg.CheckTopics = 24 * time.Hour })
	m.waitOwner()
	w.must(w.broker.Cluster().DeleteTopic(w.topics.Definitions()))
	if s := m.waitReason(viewkeeper.ReasonTopicMissing); !strings.Contains(s.Reasons[viewkeeper.ReasonTopicMissing], w.topics.Definitions()) {
		t.Errorf("%+v", s)
	}
}

// lines is a log that a test counts in.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

func TestDeniedBlocks(t *testing.T) {
	w := newWorld(t)
	w.broker.Cluster().ControlKey(int16(kmsg.JoinGroup), func(r kmsg.Request) (kmsg.Response, error, bool) {
		w.broker.Cluster().KeepControl()
		res := r.ResponseKind().(*kmsg.JoinGroupResponse)
		res.ErrorCode = kerr.GroupAuthorizationFailed.Code
		return res, nil, true
	})
	m := w.start("node-1", nil)
	if s := m.waitReason(viewkeeper.ReasonKafkaDenied); s.State != StateBlocked || !strings.Contains(s.Reasons[viewkeeper.ReasonKafkaDenied], "rights of an owner") {
		t.Errorf("%+v", s)
	}
}

func TestStatementsLost(t *testing.T) {
	w := newWorld(t)
	for n := range 3 {
		w.emit(create("a", n))
	}
	a, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer a.Close()
	w.must(a.DeleteRecords(w.topics.Definitions(), map[int32]int64{0: 2}))
	m := w.start("node-1", nil)
	if d := w.decided(2); d.Version != 3 {
		t.Errorf("%+v", d)
	}
	s := m.waitReason(viewkeeper.ReasonStatementsLost)
	if s.State != StateOwner || !strings.Contains(s.Reasons[viewkeeper.ReasonStatementsLost], "2 offsets") {
		t.Errorf("%+v", s)
	}
	// The heartbeat tells the nodes.
	for w.table().Heartbeat().Reasons[viewkeeper.ReasonStatementsLost] == "" {
		w.must(w.ctx.Err())
	}
}

// The markers of transactions leave gaps in the input that no statement is missing in.
// A statement counts once it is in the topic, whatever becomes of its transaction.
func TestTransactionsInTheInput(t *testing.T) {
	w := newWorld(t)
	m := w.start("node-1", nil)
	m.waitOwner()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.settings.Brokers...), kgo.TransactionalID("stranger"))
	w.must(err)
	defer c.Close()
	var last int64
	for i, how := range []kgo.TransactionEndTry{kgo.TryCommit, kgo.TryAbort, kgo.TryCommit} {
		w.must(c.BeginTransaction())
		s := create("a", i)
		r := &kgo.Record{Topic: w.topics.Definitions(), Key: []byte(s.Key), Value: []byte(s.SQL)}
		w.must(c.ProduceSync(w.ctx, r).FirstErr())
		last = r.Offset
		w.must(c.EndTransaction(w.ctx, how))
	}
	end := w.emit(create("b", 1))
	if end != last+2 {
		t.Fatalf("there is no marker between offset %d and %d", last, end)
	}
	d := w.decided(end)
	if d.Version != viewkeeper.Version(end)+1 {
		t.Errorf("%+v", d)
	}
	got := byOffset(w.decisions("all", func(all []decision) bool { return len(all) >= 4 }))
	for offset, d := range got {
		if d.Verdict != viewkeeper.Accepted {
			t.Errorf("offset %d: %+v", offset, d)
		}
	}
	if s := m.Status(); len(got) != 4 || len(s.Reasons) != 0 {
		t.Errorf("%d decisions, %+v", len(got), s)
	}
	// What really is gone is still said.
	deleter, err := sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	defer deleter.Close()
	m.stop()
	for n := range 3 {
		end = w.emit(create("a", n))
	}
	w.must(deleter.DeleteRecords(w.topics.Definitions(), map[int32]int64{0: end}))
	w.start("node-2", nil).waitReason(viewkeeper.ReasonStatementsLost)
}

func TestCheckClaim(t *testing.T) {
	topics := kafka.Topics{Catalog: "c"}
	known := func(v, base viewkeeper.Version) *codec.Commit {
		return &codec.Commit{Version: v, VersionBase: base, DefinitionsTopic: "id"}
	}
	cases := []struct {
		name   string
		commit *codec.Commit
		in     fold.Input
		next   int64
		reason string
	}{
		{"first start", nil, fold.Input{TopicID: "id", Committed: -1, End: 5}, 0, ""},
		{"first start, offset 0 committed", nil, fold.Input{TopicID: "id"}, 0, ""},
		{"no table, an offset", nil, fold.Input{TopicID: "id", Committed: 3, End: 5}, 0, viewkeeper.ReasonTableBehind},
		{"no table, decisions", nil, fold.Input{TopicID: "id", Committed: -1, DecisionsEnd: 3}, 0, viewkeeper.ReasonTableBehind},
		{"goes on", known(7, 0), fold.Input{TopicID: "id", Committed: 7, End: 9}, 7, ""},
		{"offsets behind", known(7, 0), fold.Input{TopicID: "id", Committed: 2, End: 9}, 7, ""},
		{"offsets forgotten", known(7, 0), fold.Input{TopicID: "id", Committed: -1, End: 9}, 7, ""},
		{"offsets beyond", known(7, 0), fold.Input{TopicID: "id", Committed: 8, End: 9}, 0, viewkeeper.ReasonTableBehind},
		{"another topic", known(7, 0), fold.Input{TopicID: "other", Committed: -1, End: 9}, 0, viewkeeper.ReasonTopicRecreated},
		{"lost its end", known(7, 0), fold.Input{TopicID: "id", Committed: -1, End: 6}, 0, viewkeeper.ReasonTopicRecreated},
		{"adopted", known(107, 100), fold.Input{TopicID: "id", Committed: 7, End: 9}, 7, ""},
		{"adopted, nothing judged yet", known(100, 100), fold.Input{TopicID: "id", Committed: -1, End: 0}, 0, ""},
	}
	for _, c := range cases {
		next, err := checkClaim(topics, c.commit, c.in)
		if code, _ := reasonOf(err); err == nil && (next != c.next || c.reason != "") || err != nil && code != c.reason {
			t.Errorf("%s: next %d, %v", c.name, next, err)
		}
	}
}
