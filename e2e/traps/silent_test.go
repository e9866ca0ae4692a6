package traps

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
)

// exitDeadline is what a process may take to end, from docs/operations.md: what a silent
// broker still holds after half a minute is left behind. The rest is for a slow machine.
const exitDeadline = 30*time.Second + fleet.Patience

// end tells processes to stop and waits until they have.
func (w *world) end(procs ...*fleet.Proc) {
	w.t.Helper()
	for _, p := range procs {
		p.Signal(syscall.SIGTERM)
	}
	for _, p := range procs {
		select {
		case <-p.Exited:
		case <-time.After(exitDeadline):
			w.t.Errorf("%s has not ended %v after SIGTERM", p.Name, exitDeadline)
		}
	}
}

// A broker that takes connections and says nothing: at the start of a process, while it
// works, and when it is to stop. It says so, goes on when the broker speaks again, and
// ends when it is told to, whatever the broker says.
func TestSilentBroker(t *testing.T) {
	t.Parallel()
	t.Run("at the start", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		p := w.proxy()
		p.Silence()
		n, o := w.via(p, "n", "node"), w.via(p, "owner", "owner")
		for _, proc := range []*fleet.Proc{n, o} {
			proc.WaitStatus("/livez", http.StatusOK)
			proc.WaitStatus("/readyz", http.StatusServiceUnavailable)
			w.says(proc.Name, viewkeeper.ReasonKafkaAway)
		}
		p.Heal()
		w.emit("accepted", "CREATE VIEW v AS SELECT a FROM t")
		w.decided(n)
		n.WaitStatus("/readyz", http.StatusOK)
	})
	t.Run("at the start and at the stop", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		p := w.proxy()
		p.Silence()
		n := w.via(p, "n", "owner,node")
		n.WaitStatus("/livez", http.StatusOK)
		w.end(n)
	})
	t.Run("at work and at the stop", func(t *testing.T) {
		t.Parallel()
		w := newWorld(t)
		p := w.proxy()
		n, o := w.via(p, "n", "node"), w.via(p, "owner", "owner")
		w.emit("accepted", "CREATE VIEW v AS SELECT a FROM t")
		w.decided(n)
		p.Silence()
		w.emit("accepted", "CREATE VIEW w AS SELECT a FROM v")
		w.says("owner", viewkeeper.ReasonKafkaAway)
		w.degraded(n, viewkeeper.ReasonKafkaAway)
		n.WantRows("SELECT max(a) FROM v", 0, "2")
		w.end(n, o)
		// Another process takes over from one that could not say goodbye.
		fresh := w.Serve("fresh", "owner,node")
		w.decided(fresh)
		w.verify(fresh)
	})
}

// An owner that was killed and comes back under its node id within the session's time
// goes on at once: the standby never gets to own, as it would after a rebalance.
func TestRestartTakesNoRebalance(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Launch("n", "node")
	o := w.Launch("owner", "owner")
	w.emit("accepted", "CREATE VIEW v AS SELECT a FROM t")
	w.decided(n)
	w.Serve("standby", "owner")
	standby := w.Procs["standby"]
	w.log(standby, "standing by")
	o.Kill()
	w.Launch("owner", "owner")
	w.emit("accepted", "CREATE VIEW w AS SELECT a FROM v")
	w.decided(n)
	if d := n.Decisions(w.last()); d[len(d)-1].Owner != "owner" {
		t.Errorf("%s decided", d[len(d)-1].Owner)
	}
	if text, err := os.ReadFile(standby.Log); err != nil || strings.Contains(string(text), "took over") {
		t.Errorf("the standby took over, %v", err)
	}
}

// Two owners under one node id: the last to come owns, the other one says why it does
// not, stays out while that one lives, and is there when it is gone.
func TestTwoOwnersWithOneNodeID(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	n := w.Launch("n", "node")
	w.Launch("a", "owner", "--node-id", "same")
	w.emit("accepted", "CREATE VIEW v AS SELECT a FROM t")
	w.decided(n)
	b := w.Launch("b", "owner", "--node-id", "same")
	w.says("a", viewkeeper.ReasonNodeIDTaken)
	w.log(b, "took over")
	w.emit("accepted", "CREATE VIEW w AS SELECT a FROM v")
	w.decided(n)
	epoch := n.Status().Epoch
	// Longer than the other one waits between two looks.
	seen := time.Now()
	fleet.Eventually(t, "time for several looks", func() error {
		if s := n.Status(); s.Epoch != epoch {
			t.Fatalf("epoch %d after %d: it came back", s.Epoch, epoch)
		}
		if time.Since(seen) < 12*time.Second {
			return os.ErrDeadlineExceeded
		}
		return nil
	})
	b.Kill()
	w.emit("accepted", "CREATE VIEW x AS SELECT a FROM w")
	w.decided(n)
	w.log(w.Procs["a"], "took over")
	w.verify(n)
}

// log waits until a process has logged something.
func (w *world) log(p *fleet.Proc, what string) {
	w.t.Helper()
	fleet.Eventually(w.t, p.Name+" logs "+what, func() error {
		text, err := os.ReadFile(p.Log)
		if err == nil && !strings.Contains(string(text), what) {
			err = os.ErrNotExist
		}
		return err
	})
}
