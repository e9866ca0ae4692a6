package torture

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/viewkeeper/viewkeeper/e2e/internal/fleet"
	"github.com/viewkeeper/viewkeeper/e2e/torture/history"
	"github.com/viewkeeper/viewkeeper/internal/kafkaproxy"
)

// run is one run: the fleet, who uses it, and what they saw.
type run struct {
	t       *testing.T
	f       *fleet.Fleet
	seed    uint64
	start   time.Time
	seeds   []string // brokers
	web     *http.Client
	tail    *tail
	nodes   []string          // that answer
	address map[string]string // of nodes, http://host:port
	owner   atomic.Pointer[string]
	highest atomic.Int64 // version that some client was told

	mu       sync.Mutex
	h        history.History
	versions map[string]int64 // of definitions, as clients were told
	odds     []string         // answers that no fault explains
	misses   map[string]int   // reads without an answer, by why
	converge []time.Duration
}

func (r *run) now() history.Time { return history.Time(time.Since(r.start)) }

func (r *run) keep(op history.Op) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Ops = append(r.h.Ops, op)
}

func (r *run) keepQuery(q history.Query, ok bool, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case ok:
		r.h.Queries = append(r.h.Queries, q)
	case errors.Is(err, errOdd):
		r.odds = append(r.odds, err.Error())
	case err != nil:
		r.misses["nobody answered"]++
	default:
		r.misses["refused or too late"]++
	}
}

func (r *run) keepSample(s history.Sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Samples = append(r.h.Samples, s)
}

func (r *run) keepFault(f history.Fault) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Faults = append(r.h.Faults, f)
}

func (r *run) keepStart(s history.Start) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Starts = append(r.h.Starts, s)
}

func (r *run) exited(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.h.Exits = append(r.h.Exits, fmt.Sprintf("%s ended by itself at %v", name, time.Since(r.start)))
}

func (r *run) odd(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.odds = append(r.odds, fmt.Sprintf(format, args...))
}

// learn takes from an answer what clients know from then on.
func (r *run) learn(op history.Op) {
	for v := r.highest.Load(); op.Told.Version > v && !r.highest.CompareAndSwap(v, op.Told.Version); v = r.highest.Load() {
	}
	if op.Told.Verdict != "accepted" {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range op.Statement.Names() {
		r.versions[n] = max(r.versions[n], op.Told.Version)
	}
}

func (r *run) known(name string) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.versions[name]
}

// How many there are of each.
const (
	clients = 6
	readers = 3
)

// torture runs clients against a fleet under a nemesis for a time, heals all, and
// gathers the history.
func torture(t *testing.T, seed uint64, d time.Duration) *run {
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	f := fleet.New(t)
	r := &run{t: t, f: f, seed: seed, start: time.Now(), seeds: strings.Split(f.Brokers, ","), tail: newTail(),
		nodes: []string{"o2", "n1", "n2"}, address: map[string]string{}, versions: map[string]int64{}, misses: map[string]int{}}
	r.h.Seed = seed
	r.web = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 20, IdleConnTimeout: 30 * time.Second}}
	defer r.web.CloseIdleConnections()
	admin, err := producer(r.seeds)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	m := &nemesis{r: r, admin: admin, proxies: map[string]*kafkaproxy.Proxy{}, busy: map[string]bool{}, down: map[string]bool{}, started: make(chan undo),
		roles: map[string]string{"o1": "owner", "o2": "owner,node", "n1": "node", "n2": "node"}}
	for _, name := range []string{"o1", "o2", "n1", "n2"} {
		proxy, err := kafkaproxy.Start(ctx, r.seeds)
		if err != nil {
			t.Fatal(err)
		}
		m.proxies[name] = proxy
		m.launch(name)
		r.address[name] = f.Procs[name].HTTP
	}
	for _, n := range r.nodes {
		f.Procs[n].WaitStatus("/readyz", http.StatusOK)
	}

	work, rest := context.WithCancel(ctx)
	group, gctx := errgroup.WithContext(work)
	group.Go(func() error {
		return r.tail.run(gctx, r.seeds, f.Topic("decisions"), func(history.Told) {})
	})
	t.Logf("the fleet is up after %v", time.Since(r.start).Round(time.Millisecond))
	for i := range clients {
		group.Go(func() error { return r.client(gctx, i) })
	}
	for i := range readers {
		group.Go(func() error { return r.reader(gctx, 100+i) })
	}
	for _, n := range r.nodes {
		group.Go(func() error { return r.sampler(gctx, n) })
	}
	for began := time.Now(); time.Since(began) < d; {
		m.run(gctx, min(time.Minute, d-time.Since(began)))
		r.converged(ctx, m)
	}
	rest()
	if err := group.Wait(); err != nil {
		t.Error(err)
	}
	for _, e := range r.odds {
		t.Error(e)
	}
	t.Logf("%d faults were skipped, since their target had one already", m.skipped)
	began := time.Now()
	r.end(ctx, m)
	t.Logf("the end was gathered, and the log replayed, in %v", time.Since(began).Round(time.Millisecond))
	return r
}

// converged waits, after all was healed, until every node has what lies in the log
// now, while clients go on.
func (r *run) converged(ctx context.Context, m *nemesis) {
	r.t.Helper()
	m.watch()
	for name := range m.down {
		m.launch(name)
	}
	healed := time.Now()
	var end int64
	fleet.Eventually(r.t, "the end of the log", func() (err error) {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		end, err = endOf(ctx, m.admin, r.f.Topic("definitions"))
		return err
	})
	for _, n := range r.nodes {
		fleet.Eventually(r.t, n+" converges", func() error {
			s, err := r.sample(ctx, n)
			if err == nil && (!s.Ready || s.Version < end) {
				err = fmt.Errorf("it is at version %d of %d, ready: %v", s.Version, end, s.Ready)
			}
			return err
		})
	}
	r.converge = append(r.converge, time.Since(healed))
}
