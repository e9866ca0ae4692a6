package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/view"
)

// p9 follows one owner with 100 nodes. They are whole nodes (goka's views, the nodes
// topic, history) in this process, on the real broker; each has a planner and a
// registry of its own, and the planner is the model, since a hundred engines do not fit
// on one machine. The owner is a process of its own, with the model too, so that what it
// costs is not hidden behind an engine. It has one node first, then 100, then one again.
func p9(ctx context.Context, env *Env) (_ []Figure, err error) {
	c, err := env.NewCatalog(ctx, "")
	if err != nil {
		return nil, err
	}
	owner, err := c.OwnModel()
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, owner.Stop()) }()
	definitions := env.pick(200, 1000)
	if err := c.load(ctx, modelStatements(definitions)); err != nil {
		return nil, err
	}
	const many = 100
	f := &followers{c: c, owner: owner}
	defer func() { err = errors.Join(err, f.shrink(0)) }()

	seconds := env.pick(5, 20)
	var phases [3]phase
	for i, size := range []int{1, many, 1} {
		if err := f.size(ctx, size); err != nil {
			return nil, err
		}
		if phases[i], err = f.storm(ctx, 20, seconds); err != nil {
			return nil, fmt.Errorf("%d nodes: %w", size, err)
		}
		env.Log("P9: %d nodes: p50 %.1f ms, p99 %.1f ms; CPU for a change: owner %.2f ms, nodes %.2f ms; %d goroutines, %.0f MB of heap",
			size, phases[i].visible.at(.5), phases[i].visible.at(.99), phases[i].owner, phases[i].nodes, phases[i].goroutines, phases[i].heap)
	}
	few := (phases[0].owner + phases[2].owner) / 2
	all := phases[1]
	note := fmt.Sprintf("%d definitions, 20 changes a second for %d s; the nodes and the owner with the model planner, each its own; the nodes take %.2f ms of CPU for a change altogether, %.2f ms with one node; a node takes %.1f MB of heap and %d goroutines",
		definitions, seconds, all.nodes, phases[0].nodes, all.heap/many, all.goroutines/many)
	return []Figure{
		{ID: "P9", What: "100 nodes, emit to visible, each change on each node, p99", Got: all.visible.at(.99), Baseline: phases[0].visible.at(.99), Unit: "ms", Against: "one node", Limit: 250, Target: "≤ 250 ms", Note: note},
		{ID: "P9", What: "nodes that are current at the end", Got: float64(all.current), Unit: "", Limit: many, AtLeast: true, Target: "= 100"},
		{ID: "P9", What: "owner's CPU for a change, 100 nodes", Got: all.owner, Baseline: few, Unit: "ms", Against: "one node", Limit: few * 1.1, Target: "≤ 1.1 × one node's"},
	}, nil
}

// followers are nodes in this process.
type followers struct {
	c     *Catalog
	owner *owning
	nodes []*follower
}

// follower is one node, with when it had which version.
type follower struct {
	*view.Node
	stop func() error

	mu sync.Mutex
	at []served // the versions that it had, rising
}

// size makes as many nodes run as it says.
func (f *followers) size(ctx context.Context, n int) error {
	if n < len(f.nodes) {
		return f.shrink(n)
	}
	for len(f.nodes) < n {
		one, err := f.start(len(f.nodes))
		if err != nil {
			return err
		}
		f.nodes = append(f.nodes, one)
	}
	for _, n := range f.nodes {
		if err := n.WaitReady(ctx); err != nil {
			return fmt.Errorf("a node is not ready: %w: %v", err, n.Status().Details)
		}
	}
	return nil
}

func (f *followers) start(i int) (*follower, error) {
	base, err := modelBase(context.Background())
	if err != nil {
		return nil, err
	}
	node, err := view.New(view.Config{
		Kafka: viewkeeper.KafkaSettings{Brokers: strings.Split(f.c.env.Brokers, ",")}, Catalog: f.c.Name, NodeID: fmt.Sprintf("node-%03d", i),
		HTTP: fmt.Sprintf("node-%03d.example.net:7410", i), Base: base, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	n := &follower{Node: node}
	done := make(chan error, 2)
	go func() { done <- node.Run(ctx) }()
	go func() {
		n.note(ctx)
		done <- nil
	}()
	n.stop = func() error {
		cancel()
		return errors.Join(<-done, <-done)
	}
	return n, nil
}

// note writes down when the node has a new version.
func (n *follower) note(ctx context.Context) {
	var last viewkeeper.Version
	for {
		c := n.Changed()
		if v := n.Current().Version(); v != last {
			last = v
			n.mu.Lock()
			n.at = append(n.at, served{version: v, at: time.Now()})
			n.mu.Unlock()
		}
		select {
		case <-c:
		case <-ctx.Done():
			return
		}
	}
}

// shrink stops all but n nodes, together.
func (f *followers) shrink(n int) error {
	errs := make(chan error, len(f.nodes))
	for _, one := range f.nodes[n:] {
		go func() { errs <- one.stop() }()
	}
	var all error
	for range f.nodes[n:] {
		all = errors.Join(all, <-errs)
	}
	f.nodes = f.nodes[:n]
	return all
}

// phase is what one storm gave.
type phase struct {
	visible      durations // of each change on each node
	current      int       // nodes that had the last change at the end
	owner, nodes float64   // CPU for a change, in ms; nodes is this process
	goroutines   int
	heap         float64 // of this process, in MB
}

// storm makes changes at a rate, and waits until all nodes have the last.
func (f *followers) storm(ctx context.Context, rate, seconds int) (phase, error) {
	emitter, err := f.c.Emitter()
	if err != nil {
		return phase{}, err
	}
	defer emitter.Close()
	runtime.GC()
	ownerBefore, err := f.owner.CPU()
	if err != nil {
		return phase{}, err
	}
	before := cpuTime()
	tick := time.NewTicker(time.Second / time.Duration(rate))
	defer tick.Stop()
	emitted := map[viewkeeper.Version]time.Time{}
	var last viewkeeper.Version
	count := rate * seconds
	for i := range count {
		began := time.Now()
		r, err := emitter.Emit(ctx, viewkeeper.Submission{Key: "change", SQL: fmt.Sprintf(
			"CREATE OR REPLACE VIEW change%d AS SELECT id, region, amount + %d AS amount FROM v%d WHERE n > %d", i%10, time.Now().UnixMicro(), i%100, i)})
		if err != nil {
			return phase{}, err
		}
		last = viewkeeper.Version(r.Offset + 1)
		emitted[last] = began
		select {
		case <-tick.C:
		case <-ctx.Done():
			return phase{}, ctx.Err()
		}
	}
	var p phase
	wait, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for _, n := range f.nodes {
		if n.WaitVersion(wait, last) == nil {
			p.current++
		}
	}
	p.nodes = ms(cpuTime()-before) / float64(count)
	ownerAfter, err := f.owner.CPU()
	if err != nil {
		return phase{}, err
	}
	p.owner = ms(ownerAfter-ownerBefore) / float64(count)
	for _, n := range f.nodes {
		p.visible = append(p.visible, n.took(emitted)...)
	}
	p.goroutines = runtime.NumGoroutine()
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	p.heap = float64(m.HeapAlloc) / (1 << 20)
	return p, nil
}

// took is the time from the emission of each change until the node had it, or a later one.
func (n *follower) took(emitted map[viewkeeper.Version]time.Time) durations {
	n.mu.Lock()
	defer n.mu.Unlock()
	var out durations
	for version, began := range emitted {
		for _, s := range n.at {
			if s.version >= version {
				out = append(out, s.at.Sub(began))
				break
			}
		}
	}
	return out
}
