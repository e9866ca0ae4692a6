package view

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/freeport"
)

// dirBroker is a broker that can be stopped and started again on its directory and
// address.
type dirBroker struct {
	t    *testing.T
	dir  string
	addr string
	b    *broker.Broker
}

func startDirBroker(t *testing.T) *dirBroker {
	t.Helper()
	d := &dirBroker{t: t, dir: t.TempDir(), addr: freeport.Addr(t)}
	d.start()
	t.Cleanup(func() { _ = d.b.Close() })
	createTopics(t, d.addr)
	return d
}

func (d *dirBroker) start() {
	d.t.Helper()
	b, err := broker.Start(d.t.Context(), d.dir, d.addr)
	if err != nil {
		d.t.Fatal(err)
	}
	d.b = b
}

func (d *dirBroker) stop() {
	d.t.Helper()
	if err := d.b.Close(); err != nil {
		d.t.Fatal(err)
	}
}

// A broker that comes and goes: ready stays, with the age of what is served, until
// that is too old; then ready again by itself.
func TestFlappingBroker(t *testing.T) {
	d := startDirBroker(t)
	o := newOwner(t, d.addr)
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	cfg := config(t, d.addr, "n1")
	cfg.MaxStale = time.Second
	n := run(t, cfg, fast())
	n.ready()
	for i := range 3 {
		d.stop()
		n.degraded(viewkeeper.ReasonKafkaAway, true)
		s := n.Status()
		if s.StaleFor <= 0 || s.Version != o.version || s.Details[viewkeeper.ReasonKafkaAway] == "" {
			t.Errorf("away: %+v", s)
		}
		n.until("stale", func() bool {
			ok, reasons := n.Ready()
			return !ok && slices.Contains(reasons, viewkeeper.ReasonStale)
		})
		if n.Current().Version() != o.version {
			t.Error("the factory went away")
		}
		d.start()
		n.ready()
		n.degraded(viewkeeper.ReasonKafkaAway, false)
		again := newOwner(t, d.addr)
		again.version = o.version
		o = again
		o.takeOver()
		o.accept("", view("v", "SELECT a FROM t"), view([]string{"x", "y", "z"}[i], "SELECT b FROM t"))
		n.version(o.version)
		// A factory is served a moment before the build that made it has ended.
		n.until("the age 0", func() bool { return n.Status().StaleFor == 0 })
	}
	n.has("main.v", "main.x", "main.y", "main.z")
}

// A broker that takes connections and says nothing.
func TestSilentBroker(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	clocks := fast()
	clocks.ping, clocks.silent, clocks.stop = time.Second, 1500*time.Millisecond, time.Second
	cfg := config(t, b.Addr(), "n1")
	cfg.ReadOnly = true
	n := run(t, cfg, clocks)
	n.ready()
	release := make(chan struct{})
	b.Cluster().Control(func(kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		<-release
		return nil, nil, false
	})
	n.degraded(viewkeeper.ReasonKafkaAway, true)
	close(release)
	n.degraded(viewkeeper.ReasonKafkaAway, false)
	o.accept("", view("v", "SELECT a FROM t"))
	n.version(1)
	n.ready()
}

// denyFetch has the broker deny to read a topic while the result is true.
func denyFetch(b *broker.Broker, topic string) *atomic.Bool {
	denied := &atomic.Bool{}
	denied.Store(true)
	b.Cluster().ControlKey(int16(kmsg.Fetch), func(r kmsg.Request) (kmsg.Response, error, bool) {
		b.Cluster().KeepControl()
		req := r.(*kmsg.FetchRequest)
		if !denied.Load() || !slices.ContainsFunc(req.Topics, func(t kmsg.FetchRequestTopic) bool { return t.Topic == topic }) {
			return nil, nil, false
		}
		res := req.ResponseKind().(*kmsg.FetchResponse)
		for _, asked := range req.Topics {
			topic := kmsg.NewFetchResponseTopic()
			topic.Topic = asked.Topic
			for _, p := range asked.Partitions {
				partition := kmsg.NewFetchResponseTopicPartition()
				partition.Partition, partition.ErrorCode = p.Partition, kerr.TopicAuthorizationFailed.Code
				partition.RecordBatches = []byte{} // sarama takes no null
				topic.Partitions = append(topic.Partitions, partition)
			}
			res.Topics = append(res.Topics, topic)
		}
		return res, nil, true
	})
	return denied
}

// A right to read that is taken away while the node runs is told from brokers that do
// not answer. goka makes text of the error; the word for it survives.
func TestReadIsDenied(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	cfg := config(t, b.Addr(), "n1")
	cfg.MaxStale = time.Second
	n := run(t, cfg, fast())
	n.ready()
	denied := denyFetch(b, topics.Table())
	n.degraded(viewkeeper.ReasonKafkaDenied, true)
	s := n.Status()
	if d := s.Details[viewkeeper.ReasonKafkaDenied]; slices.Contains(s.Degraded, viewkeeper.ReasonKafkaAway) || !strings.Contains(d, "--operation Read") || !strings.Contains(d, topics.Table()) {
		t.Errorf("%+v", s)
	}
	n.reason(viewkeeper.ReasonStale)
	denied.Store(false)
	o.heartbeat()
	n.ready()
	n.degraded(viewkeeper.ReasonKafkaDenied, false)
}

// What a node does beside following the table is denied: the node stays ready, says
// which topic and what to give, and takes the reason back by itself.
func TestASideIsDenied(t *testing.T) {
	for _, topic := range []string{topics.Decisions(), topics.Definitions(), topics.Nodes()} {
		t.Run("reading "+topic, func(t *testing.T) {
			b := startBroker(t)
			o := newOwner(t, b.Addr())
			o.takeOver()
			o.accept("", view("v", "SELECT a FROM t"))
			denied := denyFetch(b, topic)
			sideIsDenied(t, b, topic, func() { denied.Store(false) })
		})
	}
	t.Run("writing "+topics.Nodes(), func(t *testing.T) {
		b := startBroker(t)
		o := newOwner(t, b.Addr())
		o.takeOver()
		o.accept("", view("v", "SELECT a FROM t"))
		var denied atomic.Bool
		denied.Store(true)
		b.Cluster().ControlKey(int16(kmsg.Produce), func(r kmsg.Request) (kmsg.Response, error, bool) {
			b.Cluster().KeepControl()
			if !denied.Load() {
				return nil, nil, false
			}
			res := r.ResponseKind().(*kmsg.ProduceResponse)
			topic := kmsg.NewProduceResponseTopic()
			topic.Topic = topics.Nodes()
			partition := kmsg.NewProduceResponseTopicPartition()
			partition.ErrorCode = kerr.TopicAuthorizationFailed.Code
			topic.Partitions = append(topic.Partitions, partition)
			res.Topics = append(res.Topics, topic)
			return res, nil, true
		})
		sideIsDenied(t, b, topics.Nodes(), func() { denied.Store(false) })
	})
}

func sideIsDenied(t *testing.T, b *broker.Broker, topic string, allow func()) {
	t.Helper()
	clocks := fast()
	clocks.silent = time.Second
	n := run(t, config(t, b.Addr(), "n1"), clocks)
	n.ready()
	n.degraded(viewkeeper.ReasonKafkaDenied, true)
	if s := n.Status(); !s.Ready || !strings.Contains(s.Details[viewkeeper.ReasonKafkaDenied], topic) || !strings.Contains(s.Details[viewkeeper.ReasonKafkaDenied], "kafka-acls") {
		t.Errorf("%+v", s)
	}
	allow()
	n.degraded(viewkeeper.ReasonKafkaDenied, false)
	n.whole()
	n.sees("n1")
}

// The partitions' leaders move from broker to broker.
func TestMovingLeaders(t *testing.T) {
	b, err := broker.StartWith(t.Context(), broker.Options{Addr: "127.0.0.1:0", Extra: []kfake.Opt{kfake.NumBrokers(3)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	createTopics(t, b.Addr())
	o := newOwner(t, b.Addr())
	o.takeOver()
	n := run(t, config(t, b.Addr(), "n1"), fast())
	n.ready()
	for i := range 4 {
		for j, topic := range topics.All() {
			if err := b.Cluster().MoveTopicPartition(topic, 0, int32(i+j)%3); err != nil {
				t.Fatal(err)
			}
		}
		o.accept("", view("v", "SELECT a FROM t"))
		n.version(o.version)
	}
	n.whole()
	n.ready()
	if got, complete, _ := n.page(DecisionQuery{Limit: 10}); len(got) != 4 || complete != 0 {
		t.Errorf("%v, complete from %d", got, complete)
	}
}
