package view

import (
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
)

// What counts for nothing is counted while the node follows, by what it is; what lay in
// the table before is no event.
func TestStrangersAreCounted(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	o.raw(topics.Table(), "main.before", []byte("rubbish"))
	o.raw(topics.Table(), "main.before", nil)
	cfg := config(t, b.Addr(), "n1")
	numbers := prometheus.NewPedanticRegistry()
	cfg.Registerer = numbers
	n := run(t, cfg, fast())
	n.ready()

	late := *o
	o.takeOver()
	o.raw(topics.Table(), "main.stranger", []byte("rubbish"))
	o.raw(topics.Table(), "main.v", nil)
	late.heartbeat()
	late.heartbeat()
	o.put(codec.Row{Row: viewkeeper.Row{Name: viewkeeper.MakeName("", "late"), Version: 1, Epoch: late.epoch}})
	o.accept("", view("w", "SELECT b FROM t"))
	n.version(2)
	values := gather(t, numbers)
	for why, want := range map[string]float64{"unreadable": 1, "tombstone": 1, "stale": 3, "newer": 0} {
		if got, ok := values["viewkeeper_table_skipped_total{"+why+"}"]; !ok || got != want {
			t.Errorf("%s: %v, want %v", why, got, want)
		}
	}
}

// logLines is a log that a test reads.
type logLines struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *logLines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(b)
}

func (l *logLines) with(part string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, part) {
			out = append(out, line)
		}
	}
	return out
}

// The data directory can't be made: the node serves, says what it can't keep, once, and
// goes on by itself when it can.
func TestTheDataDirectoryFails(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	cfg := config(t, b.Addr(), "n1")
	cfg.DataDir = filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(cfg.DataDir, []byte("in the way"), 0o644); err != nil {
		t.Fatal(err)
	}
	log := &logLines{}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	clocks := fast()
	clocks.ping = clocks.ping / 10
	n := run(t, cfg, clocks)
	n.ready()
	n.degraded(viewkeeper.ReasonDataDir, true)
	if s := n.Status(); !s.Ready || !strings.Contains(s.Details[viewkeeper.ReasonDataDir], "the history index") {
		t.Errorf("%+v", s)
	}
	n.until("it is said", func() bool { return len(log.with("reason=DATA_DIR_FAILED")) > 0 })
	if err := os.Remove(cfg.DataDir); err != nil {
		t.Fatal(err)
	}
	n.degraded(viewkeeper.ReasonDataDir, false)
	n.whole()
	if said := log.with("something is wrong"); len(slices.DeleteFunc(said, func(l string) bool { return !strings.Contains(l, "DATA_DIR_FAILED") })) != 1 {
		t.Errorf("%q", said)
	}
}

// What keeps the node's own process from owning is shown by the node, and what the owner
// in the table says, each once; a reason of the node's own has its own sentence.
func TestWhatTheOwnerHasIsShown(t *testing.T) {
	b := startBroker(t)
	o := newOwner(t, b.Addr())
	o.takeOver()
	o.accept("", view("v", "SELECT a FROM t"))
	cfg := config(t, b.Addr(), "n1")
	log := &logLines{}
	cfg.Log = slog.New(slog.NewTextHandler(log, nil))
	numbers := prometheus.NewPedanticRegistry()
	cfg.Registerer = numbers
	clocks := fast()
	clocks.noOwner = time.Hour
	n := run(t, cfg, clocks)
	n.ready()
	n.SetOwnReasons(map[string]string{viewkeeper.ReasonTableBehind: "put it back with viewkeeper restore"})
	n.SetDegraded(viewkeeper.ReasonEngineDown, "the engine that builds was lost")
	o.put(&codec.Heartbeat{Version: o.version, Epoch: o.epoch, Owner: o.name, BaseDigest: o.baseDigest, Reasons: map[string]string{
		viewkeeper.ReasonTableBehind: "of another owner", viewkeeper.ReasonStatementsLost: "3 offsets", viewkeeper.ReasonEngineDown: "the engine that judges was lost"}})
	n.degraded(viewkeeper.ReasonStatementsLost, true)
	d := n.Status().Details
	for code, want := range map[string]string{
		viewkeeper.ReasonTableBehind:    "this process as an owner: put it back with viewkeeper restore",
		viewkeeper.ReasonStatementsLost: "the owner " + o.name + " says: 3 offsets",
		viewkeeper.ReasonEngineDown:     "the engine that builds was lost",
	} {
		if d[code] != want {
			t.Errorf("%s: %q, want %q", code, d[code], want)
		}
	}
	// Nor is it counted as the node's: one fault of an owner is not one of each node.
	values := gather(t, numbers)
	for name, want := range map[string]float64{
		"viewkeeper_degraded{TABLE_BEHIND}": 0, "viewkeeper_degradedof owner{TABLE_BEHIND}": 1,
		"viewkeeper_degraded{ENGINE_DOWN}": 1, "viewkeeper_degradedof owner{ENGINE_DOWN}": 0,
	} {
		if is, ok := values[name]; !ok || is != want {
			t.Errorf("%s is %v, want %v", name, is, want)
		}
	}
	// Who has it says it in the log.
	n.until("the log", func() bool { return len(log.with("reason=ENGINE_DOWN")) > 0 })
	if said := append(log.with("TABLE_BEHIND"), log.with("STATEMENTS_LOST")...); len(said) > 0 {
		t.Errorf("%q", said)
	}
	n.SetOwnReasons(nil)
	n.SetDegraded(viewkeeper.ReasonEngineDown, "")
	o.heartbeat()
	n.until("all is well", func() bool { return len(n.Status().Degraded) == 0 })
}
