package faults

import (
	"fmt"
	"net/http"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// TestBrokersAway is C53: the brokers are gone, or say nothing, for much longer than
// what is served may be old. The processes live and are not started anew; who is ready
// is told by the limit; queries are answered from what is there; and all goes on by
// itself when they are back. A minute of the field is a second here: nothing but the
// limit on the age depends on how long it lasts.
func TestBrokersAway(t *testing.T) {
	for name, fault := range map[string]func(*kafkaproxy.Proxy){"gone": (*kafkaproxy.Proxy).Cut, "silent": (*kafkaproxy.Proxy).Silence} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			proxy := w.proxy()
			owner := w.behind(proxy, "owner", "owner")
			short := w.behind(proxy, "short", "node", "--max-stale", "4s")
			long := w.behind(proxy, "long", "node", "--max-stale", "1h")
			v := short.Statement("CREATE VIEW v AS SELECT a FROM t").Version
			fault(proxy)
			w.waitDegraded(long, viewkeeper.ReasonKafkaAway, true)
			w.waitNotReady(short, viewkeeper.ReasonStale)
			fleet.Eventually(t, "a long time", func() error {
				for _, p := range []*fleet.Proc{owner, short, long} {
					w.live(p)
				}
				if age := w.metric(long, "viewkeeper_stale_seconds"); age < 12 {
					return fmt.Errorf("%v s", age)
				}
				return nil
			})
			w.waitReady(long) // its limit is another
			for _, n := range []*fleet.Proc{short, long} {
				n.WantRows("SELECT count(*) FROM v", 0, "2")
				if status, a, err := post(n, "2s", w.Catalog+"-away", "CREATE VIEW away AS SELECT a FROM v"); err != nil || status < 500 {
					t.Errorf("a statement: %d %+v %v", status, a, err)
				}
			}
			proxy.Heal()
			w.waitReady(short)
			w.waitDegraded(long, viewkeeper.ReasonKafkaAway, false)
			d := w.eventually(long, w.Catalog+"-back", "CREATE VIEW back AS SELECT a FROM v")
			if d.Version <= v {
				t.Errorf("version %d after %d", d.Version, v)
			}
			for _, p := range []*fleet.Proc{owner, short, long} {
				w.live(p)
				if n := w.logged(p, "msg=started"); n != 1 {
					t.Errorf("%s was started %d times", p.Name, n)
				}
			}
		})
	}
}

// clients submit statements through a node, each again with its id until it has an
// answer, until they are stopped.
type clients struct {
	w       *world
	n       *fleet.Proc
	stopped atomic.Bool
	done    atomic.Int64
	wg      sync.WaitGroup
	mu      sync.Mutex
	answers map[string]viewkeeper.Decision // by id
	wrong   []string
}

// work starts so many clients. Each makes a chain of definitions of its own, tries to
// drop what the last one reads, which must be refused, and drops the last one at times.
func (w *world) work(n *fleet.Proc, many int) *clients {
	c := &clients{w: w, n: n, answers: map[string]viewkeeper.Decision{}}
	for i := range many {
		c.wg.Go(func() { c.chain(i) })
	}
	w.t.Cleanup(func() { c.stopped.Store(true); c.wg.Wait() })
	return c
}

func (c *clients) chain(client int) {
	name := func(i int) string { return fmt.Sprintf("c%d_%d", client, i) }
	for i := 0; !c.stopped.Load(); i++ {
		of := "t"
		if i > 0 {
			of = name(i - 1)
		}
		c.submit(fmt.Sprintf("%s-%d-%d", c.w.Catalog, client, i), fmt.Sprintf("CREATE VIEW %s AS SELECT a FROM %s", name(i), of), "accepted")
		if i > 0 {
			c.submit(fmt.Sprintf("%s-%d-%d-drop", c.w.Catalog, client, i), "DROP VIEW "+of, "refused BREAKS_DEPENDENTS")
		}
	}
}

// submit asks until somebody has an answer.
func (c *clients) submit(id, sql, want string) {
	for !c.stopped.Load() {
		status, a, err := post(c.n, "3s", id, sql)
		if err != nil || status != http.StatusOK && status != http.StatusUnprocessableEntity {
			continue
		}
		c.done.Add(1)
		c.mu.Lock()
		defer c.mu.Unlock()
		d := a.Decision
		d.StatementID = id
		c.answers[id] = d
		if got := verdict(d); got != want {
			c.wrong = append(c.wrong, fmt.Sprintf("%s: %s %s", sql, got, d.Message))
		}
		return
	}
}

// more waits until so many further statements have an answer.
func (c *clients) more(n int64) {
	c.w.t.Helper()
	from := c.done.Load()
	fleet.Eventually(c.w.t, fmt.Sprintf("%d more answers", n), func() error {
		if now := c.done.Load(); now < from+n {
			return fmt.Errorf("%d", now-from)
		}
		return nil
	})
}

// check stops the clients and holds what they were told to what is there: every answer
// is that of the one decision of its statement, no version is missing or given twice,
// and no node differs.
func (c *clients) check(nodes ...*fleet.Proc) {
	w := c.w
	w.t.Helper()
	c.stopped.Store(true)
	c.wg.Wait()
	for _, wrong := range c.wrong {
		w.t.Error(wrong)
	}
	last := w.eventually(c.n, w.Catalog+"-last", "CREATE VIEW last_of_all AS SELECT a FROM t").Version
	byID, versions := map[string]viewkeeper.Decision{}, map[viewkeeper.Version]string{}
	for _, d := range c.n.Decisions(last) {
		if other, twice := versions[d.Version]; twice {
			w.t.Errorf("version %d is that of %s and of %s", d.Version, other, d.StatementID)
		}
		if other, twice := byID[d.StatementID]; twice {
			w.t.Errorf("%s is decided at %d and at %d", d.StatementID, other.Version, d.Version)
		}
		versions[d.Version], byID[d.StatementID] = d.StatementID, d
	}
	accepted := 0
	for _, d := range byID {
		if d.Verdict == viewkeeper.Accepted {
			accepted++
		}
	}
	for id, told := range c.answers {
		if is := byID[id]; is.Version != told.Version || verdict(is) != verdict(told) {
			w.t.Errorf("%s was answered %s at %d, and is %s at %d", id, verdict(told), told.Version, verdict(is), is.Version)
		}
	}
	for _, n := range nodes {
		w.wantCount(n, "SELECT count(*) FROM vk.definitions WHERE state = 'ok'", last, accepted)
	}
	fleet.SameDigests(w.t, nodes...)
	w.t.Logf("%d statements were answered, %d accepted, up to version %d", len(c.answers), accepted, last)
}

// TestBrokerRestarts is C54: the broker is stopped, then killed, under load, and
// comes back. No process ends; each goes on behind the last statement that it decided;
// nothing that was answered is lost or decided anew. It runs alone: the broker is
// everybody's.
func TestBrokerRestarts(t *testing.T) {
	w := newWorld(t)
	owner := w.Serve("owner", "owner")
	n, other := w.Serve("n", "node"), w.Serve("other", "node")
	n.Statement("CREATE VIEW v AS SELECT a FROM t")
	c := w.work(n, 3)
	c.more(5)
	for _, end := range []string{"TERM", "KILL"} {
		w.Tools.SignalBroker("1", end)
		w.waitDegraded(n, viewkeeper.ReasonKafkaAway, true)
		w.Tools.StartBroker("1")
		c.more(5)
		w.waitDegraded(n, viewkeeper.ReasonKafkaAway, false)
	}
	for _, p := range []*fleet.Proc{owner, n, other} {
		w.live(p)
	}
	c.check(n, other)
}

// TestOwnerIsKilled is C37: the owner is killed twenty times while clients work. No
// version is lost or given twice, and nothing is judged by a catalog that lags.
func TestOwnerIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	c := w.work(n, 3)
	c.more(3)
	for range 20 {
		w.Procs["owner"].Kill()
		w.Serve("owner", "owner")
		c.more(3)
	}
	fresh := w.Serve("fresh", "node")
	c.check(n, fresh)
}

var planner = regexp.MustCompile(`engine=planner pid=(\d+)`)

// TestEngineIsKilled is C10 where the engine, and not a statement, is at fault: the
// engine that judges is killed again and again while clients work. A statement that it
// died on is tried once more; each has its right verdict; the owner stays the owner.
func TestEngineIsKilled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.Serve("owner", "owner")
	n := w.Serve("n", "node")
	c := w.work(n, 3)
	for round := range 5 {
		c.more(5)
		fleet.Eventually(t, "the next engine", func() error {
			log, err := os.ReadFile(owner.Log)
			w.must(err)
			pids := planner.FindAllStringSubmatch(string(log), -1)
			if len(pids) <= round {
				return fmt.Errorf("%d engines were started", len(pids))
			}
			pid, err := strconv.Atoi(pids[len(pids)-1][1])
			w.must(err)
			return syscall.Kill(pid, syscall.SIGKILL)
		})
	}
	c.more(5)
	w.live(owner)
	c.check(n)
	if got := w.metric(owner, "viewkeeper_processor_takeovers_total"); got != 1 {
		t.Errorf("%v take-overs", got)
	}
}
