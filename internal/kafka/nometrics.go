package kafka

import "github.com/rcrowley/go-metrics"

// noMetrics is a registry for sarama that keeps nothing. Sarama counts each request of
// each client in some twenty meters and histograms, which nobody reads here: they were
// most of the memory of a client, and every open meter is visited by a goroutine that
// never ends. What viewkeeper measures of itself is in Prometheus.
type noMetrics struct{}

var _ metrics.Registry = noMetrics{}

// GetOrRegister gives a metric of the wanted kind that does nothing.
func (noMetrics) GetOrRegister(_ string, wanted any) any {
	switch w := wanted.(type) {
	case func() metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Counter:
		return metrics.NilCounter{}
	case func() metrics.Timer:
		return metrics.NilTimer{}
	case func() metrics.Gauge:
		return metrics.NilGauge{}
	default:
		return w // a metric itself: whoever made it keeps it
	}
}

func (noMetrics) Each(func(string, any))            {}
func (noMetrics) Get(string) any                    { return nil }
func (noMetrics) GetAll() map[string]map[string]any { return nil }
func (noMetrics) Register(string, any) error        { return nil }
func (noMetrics) RunHealthchecks()                  {}
func (noMetrics) Unregister(string)                 {}
func (noMetrics) UnregisterAll()                    {}
