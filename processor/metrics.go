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
	purged     prometheus.Counter
}

func newMetrics(r prometheus.Registerer, catalog string, board *board, queueLimit int) (*metrics, error) {
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
		purged:    counter("purged_total", "Old drop rows that were taken out of the table."),
		lost:      counter("statements_lost_total", "Offsets of the definitions topic that were gone before they were judged."),
	}
	if r == nil {
		return m, nil
	}
	limit := gauge("queue_limit_bytes", "Bytes of such statements at which reading waits for writing.")
	limit.Set(float64(queueLimit))
	for _, c := range []prometheus.Collector{newStateCollector(board, labels), limit, m.statements, m.judge, m.commit, m.batch, m.owner, m.epoch, m.version, m.queue,
		m.takeovers, m.failures, m.healed, m.completed, m.lost, m.purged} {
		if err := r.Register(c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// stateCollector shows what the board has at the time of a scrape, with a series for
// each state and each reason there is, so that one that was never seen is 0 and not
// absent.
type stateCollector struct {
	board          *board
	state, reasons *prometheus.Desc
}

func newStateCollector(b *board, labels prometheus.Labels) *stateCollector {
	return &stateCollector{b,
		prometheus.NewDesc("viewkeeper_processor_state", "1 for the state that this process is in: starting, standby, claiming, owner, blocked, stopped.", []string{"state"}, labels),
		prometheus.NewDesc("viewkeeper_processor_reason", "1 for each reason that is wrong with this process as an owner, 0 for the others.", []string{"reason"}, labels),
	}
}

// Describe gives what Collect will.
func (c *stateCollector) Describe(to chan<- *prometheus.Desc) { to <- c.state; to <- c.reasons }

// Collect looks at the board.
func (c *stateCollector) Collect(to chan<- prometheus.Metric) {
	s, _ := c.board.get()
	for _, state := range []State{StateStarting, StateStandby, StateClaiming, StateOwner, StateBlocked, StateStopped} {
		to <- prometheus.MustNewConstMetric(c.state, prometheus.GaugeValue, bit(s.State == state), string(state))
	}
	for _, code := range viewkeeper.Reasons() {
		_, is := s.Reasons[code]
		to <- prometheus.MustNewConstMetric(c.reasons, prometheus.GaugeValue, bit(is), code)
	}
}

func bit(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (m *metrics) judged(d *viewkeeper.Decision, took time.Duration) {
	m.judge.Observe(took.Seconds())
	m.statements.WithLabelValues(string(d.Verdict), string(d.Code)).Inc()
}

func (m *metrics) repeated() { m.statements.WithLabelValues("repeated", "").Inc() }
