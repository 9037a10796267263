package metrics

import (
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/indexers"
)

// NewObjectCollector returns a collector for the metrics that an index config declares about objects; see
// indexers.ReadMetrics. sources is usually the method MetricSources of a bind.Binding. It is called at each
// scrape, so that the series follow changes of the config and of the types.
//
// The collector is unchecked, because the config and the labels can change. To register collectors of several
// bindings, distinguish them with prometheus.WrapRegistererWith.
func NewObjectCollector(sources func() []indexers.MetricSource) prometheus.Collector {
	return objectCollector(sources)
}

type objectCollector func() []indexers.MetricSource

func (c objectCollector) Describe(chan<- *prometheus.Desc) {}

func (c objectCollector) Collect(metrics chan<- prometheus.Metric) {
	for family := range indexers.ReadMetrics(c()...) {
		collectFamily(family, metrics)
	}
}

// collectFamily writes the series of a metric. Series with the same names of labels share a description.
func collectFamily(family indexers.MetricFamily, metrics chan<- prometheus.Metric) {
	kind := prometheus.GaugeValue
	if family.Counter {
		kind = prometheus.CounterValue
	}
	descriptions := map[string]*prometheus.Desc{}
	var names, values []string
	for _, series := range family.Series {
		names, values = names[:0], values[:0]
		for _, l := range series.Labels {
			names, values = append(names, l.Name), append(values, l.Value)
		}
		id := strings.Join(names, ",")
		desc := descriptions[id]
		if desc == nil {
			desc = prometheus.NewDesc(family.Name, family.Help, slices.Clone(names), nil)
			descriptions[id] = desc
		}
		m, err := prometheus.NewConstMetric(desc, kind, series.Value, values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(desc, err)
		}
		metrics <- m
	}
}
