package main

import (
	"context"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/codec"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
)

// p1 measures the time from the emission of a statement until queries see it on the
// slowest of three nodes: three processes and an owner, all definitions loaded, one
// change at a time. A node tells that it serves a version on /v1/watch. Each change
// takes turns with a bare hop.
func p1(ctx context.Context, env *Env) (_ []Figure, err error) {
	c, err := env.Loaded(ctx, env.N)
	if err != nil {
		return nil, err
	}
	owner, err := c.Serve(ctx, "owner", "owner")
	if err != nil {
		return nil, err
	}
	defer owner.Stop()
	var nodes []*Proc
	for i := range 3 {
		n, err := c.Launch(fmt.Sprint("node-", i+1), "node")
		if err != nil {
			return nil, err
		}
		defer n.Stop()
		nodes = append(nodes, n)
	}
	for _, n := range nodes {
		if err := n.Wait(ctx, "/readyz"); err != nil {
			return nil, err
		}
	}
	hop, err := env.NewHop(ctx)
	if err != nil {
		return nil, err
	}
	defer hop.Close()
	w, err := newVisible(ctx, c, nodes)
	if err != nil {
		return nil, err
	}
	defer w.stop()

	for i := range 20 { // warm up both
		if _, err := w.change(ctx, -i-1); err != nil {
			return nil, err
		}
		if _, err := hop.Take(ctx); err != nil {
			return nil, err
		}
	}
	var slowest, hops durations
	// What they take while nothing happens is not for a change.
	resting, began := cpuOf(owner, nodes), time.Now()
	select {
	case <-time.After(2 * time.Second):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	idle := cpuOf(owner, nodes).per(resting, time.Since(began))
	before, began := cpuOf(owner, nodes), time.Now()
	for i := range env.pick(100, 600) {
		d, err := w.change(ctx, i)
		if err != nil {
			return nil, err
		}
		slowest = append(slowest, d)
		h, err := hop.Take(ctx)
		if err != nil {
			return nil, err
		}
		hops = append(hops, h)
	}
	spent := cpuOf(owner, nodes).since(before, idle, time.Since(began), len(slowest))
	stages, err := w.stages(ctx, env.pick(50, 200))
	if err != nil {
		return nil, err
	}
	old, err := env.Ancestor(ctx)
	if err != nil {
		return nil, err
	}
	note := "the way of one change, medians of a second series with more measured: " + stages + ". CPU for a change: " + spent
	what := "emit to visible on the slowest of 3 nodes, "
	return []Figure{
		{ID: "P1", What: what + "p50", Got: slowest.at(.5), Baseline: hops.at(.5), Unit: "ms", Against: "bare hop, p50", Limit: hops.at(.5) + 2, Target: "≤ hop + 2 ms", Note: note},
		{ID: "P1", What: what + "p99", Got: slowest.at(.99), Baseline: hops.at(.99), Unit: "ms", Against: "bare hop, p99", Limit: hops.at(.99) + 15, Target: "≤ hop + 15 ms"},
		{ID: "P1", What: "the same, p50, beside the ancestor's way", Got: slowest.at(.5), Baseline: ms(old.Visible(env.N)), Unit: "ms", Against: "2 full builds, half of a minute's polling, a rebuild",
			Note: fmt.Sprintf("the ancestor's way is computed: a full build was measured at %d and %d definitions, %.0f and %.0f ms (it grew with the power %.2f of their number), and is taken to grow with their number to %.0f ms at %d",
				old.Small, old.Large, ms(old.SmallBuild), ms(old.LargeBuild), old.Exponent(), ms(old.Build(env.N)), env.N)},
	}, nil
}

// spent is what the processes of a fleet have had of the processors.
type spent struct{ owner, ownerEngine, node, nodeEngines time.Duration }

func cpuOf(owner *Proc, nodes []*Proc) (s spent) {
	s.owner, s.ownerEngine = treeCPU(owner.PID())
	for _, n := range nodes {
		keeper, engines := treeCPU(n.PID())
		s.node += keeper / time.Duration(len(nodes))
		s.nodeEngines += engines / time.Duration(len(nodes))
	}
	return s
}

// per is what each took of one core in a time.
func (s spent) per(before spent, in time.Duration) [4]float64 {
	part := func(now, then time.Duration) float64 { return float64(now-then) / float64(in) }
	return [4]float64{part(s.owner, before.owner), part(s.ownerEngine, before.ownerEngine), part(s.node, before.node), part(s.nodeEngines, before.nodeEngines)}
}

// since says what each took for one of n changes, less what it would have taken without.
func (s spent) since(before spent, idle [4]float64, in time.Duration, n int) string {
	var each [4]any
	for i, part := range s.per(before, in) {
		each[i] = max(0, (part-idle[i])*ms(in)/float64(n))
	}
	return fmt.Sprintf("the owner %.2f ms and its engine %.2f ms, each node %.2f ms and its engines %.2f ms", each[:]...) +
		fmt.Sprintf(", beside the %.1f and %.1f %% of a core that an owner and a node take without any", 100*(idle[0]+idle[1]), 100*(idle[2]+idle[3]))
}

// visible makes changes and sees them on nodes.
type visible struct {
	c       *Catalog
	nodes   []*Proc
	emitter *kafka.Emitter
	served  chan served
	ended   chan error
	cancel  context.CancelFunc
	acked   time.Time // of the last change
}

func newVisible(ctx context.Context, c *Catalog, nodes []*Proc) (*visible, error) {
	emitter, err := c.Emitter()
	if err != nil {
		return nil, err
	}
	inner, cancel := context.WithCancel(ctx)
	v := &visible{c: c, nodes: nodes, emitter: emitter, served: make(chan served, 100), ended: make(chan error, len(nodes)), cancel: cancel}
	opened := make(chan struct{}, len(nodes))
	for i, n := range nodes {
		go func() { v.ended <- watch(inner, n, i, func() { opened <- struct{}{} }, v.served) }()
	}
	for range nodes {
		select {
		case <-opened:
		case err := <-v.ended:
			v.ended <- nil
			v.stop()
			return nil, err
		}
	}
	return v, nil
}

// change replaces one definition, which reads another, and gives the time until the
// last node served it.
func (v *visible) change(ctx context.Context, k int) (time.Duration, error) {
	sql := fmt.Sprintf("CREATE OR REPLACE VIEW large.probe AS\nSELECT r.region, r.day, count(*) AS n, sum(r.amount) AS amount, %d AS value\nFROM large.root r\nWHERE r.amount > %d\nGROUP BY ALL", k, k)
	began := time.Now()
	receipt, err := v.emitter.Emit(ctx, viewkeeper.Submission{Key: "large.probe", SQL: sql, ID: fmt.Sprint("probe-", began.UnixNano())})
	if err != nil {
		return 0, err
	}
	v.acked = time.Now()
	want := viewkeeper.Version(receipt.Offset + 1)
	var last time.Time
	for left := len(v.nodes); left > 0; {
		select {
		case s := <-v.served:
			if s.version == want {
				left--
				last = s.at
			}
		case err := <-v.ended:
			v.ended <- nil
			return 0, err
		case <-ctx.Done():
			return 0, fmt.Errorf("version %s did not come to all nodes: %w", want, ctx.Err())
		}
	}
	return last.Sub(began), nil
}

// stages takes changes apart with followers of the topics beside them.
func (v *visible) stages(ctx context.Context, n int) (string, error) {
	settings, err := v.c.env.kafka()
	if err != nil {
		return "", err
	}
	decisions, err := v.c.Decisions(ctx)
	if err != nil {
		return "", err
	}
	defer decisions.Stop()
	commits := make(chan served, 1000)
	inner, cancel := context.WithCancel(ctx)
	opened, done := make(chan struct{}), make(chan error, 1)
	defer func() { cancel(); <-done }()
	go func() {
		done <- settings.TailOpened(inner, v.c.Topics.Table(), sarama.OffsetNewest, func() { close(opened) }, func(m *sarama.ConsumerMessage) error {
			now := time.Now()
			if c, ok := codec.DecodeRecord(string(m.Key), m.Value).(*codec.Commit); ok {
				commits <- served{version: c.Version, at: now}
			}
			return nil
		})
	}()
	select {
	case <-opened:
	case err := <-done:
		done <- nil
		return "", err
	}
	var ack, commit, decided, all durations
	for i := range n {
		began := time.Now()
		total, err := v.change(ctx, 1_000_000+i)
		if err != nil {
			return "", err
		}
		all = append(all, total)
		ack = append(ack, v.acked.Sub(began))
		var c served
		select {
		case c = <-commits:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		commit = append(commit, c.at.Sub(began))
		_, at, err := decisions.Wait(ctx, int64(c.version)-1)
		if err != nil {
			return "", err
		}
		decided = append(decided, at.Sub(began))
	}
	return fmt.Sprintf("emitted and acked %.2f ms, judged and its commit row read %.2f ms, its decision record read %.2f ms, visible on the slowest node %.2f ms (p99: %.2f, %.2f, %.2f, %.2f)",
		ack.at(.5), commit.at(.5), decided.at(.5), all.at(.5), ack.at(.99), commit.at(.99), decided.at(.99), all.at(.99)), nil
}

func (v *visible) stop() {
	v.cancel()
	for range v.nodes {
		<-v.ended
	}
	_ = v.emitter.Close()
}
