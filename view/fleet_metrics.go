package view

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/viewkeeper/viewkeeper"
)

// fleetCollector shows the whole fleet as this node sees it, so that any one of them
// tells of a node that nobody scrapes.
type fleetCollector struct {
	node   *Node
	counts []fleetCount
	lag    *prometheus.Desc
}

// fleetCount is a metric that counts the live nodes of which something is so.
type fleetCount struct {
	desc *prometheus.Desc
	is   func(viewkeeper.NodeStatus) bool
}

func newFleetCollector(n *Node, labels prometheus.Labels) *fleetCollector {
	desc := func(name, help string) *prometheus.Desc {
		return prometheus.NewDesc("viewkeeper_fleet_"+name, help, nil, labels)
	}
	type node = viewkeeper.NodeStatus
	return &fleetCollector{node: n,
		lag: desc("lag_versions", "By how many versions the last of the live nodes is behind the highest known."),
		counts: []fleetCount{
			{desc("nodes", "Live nodes that this node sees."), func(node) bool { return true }},
			{desc("not_ready", "Live nodes that are not ready."), func(s node) bool { return !s.Ready }},
			{desc("degraded", "Live nodes with which something is wrong."), func(s node) bool { return len(s.Degraded) > 0 }},
			{desc("stale", "Live nodes that serve what is not current."), func(s node) bool { return s.StaleFor > 0 }},
			{desc("lagging", "Live nodes without a version that was known 10 seconds ago."), func(s node) bool { return s.Lagging }},
			{desc("digest_mismatch", "Live nodes with other rows than others at their version."), func(s node) bool { return s.DigestDiffers }},
			{desc("base_mismatch", "Live nodes whose base is not the owner's."), func(s node) bool { return s.BaseDiffers }},
			{desc("broken", "Live nodes on which definitions do not build."), func(s node) bool { return s.Broken > 0 }},
		},
	}
}

// Describe gives what Collect will.
func (c *fleetCollector) Describe(to chan<- *prometheus.Desc) {
	to <- c.lag
	for _, count := range c.counts {
		to <- count.desc
	}
}

// Collect looks at the fleet once.
func (c *fleetCollector) Collect(to chan<- prometheus.Metric) {
	nodes, _ := c.node.Nodes()
	var lag viewkeeper.Version
	for _, s := range nodes {
		lag = max(lag, s.Lag)
	}
	to <- prometheus.MustNewConstMetric(c.lag, prometheus.GaugeValue, float64(lag))
	for _, count := range c.counts {
		n := 0
		for _, s := range nodes {
			if count.is(s) {
				n++
			}
		}
		to <- prometheus.MustNewConstMetric(count.desc, prometheus.GaugeValue, float64(n))
	}
}
