package view

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Node follows a catalog. Make one with [New], give it to [Node.Run], and ask it
// for the factory with [Node.Current]. All methods are safe for concurrent use.
type Node struct {
	cfg      Config
	settings kafka.Settings
	topics   kafka.Topics
	log      *slog.Logger
	time     timing
	metrics  *metrics
	reg      *registry.Registry
	brokers  *brokers

	ran    atomic.Bool
	states states
	// wake is fired when anything changed that somebody may wait for.
	wake signal

	kick    chan struct{} // the builder has something to look at
	reapply atomic.Bool   // and that is the applier, see Reapply
	askEnd  chan struct{} // the fold wants to know the table's end
	publish chan struct{} // the status changed

	decisions *decisions
	fleet     *fleet
	intake    *intake
	copy      *tableCopy

	mu         sync.Mutex
	following  *session
	accepted   *session // nil until the first one is accepted
	acceptedAt time.Time
	pending    pending
	building   time.Time // since when what is being built waited; zero when nothing is
	health     health
	parts      parts
	restart    context.CancelFunc // ends the present view; nil when there is none
	digests    digests
}

// digests are those of the current factory, made once for each.
type digests struct {
	of          *registry.Factory
	rows, build string
}

// New makes a node. It checks the settings and names every wrong one; it does not
// connect.
func New(cfg Config) (*Node, error) { return newNode(cfg, defaultTiming()) }

func newNode(cfg Config, t timing) (*Node, error) {
	settings, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	n := &Node{
		cfg:      cfg,
		settings: settings,
		topics:   kafka.Topics{Catalog: cfg.Catalog},
		log:      cfg.Log.With("catalog", cfg.Catalog, "node", cfg.NodeID),
		time:     t,
		brokers:  &brokers{settings: settings},
		kick:     make(chan struct{}, 1),
		askEnd:   make(chan struct{}, 1),
		publish:  make(chan struct{}, 1),
	}
	n.health.down = time.Now()
	n.health.contact = n.health.down
	n.reg = registry.New(cfg.Base, registry.RegistryOptions{Applier: cfg.Applier})
	n.following = n.newSession("")
	n.copy = newTableCopy(cfg.DataDir)
	n.decisions = newDecisions(&n.wake)
	n.fleet = newFleet(cfg.NodeID, t.live)
	n.intake = newIntake()
	n.parts = newParts(n.topics)
	if n.metrics, err = newMetrics(n, cfg.Registerer); err != nil {
		return nil, err
	}
	return n, nil
}

// Run follows the catalog until ctx ends, and returns nil then. It goes on through
// lost brokers, missing topics and wrong settings, saying so in Status; an error
// means that it can't: settings that no broker will take, or a client that was told
// to stop and did not (*kafka.AbandonedError), after which the process should end.
func (n *Node) Run(ctx context.Context) error {
	if n.ran.Swap(true) {
		return ErrRunTwice
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer n.brokers.close()
	n.loadPlans()
	n.loadCopy()

	var wg sync.WaitGroup
	var mu sync.Mutex
	var errs []error
	start := func(run func(context.Context) error) {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if err := run(ctx); err != nil {
				mu.Lock()
				errs = append(errs, err)
				mu.Unlock()
				cancel()
			}
		}()
	}
	start(func(ctx context.Context) error {
		return kafka.Supervise(ctx, n.supervision("the view of "+n.topics.Table(), n.followEnded), n.follow)
	})
	start(n.build)
	start(n.findEnds)
	start(n.monitor)
	start(n.keepTime)
	start(n.keepCopy)
	start(n.keepPlans)
	start(func(ctx context.Context) error { return n.keep(ctx, &n.parts.history, n.keepHistory) })
	start(func(ctx context.Context) error { return n.keep(ctx, &n.parts.nodes, n.followFleet) })
	start(func(ctx context.Context) error { return n.keep(ctx, &n.parts.intake, n.followIntake) })
	if !n.cfg.ReadOnly {
		start(func(ctx context.Context) error { return n.keep(ctx, &n.parts.publish, n.publishStatus) })
	}
	wg.Wait()
	n.decisions.close()
	n.wake.fire()
	return errors.Join(errs...)
}

func (n *Node) supervision(name string, ended func(error, kafka.Class, time.Duration)) kafka.Supervision {
	return kafka.Supervision{
		Name: name, Log: n.log, Ended: ended,
		FirstWait: n.time.restartFirst, LongWait: n.time.restartMost, StopDeadline: 2 * n.time.stop,
	}
}

// Current is the factory to serve, never nil: the base alone at version 0 until the
// node is ready for the first time, then always a whole catalog.
func (n *Node) Current() *registry.Factory { return n.reg.Current() }

// Reapply has the builder give the applier the current factory again, for an engine
// that was restarted without all of it. What the applier refuses then is broken from
// then on. It does not wait.
func (n *Node) Reapply() {
	n.reapply.Store(true)
	poke(n.kick)
}

// State is the state of goka's View now.
func (n *Node) State() State { return n.states.get() }

// ObserveStates gives the state now and each later one. The channel is closed by
// stop. An observer that is more than 64 states behind loses the oldest.
func (n *Node) ObserveStates() (c <-chan State, stop func()) { return n.states.observe() }

// Changed is closed when something changed that the other methods tell of. Take it
// before looking.
func (n *Node) Changed() <-chan struct{} { return n.wake.C() }

// WaitReady returns nil when the node is ready, else the context's error.
func (n *Node) WaitReady(ctx context.Context) error {
	return n.waitFor(ctx, func() bool { return n.assess(time.Now()).ready })
}

// WaitVersion returns nil when the node's factory has reached v, else the context's
// error.
func (n *Node) WaitVersion(ctx context.Context, v viewkeeper.Version) error {
	return n.waitFor(ctx, func() bool { return n.reg.Current().Version() >= v })
}

func (n *Node) waitFor(ctx context.Context, ok func() bool) error {
	for {
		c := n.wake.C()
		if ok() {
			return nil
		}
		select {
		case <-c:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// SetDegraded adds something that is wrong with the node and that only its process
// can know, such as ENGINE_DOWN, with a sentence; an empty one takes it away.
func (n *Node) SetDegraded(code, detail string) {
	n.mu.Lock()
	if n.health.outside == nil {
		n.health.outside = map[string]string{}
	}
	if detail == "" {
		delete(n.health.outside, code)
	} else {
		n.health.outside[code] = detail
	}
	n.mu.Unlock()
	n.wake.fire()
	poke(n.publish)
}

// SetOwnReasons replaces what is wrong with this process as an owner, a sentence for
// each code: the node shows it as degraded, also where no owner is left who would say
// it in the table.
func (n *Node) SetOwnReasons(reasons map[string]string) {
	n.mu.Lock()
	n.health.ownOwner = maps.Clone(reasons)
	n.mu.Unlock()
	n.wake.fire()
	poke(n.publish)
}
