package processor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
)

// metrics are the processor's. docs/ has a line for each.
type metrics struct {
	statements *prometheus.CounterVec // by verdict and code
	judge      prometheus.Histogram
	commit     prometheus.Histogram
	batch      prometheus.Histogram
	owner      prometheus.Gauge
	epoch      prometheus.Gauge
	version    prometheus.Gauge
	queue      prometheus.Gauge
	takeovers  prometheus.Counter
	failures   prometheus.Counter
	healed     prometheus.Counter
	completed  prometheus.Counter
	lost       prometheus.Counter
}

func newMetrics(r prometheus.Registerer, catalog string) (*metrics, error) {
	labels := prometheus.Labels{"catalog": catalog}
	gauge := func(name, help string) prometheus.Gauge {
		return prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "viewkeeper", Subsystem: "processor", Name: name, Help: help, ConstLabels: labels})
	}
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Namespace: "viewkeeper", Subsystem: "processor", Name: name, Help: help, ConstLabels: labels})
	}
	histogram := func(name, help string, buckets []float64) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Namespace: "viewkeeper", Subsystem: "processor", Name: name, Help: help, ConstLabels: labels, Buckets: buckets})
	}
	seconds := prometheus.ExponentialBuckets(0.0002, 2.5, 12)
	m := &metrics{
		statements: prometheus.NewCounterVec(prometheus.CounterOpts{Namespace: "viewkeeper", Subsystem: "processor", Name: "statements_total",
			Help: "Statements judged here, by verdict and by code; verdict repeated for an id that was known with the same text.", ConstLabels: labels}, []string{"verdict", "code"}),
		judge:     histogram("judge_seconds", "Time to judge one statement.", seconds),
		commit:    histogram("commit_seconds", "Time from a batch's first write to its last ack.", seconds),
		batch:     histogram("batch_statements", "Statements that share a commit row.", prometheus.ExponentialBuckets(1, 2, 11)),
		owner:     gauge("owner", "1 while this process is the owner."),
		epoch:     gauge("epoch", "This owner's epoch, 0 while it is none."),
		version:   gauge("version", "The last catalog version committed here."),
		queue:     gauge("queue_bytes", "Bytes of statements that are judged and not yet written."),
		takeovers: counter("takeovers_total", "Times that this process became the owner."),
		failures:  counter("failures_total", "Times that this process stopped working for the catalog by a failure."),
		healed:    counter("healed_total", "Records written again because another owner's late one, or a stranger's, lay over them."),
		completed: counter("completed_total", "Records written again because the owner before had not come to it."),
		lost:      counter("statements_lost_total", "Offsets of the definitions topic that were gone before they were judged."),
	}
	if r == nil {
		return m, nil
	}
	for _, c := range []prometheus.Collector{m.statements, m.judge, m.commit, m.batch, m.owner, m.epoch, m.version, m.queue,
		m.takeovers, m.failures, m.healed, m.completed, m.lost} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metrics) judged(d *viewkeeper.Decision, took time.Duration) {
	m.judge.Observe(took.Seconds())
	m.statements.WithLabelValues(string(d.Verdict), string(d.Code)).Inc()
}

func (m *metrics) repeated() { m.statements.WithLabelValues("repeated", "").Inc() }
