package cluster

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// TestLeadersRestart: under load the leader of each topic is stopped or killed, and
// comes back, while two replicas hold every ack. No process ends; every statement that
// was answered is there, decided once; versions go on without a gap. It is row C54 of
// docs/faults.md on three brokers.
func TestLeadersRestart(t *testing.T) {
	f := fleet.New(t)
	f.Serve("owner", "owner")
	n := f.Serve("n", "node")
	n.Statement("CREATE VIEW v AS SELECT a FROM t")
	settings, err := kafka.NewSettings(viewkeeper.KafkaSettings{Brokers: strings.Split(f.Brokers, ",")})
	if err != nil {
		t.Fatal(err)
	}
	client, err := sarama.NewClient(settings.Brokers, settings.Sarama())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	var (
		stop    atomic.Bool
		done    atomic.Int64
		mu      sync.Mutex
		answers = map[string]viewkeeper.Version{}
		writers sync.WaitGroup
	)
	defer func() { stop.Store(true); writers.Wait() }()
	for w := range 3 {
		writers.Go(func() {
			for i := 0; !stop.Load(); i++ {
				id := fmt.Sprintf("%s-%d-%d", f.Catalog, w, i)
				sql := fmt.Sprintf("CREATE VIEW w%d_%d AS SELECT a FROM v", w, i)
				for !stop.Load() {
					var d viewkeeper.Decision
					status, err := n.Try(http.MethodPost, "/v1/statements?wait=decided&timeout=5s", map[string]any{"id": id, "sql": sql}, &d)
					if err == nil && status == http.StatusOK {
						mu.Lock()
						answers[id] = d.Version
						mu.Unlock()
						done.Add(1)
						break
					}
				}
			}
		})
	}
	more := func() {
		t.Helper()
		from := done.Load()
		fleet.Eventually(t, "more answers", func() error {
			if now := done.Load(); now < from+10 {
				return fmt.Errorf("%d", now-from)
			}
			return nil
		})
	}
	for topic, how := range map[string]string{"table": "KILL", "definitions": "TERM", "decisions": "KILL"} {
		more()
		var leader *sarama.Broker
		fleet.Eventually(t, "the leader of "+topic, func() (err error) {
			if err = client.RefreshMetadata(f.Topic(topic)); err == nil {
				leader, err = client.Leader(f.Topic(topic), 0)
			}
			return err
		})
		i := strconv.Itoa(int(leader.ID()))
		f.Tools.SignalBroker(i, how)
		more()
		f.Tools.StartBroker(i)
	}
	more()
	stop.Store(true)
	writers.Wait()
	for name, p := range f.Procs {
		select {
		case <-p.Exited:
			t.Errorf("%s ended", name)
		default:
		}
	}
	last := n.Statement("CREATE VIEW last AS SELECT a FROM v").Version
	byID := map[string]viewkeeper.Version{}
	byVersion := map[viewkeeper.Version]string{}
	for _, d := range n.Decisions(last) {
		if byID[d.StatementID] != 0 || byVersion[d.Version] != "" {
			t.Errorf("%s at %d is decided twice", d.StatementID, d.Version)
		}
		byID[d.StatementID], byVersion[d.Version] = d.Version, d.StatementID
	}
	for id, version := range answers {
		if byID[id] != version {
			t.Errorf("%s was answered at %d, and is at %d", id, version, byID[id])
		}
	}
	fresh := f.Serve("fresh", "node")
	fresh.WantRows("SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last, strconv.Itoa(len(byID)))
	fleet.SameDigests(t, n, fresh)
	t.Logf("%d statements were answered, up to version %d", len(answers), last)
}
