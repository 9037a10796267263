package query

import (
	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers"
)

// MetricSource returns the metrics of a type with a snapshot of its cache, for indexers.ReadMetrics.
func MetricSource(gvr runtimeschema.GroupVersionResource, metrics []*indexers.Metric,
	snapshot Snapshot) indexers.MetricSource {
	source := indexers.MetricSource{Type: gvr, Metrics: metrics,
		Index: func(name string) (indexers.MetricIndex, bool) { return snapshot.Index(name) },
	}
	freshness := snapshot.Freshness()
	source.Synced, source.Stale = freshness.Synced, freshness.Stale
	if counting, ok := snapshot.(interface{ Skipped(index string) uint64 }); ok {
		source.Skipped = counting.Skipped
	}
	return source
}

// Skipped returns the number of values that an index has left out because of their type or a limit.
func (s informerSnapshot) Skipped(index string) uint64 {
	x, ok := s.Snapshot.Index(index)
	if !ok {
		return 0
	}
	if d, ok := x.IndexSet().(interface{ Skipped(index string) uint64 }); ok {
		return d.Skipped(index)
	}
	return 0
}
