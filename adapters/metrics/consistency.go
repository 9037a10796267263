package metrics

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/crdcache/crdcache/dynamicinformer/consistency"
)

// NewConsistencyCollector returns a collector of the two metrics of KEP-5647, with the names that Kubernetes
// uses:
//   - CONTROLLER_stale_sync_skips_total, by group and resource, counts the reconciles that were skipped
//     because a cache was stale.
//   - informer_store_resource_version, by name (the controller), group and resource, has the 15 least
//     significant digits of the resource version of the cache.
//
// The controller must be a valid prefix of a metric name, such as replicaset_controller.
func NewConsistencyCollector(store *consistency.ConsistencyStore, controller string) prometheus.Collector {
	labels := []string{"group", "resource"}
	return &consistencyCollector{store: store,
		skips: prometheus.NewDesc(prometheus.BuildFQName("", controller, "stale_sync_skips_total"),
			"Total number of syncs skipped due to a stale watch cache.", labels, nil),
		version: prometheus.NewDesc("informer_store_resource_version",
			"The 15 least significant digits of the resource version of the store.", labels,
			prometheus.Labels{"name": controller}),
	}
}

type consistencyCollector struct {
	store          *consistency.ConsistencyStore
	skips, version *prometheus.Desc
}

func (c *consistencyCollector) Describe(descriptions chan<- *prometheus.Desc) {
	descriptions <- c.skips
	descriptions <- c.version
}

func (c *consistencyCollector) Collect(metrics chan<- prometheus.Metric) {
	for _, s := range c.store.Stats() {
		group, resource := validUTF8(s.GroupResource.Group), validUTF8(s.GroupResource.Resource)
		metrics <- prometheus.MustNewConstMetric(c.skips, prometheus.CounterValue,
			float64(s.StaleSyncSkips), group, resource)
		digits := s.StoreVersion[max(0, len(s.StoreVersion)-15):]
		if version, err := strconv.ParseFloat(digits, 64); err == nil {
			metrics <- prometheus.MustNewConstMetric(c.version, prometheus.GaugeValue, version,
				group, resource)
		}
	}
}
