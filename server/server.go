package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
	"github.com/viewkeeper/viewkeeper/ddl"
	"github.com/viewkeeper/viewkeeper/registry"
)

// Config is what a Server is made of.
type Config struct {
	// Node, Engine, Emitter and Checker are the parts that answer. Emitter may be
	// nil on a node that only reads: its statements are answered with 403.
	Node    Node
	Engine  Engine
	Emitter Emitter
	Checker Checker

	// Limits on what a client may submit; ddl.DefaultLimits() when zero.
	Limits ddl.Limits
	// QueryTimeout ends a query that does not name a time limit of its own, and
	// bounds the one it names. 5 minutes when zero.
	QueryTimeout time.Duration
	// MaxQueries is how many queries run at one time, 64 when zero. Eight times as many
	// may wait for their turn, within their time limit; more are answered with TOO_BUSY.
	MaxQueries int
	// StallTimeout ends an answer that the client stops reading, since it holds a
	// snapshot of the engine. A minute when zero.
	StallTimeout time.Duration
	// Grace is how long running requests may go on after a stop. 5 seconds when zero.
	Grace time.Duration

	// Settings are shown as vk.settings.
	Settings []Setting
	// Metrics is where the server's own metrics are registered and what /metrics
	// shows; a registry of its own when nil.
	Metrics *prometheus.Registry
	// Log gets one line a request at debug; slog.Default() when nil.
	Log *slog.Logger
}

// DefaultMaxQueries is Config.MaxQueries when that is zero.
const DefaultMaxQueries = 64

// Setting is one setting of the process with where its value came from.
type Setting struct{ Name, Value, Source string }

// Server is a node's HTTP door. Make one with New.
type Server struct {
	cfg     Config
	log     *slog.Logger
	metrics *metrics
	handler http.Handler
	turns   *turns
	// stopping is closed when a stop begins: endless answers end then.
	stopping chan struct{}
}

// New makes a server. It reports every field of cfg that is missing.
func New(cfg Config) (*Server, error) {
	var problems []error
	if cfg.Node == nil {
		problems = append(problems, errors.New("Config.Node is missing"))
	}
	if cfg.Engine == nil {
		problems = append(problems, errors.New("Config.Engine is missing"))
	}
	if cfg.Checker == nil {
		problems = append(problems, errors.New("Config.Checker is missing"))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("server: %w", errors.Join(problems...))
	}
	if cfg.Limits == (ddl.Limits{}) {
		cfg.Limits = ddl.DefaultLimits()
	}
	setDefault(&cfg.QueryTimeout, 5*time.Minute)
	setDefault(&cfg.StallTimeout, time.Minute)
	setDefault(&cfg.Grace, 5*time.Second)
	if cfg.MaxQueries <= 0 {
		cfg.MaxQueries = DefaultMaxQueries
	}
	if cfg.Metrics == nil {
		cfg.Metrics = prometheus.NewRegistry()
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	s := &Server{cfg: cfg, log: cfg.Log, metrics: newMetrics(cfg.Metrics), turns: newTurns(cfg.MaxQueries), stopping: make(chan struct{})}
	s.handler = s.middleware(s.routes())
	return s, nil
}

func setDefault(d *time.Duration, value time.Duration) {
	if *d == 0 {
		*d = value
	}
}

// Handler serves every endpoint.
func (s *Server) Handler() http.Handler { return s.handler }

// Serve answers on l until ctx ends, then takes no new requests, lets running ones
// go on for the grace period and cuts what is left. It closes l. It returns nil
// after a stop by ctx.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	srv := &http.Server{
		Handler:           s.handler,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	srv.RegisterOnShutdown(func() { close(s.stopping) })
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serving HTTP on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Grace)
	defer cancel()
	if err := srv.Shutdown(grace); err != nil {
		s.log.Warn("requests were cut at the end of the grace period", "grace", s.cfg.Grace)
		// Close cuts connections, which cancels the requests' contexts.
		if err := srv.Close(); err != nil {
			return fmt.Errorf("closing the HTTP server: %w", err)
		}
	}
	<-failed
	return nil
}

// current gives the factory to answer from, and puts its version in the answer. A
// node that has not been ready yet has none: its factory is the base alone, which
// would look like an empty catalog.
func (s *Server) current(w http.ResponseWriter) (*registry.Factory, *Problem) {
	if problem := notReady(s.cfg.Node.Status()); problem != nil {
		return nil, problem
	}
	f := s.cfg.Node.Current()
	w.Header().Set(HeaderVersion, f.Version().String())
	return f, nil
}

// notReady is the problem of a node that cannot answer from a whole catalog, or
// nil. A node that has only grown stale answers: what it serves was whole once.
func notReady(st viewkeeper.Status) *Problem {
	if st.Ready {
		return nil
	}
	for _, reason := range st.ReadyReasons {
		if reason != viewkeeper.ReasonStale {
			return unready(st)
		}
	}
	if len(st.ReadyReasons) == 0 {
		return unready(st)
	}
	return nil
}

func unready(st viewkeeper.Status) *Problem {
	detail := "node " + st.Node + " is not ready"
	for i, reason := range st.ReadyReasons {
		sep := ", "
		if i == 0 {
			sep = ": "
		}
		detail += sep + reason
		if d := st.Details[reason]; d != "" {
			detail += " (" + d + ")"
		}
	}
	return problemf(http.StatusServiceUnavailable, CodeNotReady, "%s; ask another node, or again when /readyz says 200", detail)
}
