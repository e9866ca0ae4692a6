package server

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics are the door's own; the node's and the owner's are registered by
// whoever makes those.
type metrics struct {
	requests *prometheus.CounterVec
	took     *prometheus.HistogramVec
	running  prometheus.Gauge
	waiting  prometheus.Gauge
	rows     prometheus.Counter
	cut      prometheus.Counter
}

// newMetrics registers the door's metrics. A registry takes one server only.
func newMetrics(reg prometheus.Registerer) *metrics {
	auto := promauto.With(reg)
	return &metrics{
		requests: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "viewkeeper_http_requests_total", Help: "Requests answered, by path and status.",
		}, []string{"path", "status"}),
		took: auto.NewHistogramVec(prometheus.HistogramOpts{
			Name: "viewkeeper_http_request_seconds", Help: "Time to the end of the answer, by path.",
			Buckets: prometheus.ExponentialBuckets(0.001, 4, 8),
		}, []string{"path"}),
		running: auto.NewGauge(prometheus.GaugeOpts{
			Name: "viewkeeper_queries_running", Help: "Queries whose answer has not ended.",
		}),
		waiting: auto.NewGauge(prometheus.GaugeOpts{
			Name: "viewkeeper_queries_waiting", Help: "Queries that wait for their turn: see --max-queries.",
		}),
		rows: auto.NewCounter(prometheus.CounterOpts{
			Name: "viewkeeper_query_rows_total", Help: "Rows sent as text to clients.",
		}),
		cut: auto.NewCounter(prometheus.CounterOpts{
			Name: "viewkeeper_queries_cut_total", Help: "Answers aborted in the middle of their body.",
		}),
	}
}

// observe counts and times the requests of one route. A panic, which is how an
// answer is aborted, counts as status "aborted".
func (m *metrics) observe(path string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		status := "aborted"
		defer func() {
			m.requests.WithLabelValues(path, status).Inc()
			m.took.WithLabelValues(path).Observe(time.Since(start).Seconds())
		}()
		next.ServeHTTP(w, r)
		code := http.StatusOK
		if rec, ok := w.(*recorder); ok && rec.status != 0 {
			code = rec.status
		}
		status = strconv.Itoa(code)
	})
}
