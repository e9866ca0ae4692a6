package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"golang.org/x/sync/errgroup"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/processor"
	"github.com/viewkeeper/viewkeeper/registry"
	"github.com/viewkeeper/viewkeeper/registry/duckdb"
	"github.com/viewkeeper/viewkeeper/registry/duckdb/engine"
	"github.com/viewkeeper/viewkeeper/server"
	"github.com/viewkeeper/viewkeeper/view"
)

// logger makes the process's log.
func (a *app) logger() *slog.Logger { return a.loggerTo(os.Stderr) }

func (a *app) loggerTo(f *os.File) *slog.Logger {
	var level slog.Level
	// validate has checked the level.
	_ = level.UnmarshalText([]byte(a.LogLevel))
	options := &slog.HandlerOptions{Level: level}
	if a.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(f, options))
	}
	return slog.New(slog.NewTextHandler(f, options))
}

// engineConfig reads the base and says how an engine is run.
func (a *app) engineConfig(log *slog.Logger) (engine.Config, error) {
	cfg := engine.Config{Log: log}
	if a.Base != "" {
		text, err := os.ReadFile(a.Base)
		if err != nil {
			return cfg, usagef("--base: %w", err)
		}
		cfg.Options.BaseSQL = string(text)
	}
	for _, dir := range a.Lake {
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", dir)
		}
		if err == nil {
			dir, err = filepath.Abs(dir)
		}
		if err != nil {
			return cfg, usagef("--lake: %w", err)
		}
		cfg.Options.LakeDirs = append(cfg.Options.LakeDirs, dir)
	}
	limit, err := parseSize(a.MemoryLimit)
	if err != nil {
		return cfg, usagef("--memory-limit: %w", err)
	}
	cfg.ResidentLimit = limit
	cfg.Options.Threads = a.Threads
	cfg.Options.Limits = duckdb.Limits{Nesting: a.MaxNesting, Joins: a.MaxJoins, Layers: a.MaxLayers}
	return cfg, nil
}

// parseSize reads 500MB, 2GB, 1GiB or a number of bytes.
func parseSize(s string) (int64, error) {
	number := strings.TrimRight(strings.ToUpper(s), "IKMGTB ")
	unit := strings.TrimSpace(strings.ToUpper(s)[len(number):])
	n, err := strconv.ParseFloat(number, 64)
	factor, ok := map[string]float64{
		"": 1, "B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
	}[unit]
	if err != nil || !ok || n <= 0 {
		return 0, fmt.Errorf("%q is not a size; write it as 500MB or 2GB", s)
	}
	return int64(n * factor), nil
}

// newMetrics makes a registry with what every process shows.
func newMetrics() *prometheus.Registry {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return reg
}

// planner starts a planner of its own, and a base on it. Owner and node have one
// each: neither waits for the other, and each has a scratch catalog that nobody
// else changes.
func (a *app) planner(ctx context.Context, cfg engine.Config, failed func(viewkeeper.Name)) (*engine.Planner, *registry.Base, error) {
	// --memory-limit is for queries. A planner reads no data, and must have the same
	// limit everywhere: what is over it is refused.
	cfg.ResidentLimit = engine.DefaultPlannerResident
	policy, err := a.policy()
	if err != nil {
		return nil, nil, usagef("--require-column: %w", err)
	}
	planner, err := engine.StartPlanner(ctx, cfg)
	if err != nil {
		return nil, nil, fmt.Errorf("starting the engine: %w", err)
	}
	base, err := registry.NewBase(ctx, planner, registry.BaseOptions{Limits: a.limits(), Sizes: a.sizes(), Policy: policy, Log: cfg.Log, LoadFailure: failed})
	if err != nil {
		return nil, nil, errors.Join(err, planner.Close())
	}
	return planner, base, nil
}

// ownerSpec and nodeSpec say what a role is made of.
type ownerSpec struct {
	kafka   viewkeeper.KafkaSettings
	catalog string
	id      string
	engine  engine.Config
	metrics *prometheus.Registry
	log     *slog.Logger
}

type nodeSpec struct {
	ownerSpec
	listener  net.Listener
	advertise string
	dataDir   string
}

// owner is the processor with its planner.
type owner struct {
	*processor.Processor
	planner *engine.Planner
}

func (a *app) newOwner(ctx context.Context, spec ownerSpec) (*owner, error) {
	down := newEngineHealth(spec.metrics)
	cfg := spec.engine
	cfg.Changed = down.changed("judge")
	planner, base, err := a.planner(ctx, cfg, nil)
	if err != nil {
		return nil, err
	}
	p, err := processor.New(processor.Config{
		Kafka: spec.kafka, Catalog: spec.catalog, NodeID: spec.id, Base: base, Log: spec.log, Registerer: spec.metrics,
		HiddenSettingsFatal: a.StrictSettings, PurgeAfter: a.PurgeAfter,
	})
	if err != nil {
		return nil, errors.Join(err, planner.Close())
	}
	down.tell(func(detail string) { p.SetDegraded(viewkeeper.ReasonEngineDown, detail) })
	return &owner{p, planner}, nil
}

// run judges until ctx ends.
func (o *owner) run(ctx context.Context) error {
	return errors.Join(o.Run(ctx), o.planner.Close())
}

// node is the follower with its engines and its door.
type node struct {
	*view.Node
	planner  *engine.Planner
	checks   *checker
	serving  *engine.Server
	emitter  *emitter
	door     *server.Server
	listener net.Listener
}

func (a *app) newNode(ctx context.Context, spec nodeSpec) (n *node, err error) {
	n = &node{listener: spec.listener}
	started := n // an error returns no node, and what it had started must end
	defer func() {
		if err != nil {
			err = errors.Join(err, started.close())
		}
	}()
	failures := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "view_definition_load_failure", Help: "Definitions that were skipped because they do not build here, by name.",
	}, []string{"view"})
	spec.metrics.MustRegister(failures)
	// Both engines may be lost at one time; each has its say in the status.
	down := newEngineHealth(spec.metrics)
	cfg := spec.engine
	cfg.Changed = down.changed("planner")
	var base *registry.Base
	var following atomic.Pointer[view.Node] // the engine is there before it
	var engines errgroup.Group              // neither start waits for the other
	planning := cfg
	engines.Go(func() (err error) {
		n.planner, base, err = a.planner(ctx, planning, func(name viewkeeper.Name) { failures.WithLabelValues(name.String()).Inc() })
		return err
	})
	cfg.Changed = down.changed("server")
	cfg.Refused = func() {
		if v := following.Load(); v != nil {
			v.Reapply()
		}
	}
	engines.Go(func() (err error) {
		if n.serving, err = engine.StartServer(ctx, cfg); err != nil {
			return fmt.Errorf("starting the engine: %w", err)
		}
		return nil
	})
	if err := engines.Wait(); err != nil {
		return nil, err
	}
	n.Node, err = view.New(view.Config{
		Kafka: spec.kafka, Catalog: spec.catalog, NodeID: spec.id, HTTP: spec.advertise, Base: base, Applier: n.serving,
		DataDir: spec.dataDir, NoStartStale: !a.StartStale, MaxStale: a.MaxStale, ReadOnly: a.ReadOnly, HiddenSettingsFatal: a.StrictSettings, Log: spec.log, Registerer: spec.metrics,
	})
	if err != nil {
		return nil, err
	}
	following.Store(n.Node)
	n.checks = newChecker(func(ctx context.Context) (*engine.Planner, *registry.Base, error) {
		return a.planner(ctx, spec.engine, nil) // what a check does to it is nobody else's trouble
	})
	n.checks.node = n.Node
	down.tell(func(detail string) { n.SetDegraded(viewkeeper.ReasonEngineDown, detail) })
	door := server.Config{
		Node: nodeDoor{n.Node}, Engine: engineDoor{n.serving}, Checker: n.checks,
		Limits: a.sizes(), QueryTimeout: a.QueryTimeout, MaxQueries: a.MaxQueries, Settings: a.settingRows(), Metrics: spec.metrics, Log: spec.log,
	}
	if !a.ReadOnly {
		if n.emitter, err = newEmitter(spec.kafka, spec.catalog); err != nil {
			return nil, err
		}
		door.Emitter = n.emitter
	}
	n.door, err = server.New(door)
	return n, err
}

// run follows and answers until ctx ends. The door closes first, so that no request
// meets a node that has stopped following.
func (n *node) run(ctx context.Context) error {
	follow, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	var group errgroup.Group
	failed, cancel := context.WithCancel(ctx)
	defer cancel()
	group.Go(func() error {
		defer stop()
		return n.door.Serve(failed, n.listener)
	})
	group.Go(func() error {
		defer cancel()
		return n.Run(follow)
	})
	return errors.Join(group.Wait(), n.close())
}

// close ends what New started. It may find any part missing.
func (n *node) close() error {
	var errs []error
	if n.emitter != nil {
		errs = append(errs, n.emitter.Close())
	}
	if n.serving != nil {
		errs = append(errs, n.serving.Close())
	}
	if n.checks != nil {
		errs = append(errs, n.checks.close())
	}
	if n.planner != nil {
		errs = append(errs, n.planner.Close())
	}
	return errors.Join(errs...)
}

// engineDoor gives the engine as the server asks it.
type engineDoor struct{ *engine.Server }

func (e engineDoor) Query(ctx context.Context, q server.Query) (*server.Result, error) {
	r, err := e.Server.Query(ctx, duckdb.QueryRequest{SQL: q.SQL, Timeout: q.Timeout, VK: q.VK})
	if err != nil {
		return nil, err
	}
	return &server.Result{Version: r.Version, Columns: r.Columns, Body: r.Body}, nil
}
