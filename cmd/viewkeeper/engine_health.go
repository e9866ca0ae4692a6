package main

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// engineHealth gathers what becomes of the engines of a node, or of an owner, for its
// status. The engines start before it is made; what happens until then is told at once after.
type engineHealth struct {
	mu     sync.Mutex
	losses map[string]string // what is lost, and how that came about
	report func(detail string)
	total  *prometheus.CounterVec
}

// newEngineHealth counts in a registry, which a process has for all that it is.
func newEngineHealth(metrics prometheus.Registerer) *engineHealth {
	total := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "viewkeeper_engine_losses_total", Help: "Times that an engine ended, was killed or was replaced: the owner's judge, a node's planner and server.",
	}, []string{"engine"})
	var registered prometheus.AlreadyRegisteredError
	if err := metrics.Register(total); errors.As(err, &registered) {
		total = registered.ExistingCollector.(*prometheus.CounterVec)
	}
	return &engineHealth{losses: map[string]string{}, report: func(string) {}, total: total}
}

// changed gives the function that an engine tells of its losses: judge, planner or
// server.
func (h *engineHealth) changed(engine string) func(loss string) {
	what := map[string]string{"judge": "the engine that judges", "planner": "the engine that builds", "server": "the engine that answers queries"}[engine]
	lost := h.total.WithLabelValues(engine)
	return func(loss string) {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.losses[what] = what + " was lost and is being started again: " + loss
		if loss == "" {
			delete(h.losses, what)
		} else {
			lost.Inc()
		}
		h.say()
	}
}

// tell sets who is told: all losses in a sentence each, "" when there are none.
func (h *engineHealth) tell(report func(detail string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.report = report
	h.say()
}

func (h *engineHealth) say() {
	h.report(strings.Join(slices.Sorted(maps.Values(h.losses)), "; "))
}
