package view

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper/codec"
)

// metrics are the node's numbers. What the status says is read from it when
// somebody scrapes.
type metrics struct {
	records  *prometheus.CounterVec
	restarts prometheus.Counter
	builds   *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	indexed  prometheus.Gauge
	// skipped counts records of the table that count for nothing.
	skipped *prometheus.CounterVec

	copyLoaded, copyNext       prometheus.Gauge
	copyDiscards, copyFailures prometheus.Counter
}

func newMetrics(n *Node, reg prometheus.Registerer) (*metrics, error) {
	const ns = "viewkeeper"
	labels := prometheus.Labels{"catalog": n.cfg.Catalog, "node": n.cfg.NodeID}
	m := &metrics{
		records: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Name: "table_records_total", ConstLabels: labels,
			Help: "Records of the table that were read, by type and by whether they counted."}, []string{"type", "counted"}),
		restarts: prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Name: "view_restarts_total", ConstLabels: labels,
			Help: "Times that goka's view ended and was made anew."}),
		builds: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Name: "builds_total", ConstLabels: labels,
			Help: "Factories built, by what was asked and how it ended."}, []string{"kind", "result"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Namespace: ns, Name: "build_seconds", ConstLabels: labels,
			Help: "Time to build a factory.", Buckets: prometheus.ExponentialBuckets(0.0005, 4, 10)}, []string{"kind"}),
		indexed: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: "history_next_offset", ConstLabels: labels,
			Help: "Offset of the decisions topic that the history index goes on from."}),
		skipped: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: ns, Name: "table_skipped_total", ConstLabels: labels,
			Help: "Records that came while the node followed and count for nothing: stale of a former owner, tombstone, unreadable, newer of a newer format."}, []string{"why"}),
		copyLoaded: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: "table_copy_loaded_records", ConstLabels: labels,
			Help: "Records that this start took from the node's copy of the table; 0 when there was none."}),
		copyNext: prometheus.NewGauge(prometheus.GaugeOpts{Namespace: ns, Name: "table_copy_next_offset", ConstLabels: labels,
			Help: "Offset of the table that a start with the node's copy would go on from."}),
		copyDiscards: prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Name: "table_copy_discarded_total", ConstLabels: labels,
			Help: "Copies of the table that were not used: damaged, of another topic, or of another format."}),
		copyFailures: prometheus.NewCounter(prometheus.CounterOpts{Namespace: ns, Name: "table_copy_failures_total", ConstLabels: labels,
			Help: "Writes of the node's copy of the table that failed."}),
	}
	for _, why := range []string{"stale", "tombstone", "unreadable", "newer"} {
		m.skipped.WithLabelValues(why)
	}
	if reg == nil {
		return m, nil
	}
	gauge := func(name, help string, value func() float64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Namespace: ns, Name: name, Help: help, ConstLabels: labels}, value)
	}
	for _, c := range []prometheus.Collector{m.records, m.skipped, m.restarts, m.builds, m.seconds, m.indexed, m.copyLoaded, m.copyNext, m.copyDiscards, m.copyFailures,
		gauge("catalog_version", "Catalog version of the factory that is served.", func() float64 { return float64(n.reg.Current().Version()) }),
		gauge("definitions", "Definitions in the factory.", func() float64 { return float64(n.reg.Current().Len()) }),
		gauge("definitions_broken", "Definitions that do not build here.", func() float64 { return float64(len(n.reg.Current().Failures())) }),
		newHealthCollector(n, labels), newFleetCollector(n, labels),
		gauge("view_state", "State of goka's view: 0 idle, 1 initializing, 2 connecting, 3 catching up, 4 running.", func() float64 { return float64(n.State()) }),
		gauge("statements_pending", "Statements that were seen and are not decided.", func() float64 { return float64(n.Pending()) }),
	} {
		if err := reg.Register(c); err != nil {
			return nil, fmt.Errorf("registering the node's metrics: %w", err)
		}
	}
	return m, nil
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// record counts a record. What is read on the way to the end may have lain there for
// years: only what comes while the node follows is an event.
func (m *metrics) record(r codec.Record, counted, following bool) {
	kind, why := "unknown", "stale"
	switch r := r.(type) {
	case codec.Row, codec.Purge:
		kind = "row"
	case *codec.Commit:
		kind = "commit"
	case *codec.Fence:
		kind = "fence"
	case *codec.Heartbeat:
		kind = "heartbeat"
	case *codec.IDs:
		kind = "ids"
	case codec.Tombstone:
		kind, why = "tombstone", "tombstone"
	case codec.Unknown:
		why = "unreadable"
		if r.Newer {
			why = "newer"
		}
	}
	if !counted && following {
		m.skipped.WithLabelValues(why).Inc()
	}
	m.records.WithLabelValues(kind, fmt.Sprint(counted)).Inc()
}

func (m *metrics) built(kind string, began time.Time, err error) {
	result := "ok"
	if err != nil {
		result = "failed"
	}
	m.builds.WithLabelValues(kind, result).Inc()
	m.seconds.WithLabelValues(kind).Observe(time.Since(began).Seconds())
}
