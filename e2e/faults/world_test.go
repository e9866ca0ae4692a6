// Package faults shows on real Apache Kafka that the faults which registries of
// this kind have had in the field are not viewkeeper's. docs/faults.md is the list;
// the numbers in the tests' comments are its rows.
//
// Tests that only wait run side by side. Those that stop the broker do not, and each
// has a catalog of its own.
package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/kafka/kafkatest"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// world is a fleet, and clients of the test's own on its topics.
type world struct {
	*fleet.Fleet
	t        *testing.T
	settings kafka.Settings
	admin    *kafka.Admin
	cluster  sarama.ClusterAdmin
	producer sarama.SyncProducer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return newWorldOf(t, fleet.New(t))
}

func newWorldOf(t *testing.T, f *fleet.Fleet) *world {
	t.Helper()
	w := &world{Fleet: f, t: t}
	var err error
	w.settings, err = kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: strings.Split(f.Brokers, ",")})
	w.must(err)
	w.admin, err = w.settings.OpenAdmin(t.Context())
	w.must(err)
	w.cluster, err = sarama.NewClusterAdmin(w.settings.Brokers, w.settings.Sarama())
	w.must(err)
	config := w.settings.Sarama()
	config.Producer.MaxMessageBytes = 64 << 20 // what is too large is the broker's to say
	w.producer, err = sarama.NewSyncProducer(w.settings.Brokers, config)
	w.must(err)
	t.Cleanup(func() {
		if err := errors.Join(w.producer.Close(), w.cluster.Close(), w.admin.Close()); err != nil {
			t.Log(err)
		}
	})
	return w
}

func (w *world) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

// record is a record to write; nil and empty are told apart.
type record struct {
	key, value []byte
	headers    map[string]string
}

func ddl(key, sql string) record { return record{key: []byte(key), value: []byte(sql)} }

// write writes one record to a topic of the catalog and gives its offset.
func (w *world) write(topic string, r record) (int64, error) {
	m := &sarama.ProducerMessage{Topic: w.Topic(topic)}
	if r.key != nil {
		m.Key = sarama.ByteEncoder(r.key)
	}
	if r.value != nil {
		m.Value = sarama.ByteEncoder(r.value)
	}
	for k, v := range r.headers {
		m.Headers = append(m.Headers, sarama.RecordHeader{Key: []byte(k), Value: []byte(v)})
	}
	_, offset, err := w.producer.SendMessage(m)
	return offset, err
}

// submit writes a statement and gives the version that its decision will have.
func (w *world) submit(r record) viewkeeper.Version {
	w.t.Helper()
	offset, err := w.write("definitions", r)
	w.must(err)
	return viewkeeper.Version(offset + 1)
}

// decision waits until a node knows the decision of a version.
func (w *world) decision(n *fleet.Proc, v viewkeeper.Version) (d viewkeeper.Decision) {
	w.t.Helper()
	fleet.Eventually(w.t, fmt.Sprintf("%s: the decision of version %d", n.Name, v), func() error {
		var page struct {
			Decisions []viewkeeper.Decision `json:"decisions"`
		}
		if _, err := n.Try(http.MethodGet, fmt.Sprintf("/v1/decisions?since=%d&limit=1", v-1), nil, &page); err != nil {
			return err
		}
		if len(page.Decisions) == 0 || page.Decisions[0].Version != v {
			return fmt.Errorf("the next one after %d is %v", v-1, page.Decisions)
		}
		d = page.Decisions[0]
		return nil
	})
	return d
}

// verdict is a decision in two words.
func verdict(d viewkeeper.Decision) string {
	return strings.TrimSpace(string(d.Verdict) + " " + string(d.Code))
}

// read gives all records of a topic that are there now.
func (w *world) read(topic string) (all []*sarama.ConsumerMessage) {
	w.t.Helper()
	begin, err := w.admin.BeginOffset(w.t.Context(), w.Topic(topic))
	w.must(err)
	end, err := w.admin.EndOffset(w.t.Context(), w.Topic(topic))
	w.must(err)
	if begin == end {
		return nil
	}
	ctx, cancel := context.WithTimeout(w.t.Context(), fleet.Patience)
	defer cancel()
	w.must(kafkatest.Tail(ctx, w.settings, w.Topic(topic), begin, func(m *sarama.ConsumerMessage) error {
		all = append(all, m)
		if m.Offset >= end-1 {
			cancel()
		}
		return nil
	}))
	return all
}

// configure sets settings of a topic.
func (w *world) configure(topic string, values map[string]string) {
	w.t.Helper()
	entries := map[string]sarama.IncrementalAlterConfigsEntry{}
	for name, value := range values {
		entries[name] = sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &value}
	}
	w.must(w.cluster.IncrementalAlterConfig(sarama.TopicResource, w.Topic(topic), entries, false))
}

func (w *world) createTopics() {
	w.t.Helper()
	w.Viewkeeper("topics", "create", "--brokers", w.Brokers, "--catalog", w.Catalog)
}

// deleteTopic deletes a topic and waits until the brokers say that it is gone.
func (w *world) deleteTopic(topic string) {
	w.t.Helper()
	w.must(w.cluster.DeleteTopic(w.Topic(topic)))
	fleet.Eventually(w.t, "the end of "+topic, func() error {
		found, err := w.admin.Describe(w.t.Context(), w.Topic(topic))
		if err == nil && len(found) > 0 {
			err = errors.New("it is still there")
		}
		return err
	})
}

// compact has the broker compact a topic: no key that was written before now is left
// twice. roll writes a record, which closes the segment. The topic's settings are as
// they were afterwards.
func (w *world) compact(topic string, roll func()) {
	w.t.Helper()
	mark, err := w.admin.EndOffset(w.t.Context(), w.Topic(topic))
	w.must(err)
	// Values that the product itself refuses, for as long as it takes.
	was := map[string]string{"min.compaction.lag.ms": "", "segment.ms": ""}
	entries, err := w.cluster.DescribeConfig(sarama.ConfigResource{Type: sarama.TopicResource, Name: w.Topic(topic), ConfigNames: []string{"min.compaction.lag.ms", "segment.ms"}})
	w.must(err)
	for _, e := range entries {
		if _, ok := was[e.Name]; ok {
			was[e.Name] = e.Value
		}
	}
	w.configure(topic, map[string]string{"min.compaction.lag.ms": "0", "segment.ms": "1", "min.cleanable.dirty.ratio": "0.0"})
	defer func() {
		w.configure(topic, was)
	}()
	fleet.Eventually(w.t, "compaction of "+topic, func() error {
		roll()
		last := map[string]int64{}
		for _, m := range w.read(topic) {
			if before, twice := last[string(m.Key)]; twice && before < mark && m.Offset < mark {
				return fmt.Errorf("the key %q is at %d and at %d", m.Key, before, m.Offset)
			}
			last[string(m.Key)] = m.Offset
		}
		return nil
	})
}

// transact writes a record in a transaction, which leaves a marker behind it, and
// commits or aborts.
func (w *world) transact(topic string, commit bool, r record) {
	w.t.Helper()
	c, err := kgo.NewClient(kgo.SeedBrokers(w.settings.Brokers...), kgo.TransactionalID(w.Catalog+topic), kgo.TransactionTimeout(fleet.Patience))
	w.must(err)
	defer c.Close()
	w.must(c.BeginTransaction())
	w.must(c.ProduceSync(w.t.Context(), &kgo.Record{Topic: w.Topic(topic), Key: r.key, Value: r.value}).FirstErr())
	end := kgo.TryAbort
	if commit {
		end = kgo.TryCommit
	}
	w.must(c.EndTransaction(w.t.Context(), end))
}

// health is the answer of /readyz of any process.
type health struct {
	Status  int               `json:"-"`
	Ready   bool              `json:"ready"`
	State   string            `json:"state"`
	Reasons []string          `json:"reasons"`
	Details map[string]string `json:"details"`
}

func askHealth(p *fleet.Proc) (h health, err error) {
	h.Status, err = p.Try(http.MethodGet, "/readyz", nil, &h)
	return h, err
}

// waitHealth waits until /readyz is as wanted.
func (w *world) waitHealth(p *fleet.Proc, what string, ok func(health) bool) (h health) {
	w.t.Helper()
	fleet.Eventually(w.t, p.Name+": "+what, func() (err error) {
		if h, err = askHealth(p); err == nil && !ok(h) {
			err = fmt.Errorf("%+v", h)
		}
		return err
	})
	return h
}

// waitNotReady waits until a process is not ready for a reason.
func (w *world) waitNotReady(p *fleet.Proc, code string) health {
	w.t.Helper()
	return w.waitHealth(p, "not ready for "+code, func(h health) bool {
		return h.Status == http.StatusServiceUnavailable && !h.Ready && slices.Contains(h.Reasons, code)
	})
}

func (w *world) waitReady(p *fleet.Proc) {
	w.t.Helper()
	p.WaitStatus("/readyz", http.StatusOK)
}

// waitDegraded waits until a node says that it is degraded for a reason, or no longer.
func (w *world) waitDegraded(p *fleet.Proc, code string, is bool) (s viewkeeper.Status) {
	w.t.Helper()
	fleet.Eventually(w.t, fmt.Sprintf("%s: degraded for %s: %v", p.Name, code, is), func() error {
		s = viewkeeper.Status{}
		if _, err := p.Try(http.MethodGet, "/v1/status", nil, &s); err != nil {
			return err
		}
		if slices.Contains(s.Degraded, code) != is {
			return fmt.Errorf("%+v", s)
		}
		return nil
	})
	return s
}

// live: the process answers that it lives, and is the one that was started.
func (w *world) live(p *fleet.Proc) {
	w.t.Helper()
	select {
	case <-p.Exited:
		w.t.Fatalf("%s ended", p.Name)
	default:
	}
	if status, err := p.Try(http.MethodGet, "/livez", nil, nil); err != nil || status != http.StatusOK {
		w.t.Errorf("%s: livez %d, %v", p.Name, status, err)
	}
}

// metric adds up the samples of a metric whose labels hold each of the texts.
func (w *world) metric(p *fleet.Proc, name string, labels ...string) (sum float64) {
	w.t.Helper()
	resp, err := http.Get(p.HTTP + "/metrics")
	w.must(err)
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	for lines.Scan() {
		i := strings.LastIndex(lines.Text(), " ")
		if i < 0 {
			continue
		}
		sample, value := lines.Text()[:i], lines.Text()[i+1:]
		if n, _, _ := strings.Cut(sample, "{"); n != name || slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(sample, l) }) {
			continue
		}
		v, err := strconv.ParseFloat(value, 64)
		w.must(err)
		sum += v
	}
	w.must(lines.Err())
	return sum
}

// wantCount wants a query's one number.
func (w *world) wantCount(n *fleet.Proc, sql string, min viewkeeper.Version, want int) {
	w.t.Helper()
	n.WantRows(sql, min, strconv.Itoa(want))
}

// file writes a file below the fleet's folder and gives its path.
func (w *world) file(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.Dir, name)
	w.Write(path, text)
	return path
}

// command runs the binary and gives its exit status and all that it said.
func (w *world) command(args ...string) (status int, out string) {
	w.t.Helper()
	return run(w.t, "", w.Tools.Binary, args...)
}

// eventually posts a statement until it is answered with 200; the id makes it one.
func (w *world) eventually(n *fleet.Proc, id, sql string) (d viewkeeper.Decision) {
	w.t.Helper()
	fleet.Eventually(w.t, n.Name+": "+sql, func() error {
		d = viewkeeper.Decision{}
		status, err := n.Try(http.MethodPost, "/v1/statements?wait=node&timeout=20s", map[string]any{"id": id, "sql": sql}, &d)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d %s %s", status, d.Code, d.Message)
		}
		return err
	})
	return d
}

// logged counts the lines of a process's log that hold a text.
func (w *world) logged(p *fleet.Proc, text string) (n int) {
	w.t.Helper()
	all, err := os.ReadFile(p.Log)
	w.must(err)
	return strings.Count(string(all), text)
}

// get gives the status and the body of a GET.
func get(url string) (int, string, error) {
	resp, err := http.Get(url)
	if err != nil {
		return 0, "", err
	}
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), errors.Join(err, resp.Body.Close())
}

// soon is a context for one call that must not hang.
func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	t.Cleanup(cancel)
	return ctx
}

// run runs a command, whatever its exit status, and gives that and all that it said.
func run(t *testing.T, stdin, name string, args ...string) (int, string) {
	t.Helper()
	cmd := exec.CommandContext(soon(t), name, args...)
	cmd.Stdin = strings.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}

// proxy stands before the brokers until the test ends.
func (w *world) proxy() *kafkaproxy.Proxy {
	w.t.Helper()
	p, err := kafkaproxy.Start(context.Background(), w.settings.Brokers)
	w.must(err)
	w.t.Cleanup(p.Close)
	return p
}

// newTicker ticks so many times a second.
func newTicker(perSecond int) *time.Ticker {
	return time.NewTicker(time.Second / time.Duration(perSecond))
}

// behind is Serve of a process that reaches the brokers through a proxy only.
func (w *world) behind(p *kafkaproxy.Proxy, name, roles string, extra ...string) *fleet.Proc {
	w.t.Helper()
	direct := w.Brokers
	defer func() { w.Brokers = direct }()
	w.Brokers = p.Brokers()
	return w.Serve(name, roles, extra...)
}
