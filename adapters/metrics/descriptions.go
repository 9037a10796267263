package metrics

import (
	"slices"

	"github.com/prometheus/client_golang/prometheus"
)

const namespace = "crdcache"

// typeLabels are the labels of metrics about a type. Some metrics have more.
var typeLabels = []string{"group", "version", "resource", "view"}

type metricDefinition struct {
	name, help   string
	kind         prometheus.ValueType // not used for the summary list_duration_seconds
	labels       []string             // after typeLabels
	isPerFactory bool                 // without typeLabels
}

func gauge(name, help string, labels ...string) metricDefinition {
	return metricDefinition{name: name, help: help, kind: prometheus.GaugeValue, labels: labels}
}

func counter(name, help string, labels ...string) metricDefinition {
	return metricDefinition{name: name, help: help, kind: prometheus.CounterValue, labels: labels}
}

func factoryGauge(name, help string, labels ...string) metricDefinition {
	m := gauge(name, help, labels...)
	m.isPerFactory = true
	return m
}

// metricDefinitions are the metrics in the order of docs/operations.md. A test compares both.
var metricDefinitions = []metricDefinition{
	factoryGauge("condition", "1 for the status of a condition of the factory (True, False or Unknown), 0 for the other two.", "condition", "status"),
	gauge("informers", "Number of informers in this state, for this reason. Informers with equal options are counted together.", "state", "reason"),
	gauge("stale_informers", "Number of informers whose cache can be behind the API server."),
	gauge("last_contact_timestamp_seconds", "Unix time of the API server's last answer or event for the type. Missing before the first."),
	gauge("incarnation", "Number of times that the informer has started to follow the type, which can be removed and return."),
	gauge("objects", "Number of cached objects."),
	gauge("compressed_objects", "Number of compressed objects in the cache."),
	gauge("compressed_bytes", "Size of the compressed objects. It is part of memory_bytes."),
	gauge("memory_bytes", "Heap of the cache: objects, the table that finds them by key, and indexes.", "kind"),
	factoryGauge("memory_budget_bytes", "Limit of the heap of all caches of the factory in bytes; 0 without a budget."),
	factoryGauge("memory_used_bytes", "Heap of all caches of the factory."),
	factoryGauge("memory_compressible_bytes", "Heap of the objects that adaptive storage has not compressed."),
	factoryGauge("memory_over_budget_bytes", "Number of bytes by which the caches of the factory exceed their budget."),
	gauge("index_values", "Number of different values of an index.", "index"),
	gauge("index_entries", "Number of objects in an index. An object with several values counts once for each.", "index"),
	counter("events_total", "Number of objects that were added, updated or deleted in the cache.", "event"),
	counter("relists_total", "Number of times that the type was listed again, because a watch could not continue.", "reason"),
	counter("verifications_total", "Number of comparisons of the cache with the server, by result.", "result"),
	counter("requests_total", "Number of list and watch requests.", "verb"),
	counter("request_failures_total", "Number of list and watch requests that failed or were interrupted.", "verb", "reason"),
	gauge("list_duration_seconds", "Duration of lists until the last page, or until the end of the initial events of a watch-list."),
	gauge("last_list_duration_seconds", "Duration of the last list. Missing before the first."),
	gauge("handler_queue_length", "Number of events that wait for an event handler, including the current one.", "handler"),
	gauge("handler_lag_seconds", "Age of the oldest event that an event handler has not handled.", "handler"),
	counter("handler_coalesced_events_total", "Number of events that a handler did not receive, because they were merged with later ones in its queue.", "handler"),
	counter("reads_total", "Number of reads of packed objects with a decoded copy in memory (hit), or without (miss).", "result"),
	gauge("persisted_informers", "Number of persisted informers in this state: Saved, Waiting for the first save, or Failing.", "state"),
	gauge("last_save_timestamp_seconds", "Unix time of the last save of the persisted content. Missing before the first."),
	counter("saves_total", "Number of times that the content or its changes were persisted."),
	counter("save_failures_total", "Number of times that saving or loading the persisted content failed."),
}

// newDesc returns the description. clusterLabels precede typeLabels.
func (m metricDefinition) newDesc(clusterLabels []string, factory string) *prometheus.Desc {
	labels := slices.Concat(clusterLabels, typeLabels, m.labels)
	if m.isPerFactory {
		labels = slices.Concat(clusterLabels, m.labels)
	}
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", m.name), m.help, labels,
		prometheus.Labels{"factory": factory})
}
