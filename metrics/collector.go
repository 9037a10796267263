package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Options configure a Collector. The zero value is usable.
type Options struct {
	// Name distinguishes the factories of one registry: it is the label factory of all series. Two collectors
	// with one name cannot be registered together. Default: no label.
	Name string
}

// Collector is a prometheus.Collector for the informers of one factory. It is safe for concurrent use. It may
// be registered in several registries, before Start and after Shutdown.
type Collector struct {
	factory      *dynamicinformer.Factory
	descriptions map[string]description // by name of the metric
}

type description struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector for a factory. The last of several options applies.
func NewCollector(factory *dynamicinformer.Factory, options ...Options) *Collector {
	var name string
	if len(options) > 0 {
		name = options[len(options)-1].Name
	}
	c := &Collector{factory: factory, descriptions: map[string]description{}}
	for _, m := range allMetrics {
		c.descriptions[m.name] = description{m.describe(validUTF8(name)), m.kind}
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range allMetrics {
		descriptions <- c.descriptions[m.name].desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	perFactory := metricWriter{collector: c, metrics: metrics}
	for _, state := range c.factory.Conditions() {
		perFactory.condition(state)
	}
	perFactory.memory(c.factory.MemoryStats())
	for _, m := range c.factory.Metrics() {
		options := metricWriter{collector: c, metrics: metrics, labels: []string{
			validUTF8(m.GVR.Group), validUTF8(m.GVR.Version), validUTF8(m.GVR.Resource),
			shortenOptions(m.Options),
		}}
		options.status(m.Status)
		options.writeContent(m)
		options.counters(m.Counters)
		options.handlers(m.Handlers)
		options.persistence(m)
	}
}

// validUTF8 returns text with invalid UTF-8 replaced, as Prometheus requires.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
