package view

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
)

// healthCollector shows the node's health at the time of a scrape, all of one moment.
// There is a series for each reason there is, so that one that was never seen is 0 and
// not absent.
type healthCollector struct {
	node                                    *Node
	ready, stale, count, degraded, notReady *prometheus.Desc
}

func newHealthCollector(n *Node, labels prometheus.Labels) *healthCollector {
	desc := func(name, help string, variable ...string) *prometheus.Desc {
		return prometheus.NewDesc("viewkeeper_"+name, help, variable, labels)
	}
	return &healthCollector{node: n,
		ready:    desc("ready", "1 when the node is ready."),
		stale:    desc("stale_seconds", "Age of what is served; 0 when it is current."),
		count:    desc("degraded_reasons", "Number of things that are wrong with the node."),
		degraded: desc("degraded", "1 for each reason that is wrong, 0 for the others, of the node or, as it is told, of an owner.", "reason", "of"),
		notReady: desc("not_ready", "1 for each reason for which the node is not ready, 0 for the others.", "reason"),
	}
}

// Describe gives what Collect will.
func (c *healthCollector) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.ready, c.stale, c.count, c.degraded, c.notReady} {
		to <- d
	}
}

// Collect assesses the node once.
func (c *healthCollector) Collect(to chan<- prometheus.Metric) {
	a := c.node.assess(time.Now())
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(c.ready, bit(a.ready))
	gauge(c.stale, a.stale.Seconds())
	gauge(c.count, float64(len(a.degraded)))
	for _, code := range viewkeeper.Reasons() {
		_, is := a.degraded[code]
		gauge(c.degraded, bit(is && !a.theirs[code]), code, "node")
		gauge(c.degraded, bit(is && a.theirs[code]), code, "owner")
		_, is = a.reasons[code]
		gauge(c.notReady, bit(is), code)
	}
}
