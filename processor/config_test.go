package processor

import (
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

func TestNewNamesEveryProblem(t *testing.T) {
	_, err := New(Config{Kafka: viewkeeper.KafkaSettings{Brokers: []string{"nonsense"}}, Catalog: "Not One", Heartbeat: -1, QueueBytes: -1, RecordBytes: 1 << 30, PurgeAfter: time.Hour})
	for _, want := range []string{"nonsense", "Not One", "node id", "base", "Heartbeat", "QueueBytes", "RecordBytes", "PurgeAfter"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

func TestDefaultsAndMetrics(t *testing.T) {
	base, err := registry.NewBase(t.Context(), registrytest.NewModel(), registry.BaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	r := prometheus.NewRegistry()
	cfg := Config{Kafka: viewkeeper.KafkaSettings{Brokers: []string{"h:1"}}, Catalog: "c", NodeID: "h:7410", Base: base, Registerer: r}
	p, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if p.cfg.Heartbeat != time.Second || p.cfg.BatchBytes != 256<<10 || p.Status().State != StateStopped {
		t.Errorf("%+v, %+v", p.cfg, p.Status())
	}
	families, err := r.Gather()
	if err != nil || len(families) < 10 {
		t.Errorf("%d metrics, %v", len(families), err)
	}
	if _, err := New(cfg); err == nil {
		t.Error("two processors share one registerer")
	}
	if got := instanceID("node é:7410"); got != "node---7410" {
		t.Errorf("instance id %q", got)
	}
}

// A broker that is away is no reason to end, and is said.
func TestBrokerAway(t *testing.T) {
	w := &world{}
	w.enter(t)
	w.settings.Brokers = []string{"127.0.0.1:1"}
	w.topics.Catalog = "test"
	m := w.start("node-1", nil)
	s := m.waitReason(viewkeeper.ReasonKafkaAway)
	if s.State != StateStarting || s.Err == "" {
		t.Errorf("%+v", s)
	}
	m.stop()
	if m.err != nil || m.Status().State != StateStopped {
		t.Errorf("%v, %+v", m.err, m.Status())
	}
	if err := m.Run(w.ctx); err != ErrAlreadyRun {
		t.Errorf("a second Run: %v", err)
	}
}
