package metrics

import (
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Options configure a Collector. The zero value is usable.
type Options struct {
	// Name tells the factories of one registry apart: it is the label factory of all series. Collectors of
	// the same name cannot be registered together. Default: none, which Prometheus takes for a label that is
	// not there.
	Name string
}

// Collector is a prometheus.Collector of the informers of one factory. It is safe for concurrent use, also
// when it is registered in several registries, before Start and after Shutdown: what has stopped says so.
type Collector struct {
	factory *dynamicinformer.Factory
	// descriptions are those of the metrics, by name.
	descriptions map[string]*prometheus.Desc
}

var _ prometheus.Collector = (*Collector)(nil)

// NewCollector returns a collector for a factory; of several options the last counts.
func NewCollector(factory *dynamicinformer.Factory, options ...Options) *Collector {
	var name string
	if len(options) > 0 {
		name = options[len(options)-1].Name
	}
	c := &Collector{factory: factory, descriptions: map[string]*prometheus.Desc{}}
	for _, m := range all {
		c.descriptions[m.name] = m.describe(valid(name))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range all {
		descriptions <- c.descriptions[m.name]
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	whole := sink{collector: c, metrics: metrics}
	for _, state := range c.factory.Conditions() {
		whole.condition(state)
	}
	whole.memory(c.factory.MemoryStats())
	for _, m := range c.factory.Metrics() {
		view := sink{collector: c, metrics: metrics, labels: []string{
			valid(m.GVR.Group), valid(m.GVR.Version), valid(m.GVR.Resource), shortened(m.View),
		}}
		view.status(m.Status)
		view.content(m)
		view.counters(m.Counters)
		view.handlers(m.Handlers)
		view.persistence(m)
	}
}

// valid returns text as Prometheus takes it for a label.
func valid(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
