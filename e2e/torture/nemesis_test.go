package torture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/e2e/torture/history"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// fault is one of the nemesis's choices: what, to whom, for how long, and how long
// it waits before the next one. Like a client's choices it follows from the seed and
// a number alone.
type fault struct {
	kind   string
	target string // a process, "owner" for whoever that is then, or a broker's number
	lasts  time.Duration
	gap    time.Duration
}

// The kinds of faults. Those of a process come first.
const (
	killed       = "process killed" // SIGKILL, started again
	dataLost     = "process killed, its data lost"
	stopped      = "process stopped" // SIGTERM, started again
	frozen       = "process frozen"  // SIGSTOP, then SIGCONT
	frozenLong   = "process frozen past the session timeout"
	engineKilled = "engine killed"          // a child that runs DuckDB
	cutOff       = "process cut off"        // its connections to Kafka are closed and refused
	silenced     = "process silenced"       // nothing passes between it and Kafka, and nothing fails
	answersLost  = "answers to writes lost" // every other write is carried out, and its answer never comes
	writesHeld   = "writes held"            // writes reach Kafka late, when the fault is over

	brokerKilled  = "broker killed"
	brokerStopped = "broker stopped"
	brokerFrozen  = "broker frozen"
	twoFrozen     = "two brokers frozen" // fewer than min.insync.replicas are left
	leadersMoved  = "leaders moved"
)

// groupTimeout is after how long without a sign Kafka gives the partition to another owner.
const groupTimeout = 10 * time.Second

func chooseFault(seed uint64, n int) fault {
	r := random(seed, 1<<20, n)
	between := func(from, to time.Duration) time.Duration {
		return from + time.Duration(r.Int64N(int64(to-from)))
	}
	f := fault{target: pick(r, []string{"owner", "owner", "o1", "o2", "n1", "n2"}), gap: between(200*time.Millisecond, 1600*time.Millisecond)}
	const ms = time.Millisecond
	switch x := r.IntN(100); {
	case x < 11:
		f.kind, f.lasts = killed, between(100*ms, 3000*ms)
	case x < 14:
		f.kind, f.lasts = dataLost, between(100*ms, 3000*ms)
	case x < 20:
		f.kind, f.lasts = stopped, between(100*ms, 2000*ms)
	case x < 29:
		f.kind, f.lasts = frozen, between(300*ms, 4000*ms)
	case x < 36:
		f.kind, f.lasts = frozenLong, groupTimeout+between(500*ms, 5000*ms)
	case x < 43:
		f.kind, f.lasts = engineKilled, between(1000*ms, 3000*ms)
	case x < 51:
		f.kind, f.lasts = cutOff, between(500*ms, 14000*ms)
	case x < 59:
		f.kind, f.lasts = silenced, between(500*ms, 16000*ms)
	case x < 66:
		f.kind, f.lasts = answersLost, between(500*ms, 5000*ms)
	case x < 73:
		f.kind, f.lasts = writesHeld, between(500*ms, 14000*ms)
	case x < 80:
		f.kind, f.lasts = brokerKilled, between(100*ms, 8000*ms)
	case x < 84:
		f.kind, f.lasts = brokerStopped, between(100*ms, 4000*ms)
	case x < 90:
		f.kind, f.lasts = brokerFrozen, between(500*ms, 12000*ms)
	case x < 92:
		f.kind, f.lasts = twoFrozen, between(1000*ms, 6000*ms)
	default:
		f.kind, f.lasts = leadersMoved, 100*ms
	}
	if strings.Contains(f.kind, "broker") {
		f.target = strconv.Itoa(1 + r.IntN(3))
	}
	return f
}

// nemesis does the faults, and undoes each when its time is over. It runs on the
// test's own goroutine, one step at a time.
type nemesis struct {
	r       *run
	n       int // of the next fault
	admin   *kgo.Client
	proxies map[string]*kafkaproxy.Proxy
	roles   map[string]string
	undo    []undo          // sorted by time
	busy    map[string]bool // processes with a fault; brokers for any broker
	down    map[string]bool // processes that the nemesis ended and has not started again
	skipped int             // faults whose target had one already
	// Brokers take seconds to start, so that happens beside: starting counts those on
	// their way, started gets them.
	starting int
	started  chan undo
}

type undo struct {
	at   time.Time
	do   func()
	what history.Fault
	busy string
}

// run does faults until the time is over. Then it undoes all that is left.
func (m *nemesis) run(ctx context.Context, d time.Duration) {
	until := time.Now().Add(d)
	next := time.Now()
	for time.Now().Before(until) && ctx.Err() == nil {
		at := next
		if len(m.undo) > 0 && m.undo[0].at.Before(at) {
			at = m.undo[0].at
		}
		timer := time.NewTimer(time.Until(at))
		select {
		case <-ctx.Done():
		case u := <-m.started:
			m.over(u)
		case <-timer.C:
		}
		timer.Stop()
		m.watch()
		if len(m.undo) > 0 && !m.undo[0].at.After(time.Now()) {
			m.finish()
		} else if !next.After(time.Now()) {
			f := chooseFault(m.r.seed, m.n)
			m.n++
			m.do(f)
			next = time.Now().Add(f.gap)
		}
	}
	for len(m.undo) > 0 {
		m.finish()
	}
	for m.starting > 0 {
		m.over(<-m.started)
	}
}

// finish undoes the fault whose time is over first.
func (m *nemesis) finish() {
	u := m.undo[0]
	m.undo = m.undo[1:]
	m.starting++
	if u.busy != brokers {
		u.do()
		m.over(u)
		return
	}
	go func() {
		u.do()
		m.started <- u
	}()
}

func (m *nemesis) over(u undo) {
	m.starting--
	u.what.To = m.r.now()
	m.r.keepFault(u.what)
	delete(m.busy, u.busy)
}

// brokers is the target of every fault of a broker: one at a time, since two are as many as three.
const brokers = "brokers"

// watch finds processes that ended by themselves.
func (m *nemesis) watch() {
	for name, p := range m.r.f.Procs {
		if m.down[name] {
			continue
		}
		select {
		case <-p.Exited:
			m.down[name] = true
			m.r.exited(name)
		default:
		}
	}
}

func (m *nemesis) do(f fault) {
	broker := strings.Contains(f.kind, "broker") || f.kind == leadersMoved
	if f.target == "owner" {
		f.target = "o1"
		if owner := m.r.owner.Load(); owner != nil && m.r.f.Procs[*owner] != nil {
			f.target = *owner
		}
	}
	busy := f.target
	if broker {
		busy = brokers
	}
	if m.busy[busy] {
		m.skipped++
		return
	}
	what := history.Fault{Kind: f.kind, Target: f.target, From: m.r.now()}
	var back func()
	if broker {
		back = m.broker(f)
	} else {
		back = m.process(f)
	}
	m.busy[busy] = true
	m.undo = append(m.undo, undo{time.Now().Add(f.lasts), back, what, busy})
	slices.SortStableFunc(m.undo, func(a, b undo) int { return a.at.Compare(b.at) })
}

// process does a fault to a process, and gives what undoes it.
func (m *nemesis) process(f fault) func() {
	p, proxy := m.r.f.Procs[f.target], m.proxies[f.target]
	switch f.kind {
	case killed:
		m.down[f.target] = true
		p.Kill()
		return func() { m.launch(f.target) }
	case dataLost:
		m.down[f.target] = true
		p.Kill()
		return func() {
			if err := os.RemoveAll(filepath.Join(m.r.f.Dir, f.target)); err != nil {
				m.r.odd("%v", err)
			}
			m.launch(f.target)
		}
	case stopped:
		m.down[f.target] = true
		p.Signal(syscall.SIGTERM)
		return func() {
			p.Stop() // waits, and complains when it takes a minute
			m.launch(f.target)
		}
	case frozen, frozenLong:
		p.Signal(syscall.SIGSTOP)
		return func() { p.Signal(syscall.SIGCONT) }
	case engineKilled:
		m.killEngine(p)
		return func() {}
	case cutOff:
		proxy.Cut()
	case silenced:
		proxy.Silence()
	case answersLost:
		writes := 0
		proxy.Intercept(func(q kafkaproxy.Request) kafkaproxy.Action {
			if q.Key == keyProduce {
				if writes++; writes%2 == 0 {
					return kafkaproxy.LoseAnswer
				}
			}
			return kafkaproxy.Pass
		})
	case writesHeld:
		proxy.Intercept(func(q kafkaproxy.Request) kafkaproxy.Action {
			if q.Key == keyProduce {
				return kafkaproxy.Hold
			}
			return kafkaproxy.Pass
		})
	}
	return func() {
		proxy.Intercept(nil)
		proxy.Heal()
	}
}

// keyProduce is Kafka's number of the request that writes.
const keyProduce = 0

// killEngine kills the first child of a keeper, which is the one that plans.
func (m *nemesis) killEngine(p *fleet.Proc) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.PID(), p.PID()))
	children := strings.Fields(string(text))
	if err != nil || len(children) == 0 {
		return // it has just ended, or is starting
	}
	pid, err := strconv.Atoi(children[m.n%len(children)])
	if err != nil {
		m.r.odd("%v", err)
		return
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
		m.r.odd("killing an engine: %v", err)
	}
}

// waits is the node that waits for Kafka when it starts; the others may start from their
// copy of the table, and then be behind what they had.
const waits = "n2"

func (m *nemesis) launch(name string) {
	m.r.keepStart(history.Start{Node: name, At: m.r.now(), Stale: name != waits})
	m.r.f.Launch(name, m.roles[name], "--brokers", m.proxies[name].Brokers(), "--start-stale="+strconv.FormatBool(name != waits))
	delete(m.down, name)
}

// broker does a fault to a broker, and gives what undoes it.
func (m *nemesis) broker(f fault) func() {
	signal := func(broker, sig string) { m.kafka("signal", broker, sig) }
	switch f.kind {
	case brokerKilled:
		signal(f.target, "KILL")
		return func() { m.kafka("start", f.target) }
	case brokerStopped:
		signal(f.target, "TERM")
		return func() { m.kafka("start", f.target) }
	case brokerFrozen:
		signal(f.target, "STOP")
		return func() { signal(f.target, "CONT") }
	case twoFrozen:
		second := strconv.Itoa(1 + (int(f.target[0]-'0'))%3)
		signal(f.target, "STOP")
		signal(second, "STOP")
		return func() { signal(f.target, "CONT"); signal(second, "CONT") }
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	for _, topic := range []string{"definitions", "table", "decisions"} {
		// That it failed (a broker is just coming back) is no finding.
		if err := moveLeader(ctx, m.admin, m.r.f.Topic(topic)); err != nil {
			m.r.t.Logf("moving the leader of %s: %v", topic, err)
		}
	}
	return func() {}
}

func (m *nemesis) kafka(args ...string) {
	if out, err := exec.Command(filepath.Join(m.r.f.Tools.Root, "scripts", "kafka"), args...).CombinedOutput(); err != nil {
		m.r.odd("kafka %v: %v %s", args, err, out)
	}
}
