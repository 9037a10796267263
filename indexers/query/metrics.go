package query

import (
	"slices"

	runtimeschema "k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/indexers"
)

// MetricSource returns the metrics of a type with a snapshot of its cache, for indexers.ReadMetrics. If the
// cache drops a field that a metric reads, the metric has no series and the source is stale.
func MetricSource(gvr runtimeschema.GroupVersionResource, metrics []*indexers.Metric,
	snapshot Snapshot) indexers.MetricSource {
	freshness := snapshot.Freshness()
	source := indexers.MetricSource{Type: gvr, Synced: freshness.Synced, Stale: freshness.Stale,
		Index: func(name string) (indexers.MetricIndex, bool) { return snapshot.Index(name) },
	}
	for _, m := range metrics {
		_, exists := snapshot.Index(m.Index.Name)
		if !exists || slices.ContainsFunc(m.Index.Fields(), snapshot.Drops) {
			source.Stale = true
			continue
		}
		source.Metrics = append(source.Metrics, m)
	}
	if counting, ok := snapshot.(interface{ Skipped(index string) uint64 }); ok {
		source.Skipped = counting.Skipped
	}
	return source
}
