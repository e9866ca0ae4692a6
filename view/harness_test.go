package view

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/broker"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/internal/testlog"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/registrytest"
)

var topics = kafka.Topics{Catalog: "flights"}

// fast are the clocks of a node under test.
func fast() timing {
	t := defaultTiming()
	t.monitor = 20 * time.Millisecond
	t.tick = 10 * time.Millisecond
	t.publishMin = 5 * time.Millisecond
	t.publishMax = 100 * time.Millisecond
	t.gather = 2 * time.Millisecond
	t.retryBroken = 20 * time.Millisecond
	t.buildBackoff = 5 * time.Millisecond
	t.restartFirst = 5 * time.Millisecond
	t.restartMost = 50 * time.Millisecond
	t.copyPause = 5 * time.Millisecond
	t.copyEvery = 50 * time.Millisecond
	t.copyRetry = 20 * time.Millisecond
	return t
}

// patience is how long a test waits for what must happen.
const patience = 2 * time.Minute

// startBroker runs a broker in memory with the catalog's topics.
func startBroker(t *testing.T) *broker.Broker {
	t.Helper()
	b, err := broker.Start(t.Context(), "", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.Close() })
	createTopics(t, b.Addr())
	return b
}

func createTopics(t *testing.T, addr string) {
	t.Helper()
	a, err := settings(t, addr).OpenAdmin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer a.Close()
	if _, err := a.CreateTopics(t.Context(), topics); err != nil {
		t.Fatal(err)
	}
}

// base is t(a, b) over the model planner.
func base(t *testing.T, planner registry.Planner) *registry.Base {
	t.Helper()
	if planner == nil {
		planner = registrytest.NewModel(registrytest.Relation("main.t", "a", "INTEGER", "b", "VARCHAR"))
	}
	b, err := registry.NewBase(t.Context(), planner, registry.BaseOptions{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func config(t *testing.T, addr, id string) Config {
	t.Helper()
	return Config{
		Kafka: viewkeeper.KafkaSettings{Brokers: []string{addr}}, Catalog: topics.Catalog, NodeID: id, HTTP: id + ":80",
		Base: base(t, nil), Log: slog.New(slog.NewTextHandler(testlog.New(t), &slog.HandlerOptions{Level: slog.LevelInfo})),
	}
}

// running is a node that runs until the test's end or stop.
type running struct {
	*Node
	t    *testing.T
	stop func()
}

func run(t *testing.T, cfg Config, clocks timing) *running {
	t.Helper()
	n, err := newNode(cfg, clocks)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- n.Run(ctx) }()
	stopped := false
	r := &running{Node: n, t: t}
	r.stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the node ended with %v", err)
		}
	}
	t.Cleanup(r.stop)
	return r
}

// until waits until ok holds, looking whenever the node or its fleet changed. When it
// gives up it says what the node is like, and what saw points to.
func (r *running) until(what string, ok func() bool, saw ...any) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), patience)
	defer cancel()
	for {
		c, f := r.Changed(), r.fleet.changed.C()
		if ok() {
			return
		}
		select {
		case <-c:
		case <-f:
		case <-ctx.Done():
			r.mu.Lock()
			f := r.following.fold
			r.t.Logf("fold: next %d, collecting %v, version %d, %+v", f.Next(), f.Collecting(), f.Version(), f.Counts())
			r.mu.Unlock()
			for _, s := range saw {
				r.t.Logf("it saw %+v", s)
			}
			r.t.Fatalf("waited for %s; the status is %+v", what, r.Status())
		}
	}
}

func (r *running) ready() {
	r.t.Helper()
	r.until("ready", func() bool { ok, _ := r.Ready(); return ok })
}

func (r *running) version(v viewkeeper.Version) {
	r.t.Helper()
	r.until("version "+v.String(), func() bool { return r.Current().Version() >= v })
}

// decided waits for the decision on the record at an offset.
func (r *running) decided(id string, offset int64) viewkeeper.Decision {
	r.t.Helper()
	var d viewkeeper.Decision
	r.until("the decision "+id, func() bool {
		ctx, cancel := context.WithCancel(r.t.Context())
		cancel()
		var err error
		d, err = r.WaitDecision(ctx, id, offset)
		return err == nil
	})
	return d
}

func (r *running) reason(code string) {
	r.t.Helper()
	r.until(code, func() bool { return slices.Contains(r.Status().ReadyReasons, code) })
}

func (r *running) degraded(code string, is bool) {
	r.t.Helper()
	r.until(code, func() bool { return slices.Contains(r.Status().Degraded, code) == is })
}

// names are the definitions of the node's factory, broken ones with a !.
func (r *running) names() []string { return namesOf(r.Current()) }

func namesOf(f *registry.Factory) []string {
	var out []string
	for d := range f.Definitions() {
		name := d.Row.Name.String()
		if !d.OK() {
			name += "!"
		}
		out = append(out, name)
	}
	return out
}

func (r *running) has(names ...string) {
	r.t.Helper()
	if got := r.names(); !slices.Equal(got, names) {
		r.t.Errorf("the factory has %v, want %v; failures %v", got, names, r.Current().Failures())
	}
}
