package processor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/internal/kafka"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Processor is a member of a catalog's processor group. Any number of processes may
// run one; one of them owns the catalog at a time.
type Processor struct {
	cfg      Config
	settings kafka.Settings
	topics   kafka.Topics
	log      *slog.Logger
	metrics  *metrics
	board    *board
	guard    *kafka.Guard
	ran      atomic.Bool
	reached  *reached
	troubles *troubles

	// What tests replace.

	now      func() time.Time
	load     loadJudge
	openSink func(kafka.Settings) (sink, error)
	sweeps   sweeps
}

// New checks the config and makes a processor that does nothing yet. The error names
// everything that is wrong with the config.
func New(cfg Config) (*Processor, error) {
	settings, err := cfg.check()
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	board := newBoard(time.Now)
	metrics, err := newMetrics(cfg.Registerer, cfg.Catalog, board, cfg.QueueBytes)
	if err != nil {
		return nil, fmt.Errorf("processor: %w", err)
	}
	topics := kafka.Topics{Catalog: cfg.Catalog}
	return &Processor{
		cfg: cfg, settings: settings, topics: topics, metrics: metrics,
		log:      cfg.Log.With("catalog", cfg.Catalog, "node", cfg.NodeID),
		board:    board,
		guard:    kafka.NewGuard(topics.Table(), ""),
		reached:  &reached{},
		now:      time.Now,
		troubles: &troubles{now: time.Now},
		openSink: openSink,
		sweeps:   sweeps{every: time.Hour, age: 24 * time.Hour},
		load: func(ctx context.Context, rows []viewkeeper.Row, o registry.CatalogOptions) (judge, error) {
			return registry.LoadCatalog(ctx, cfg.Base, rows, o)
		},
	}, nil
}

// Run joins the group and works for the catalog until ctx ends, then it returns nil.
// What fails is started again, with a wait that grows. An error is for what can't get
// better in this process, such as a write that did not end within ExitDeadline: the
// process should end, so that another one takes over.
func (p *Processor) Run(ctx context.Context) error {
	if p.ran.Swap(true) {
		return ErrAlreadyRun
	}
	p.board.state(StateStarting)
	defer p.board.state(StateStopped)
	telling, stop := context.WithCancel(ctx)
	var told sync.WaitGroup
	told.Go(func() { p.troubles.tell(telling, p.log, p.board) })
	defer told.Wait()
	defer stop()
	var out error // by whom this process was thrown out, nil for nobody
	return kafka.Supervise(ctx, kafka.Supervision{
		TakenWait:    takenWait,
		Name:         "the processor of catalog " + p.cfg.Catalog,
		Log:          p.log,
		StopDeadline: p.cfg.ExitDeadline,
		Ended: func(err error, _ kafka.Class, _ time.Duration) {
			p.metrics.failures.Inc()
			// It is no reason, since another one owns, and is said all the same.
			if superseded := (*SupersededError)(nil); errors.As(err, &superseded) {
				p.log.Info("another owner has taken over", "owner", superseded.Owner, "epoch", superseded.Other)
			}
			p.board.ended(err)
		},
	}, func(ctx context.Context) error {
		if out != nil {
			if err := p.untilFree(ctx, out); err != nil || ctx.Err() != nil {
				return err
			}
			out = nil
		}
		l := &life{
			cfg: &p.cfg, settings: p.settings, topics: p.topics, instanceID: instanceID(p.cfg.NodeID), guard: p.guard, reached: p.reached,
			log: p.log, metrics: p.metrics, board: p.board, now: p.now, load: p.load, openSink: p.openSink, sweeps: p.sweeps, troubles: p.troubles,
		}
		err := l.run(ctx)
		if kafka.Classify(err).Kind == kafka.KindTaken {
			out = err
		}
		return err
	})
}

// SetDegraded adds a reason that only the process can know, such as ENGINE_DOWN, with
// a sentence; an empty one takes it away. The nodes show what the owner has.
func (p *Processor) SetDegraded(code, detail string) { p.board.stand(code, detail) }

// Status says what the processor does now.
func (p *Processor) Status() Status {
	s, _ := p.board.get()
	return s
}

// WaitStatus returns the first status that ok accepts, or ctx's error.
func (p *Processor) WaitStatus(ctx context.Context, ok func(Status) bool) (Status, error) {
	for {
		s, changed := p.board.get()
		if ok(s) {
			return s, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return s, ctx.Err()
		}
	}
}

// instanceID makes a static member id from a node id; Kafka takes letters, digits,
// dot, underscore and hyphen.
func instanceID(node string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, node)
}
