package indexers

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Metric is a Prometheus metric about the objects of a resource. Its series are computed from the keys of an
// index, see [ReadMetrics].
type Metric struct {
	Name, Help string
	// Index is an index of the resource, or the metric's own. The keys of its own index have the labels and
	// the value.
	Index *Index

	position  position // of its name
	ownsIndex bool
	labels    []metricLabel
	// hasValue means that the last part of the index is the value, or the state if states is set.
	hasValue   bool
	states     []string
	stateLabel string
	function   string
	limit      int
	// perObject means that each object has its own series, with its name from its key.
	perObject bool
}

// metricLabel is the source of a label.
type metricLabel struct {
	name string
	// part is the number of a part of the index, or noPart.
	part int
	// entries means that the part has the entries of a map. name is a prefix of their labels.
	entries bool
	object  objectField
	fixed   string
}

const noPart = -1

// objectField is a field of an object's key.
type objectField uint8

const (
	noField objectField = iota
	objectName
	objectNamespace
)

// defaultMaxSeries is the default limit of the series of a metric.
const defaultMaxSeries = 10_000

// overflowValue is the value of the labels of the series that combines those beyond the limit.
const overflowValue = "other"

// equals reports whether two metrics have the same series.
func (m *Metric) equals(other *Metric) bool {
	return m.Name == other.Name && m.Help == other.Help && m.Index.Same(other.Index) &&
		slices.Equal(m.labels, other.labels) && slices.Equal(m.states, other.states) &&
		m.stateLabel == other.stateLabel && m.function == other.function && m.limit == other.limit
}

// MetricSource reads the metrics of one type from the indexes of its cache.
type MetricSource struct {
	Type    schema.GroupVersionResource
	Metrics []*Metric
	// Synced reports whether the cache is complete, and Stale whether it can be behind the server.
	Synced, Stale bool
	// Index returns the index with a name. Skipped returns the number of values that it has left out because
	// they do not have its type or exceed a limit, or because a CEL expression failed.
	Index   func(name string) (MetricIndex, bool)
	Skipped func(name string) uint64
}

// MetricIndex is an index of a cache. Its methods are those of query.Index.
type MetricIndex interface {
	Keys(from, to string, descending bool, yield func(key string, count int) bool)
	Objects(key string, yield func(object string, item any) bool)
}

// MetricFamily has the series with a name.
type MetricFamily struct {
	Name, Help string
	// Counter is set for a counter; other families are gauges.
	Counter bool
	Series  []MetricSeries
}

// MetricSeries is a value with its labels, which are sorted by name, unique and not empty. Their texts are
// valid UTF-8.
type MetricSeries struct {
	Labels []MetricLabel
	Value  float64
}

// MetricLabel is a label of a series.
type MetricLabel struct{ Name, Value string }
