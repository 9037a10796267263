package metrics

import (
	"iter"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Options configure a Collector. The zero value is usable.
type Options struct {
	// Name distinguishes the factories of one registry: it is the label factory of all series. Two collectors
	// with one name cannot be registered together. Default: no label.
	Name string
	// OmitEmpty omits types without objects while their informers are synced and current. Use it for caches
	// of many types. Default: all types have series.
	OmitEmpty bool
}

// Collector is a prometheus.Collector for the informers of one factory, or of all factories of a group. It is
// safe for concurrent use. It may be registered in several registries, before Start and after Shutdown.
type Collector struct {
	clusters     iter.Seq2[string, *dynamicinformer.Factory]
	group        *dynamicinformer.Group // nil: one factory, without the label cluster
	omitEmpty    bool
	descriptions map[string]description // by name of the metric
}

type description struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// NewCollector returns a collector for a factory. The last of several options applies.
func NewCollector(factory *dynamicinformer.Factory, options ...Options) *Collector {
	c := &Collector{clusters: func(yield func(string, *dynamicinformer.Factory) bool) { yield("", factory) }}
	return c.withDescriptions(options)
}

// NewGroupCollector returns a collector for the clusters of a group. All series have the label cluster. It is
// empty for the memory budget, which the clusters share. The last of several options applies.
func NewGroupCollector(group *dynamicinformer.Group, options ...Options) *Collector {
	c := &Collector{group: group, clusters: func(yield func(string, *dynamicinformer.Factory) bool) {
		group.All()(yield) // the clusters at the time of the scrape
	}}
	return c.withDescriptions(options)
}

func (c *Collector) withDescriptions(options []Options) *Collector {
	var name string
	if len(options) > 0 {
		name, c.omitEmpty = options[len(options)-1].Name, options[len(options)-1].OmitEmpty
	}
	c.descriptions = map[string]description{}
	for _, m := range metricDefinitions {
		c.descriptions[m.name] = description{m.newDesc(c.clusterLabels("cluster"), validUTF8(name)), m.kind}
	}
	return c
}

// clusterLabels returns the label of a cluster; none without a group.
func (c *Collector) clusterLabels(value string) []string {
	if c.group == nil {
		return nil
	}
	return []string{validUTF8(value)}
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(descriptions chan<- *prometheus.Desc) {
	for _, m := range metricDefinitions {
		descriptions <- c.descriptions[m.name].desc
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(metrics chan<- prometheus.Metric) {
	for cluster, factory := range c.clusters {
		c.collectCluster(cluster, factory, metrics)
	}
	if c.group != nil {
		groupWriter := metricWriter{collector: c, metrics: metrics, labels: c.clusterLabels("")}
		groupWriter.writeBudget(c.group.MemoryStats())
	}
}

func (c *Collector) collectCluster(cluster string, factory *dynamicinformer.Factory,
	metrics chan<- prometheus.Metric) {
	factoryWriter := metricWriter{collector: c, metrics: metrics, labels: c.clusterLabels(cluster)}
	for _, state := range factory.Conditions() {
		factoryWriter.writeCondition(state)
	}
	memory := factory.MemoryStats()
	factoryWriter.add("memory_used_bytes", float64(memory.Used))
	factoryWriter.add("memory_compressible_bytes", float64(memory.Compressible))
	if c.group == nil {
		factoryWriter.writeBudget(memory)
	}
	for _, m := range factory.Metrics() {
		if c.omitEmpty && isEmpty(m) {
			continue
		}
		typeWriter := metricWriter{collector: c, metrics: metrics, labels: slices.Concat(factoryWriter.labels,
			[]string{validUTF8(m.GVR.Group), validUTF8(m.GVR.Version), validUTF8(m.GVR.Resource),
				shortenOptions(m.Options)})}
		typeWriter.writeStatus(m.Status)
		typeWriter.writeContent(m)
		typeWriter.writeCounters(m.Counters)
		typeWriter.writeHandlers(m.Handlers)
		typeWriter.writePersistence(m)
	}
}

// isEmpty reports whether a type has no objects and nothing is wrong with its informers.
func isEmpty(m status.Metrics) bool {
	return m.Objects == 0 && !slices.ContainsFunc(m.Status, func(s status.Status) bool {
		return s.State != status.Synced || s.Stale || s.Reason != ""
	}) && !slices.ContainsFunc(m.Persistence, func(p status.Persistence) bool { return p.Err != nil })
}

// validUTF8 returns text with invalid UTF-8 replaced, as Prometheus requires.
func validUTF8(text string) string { return strings.ToValidUTF8(text, "\uFFFD") }
