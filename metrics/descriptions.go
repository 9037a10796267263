package metrics

import (
	"github.com/prometheus/client_golang/prometheus"
)

// namespace is the prefix of all metric names.
const namespace = "crdcache"

// typeLabels are the labels of metrics about a type. Some metrics have more.
var typeLabels = []string{"group", "version", "resource", "view"}

type metric struct {
	name, help string
	kind       prometheus.ValueType
	// labels follow typeLabels. If perFactory is set, the metric describes the factory and has only these
	// labels.
	labels     []string
	perFactory bool
}

// The metrics. A test compares them with docs/operations.md.
var (
	condition = metric{
		name: "condition", kind: prometheus.GaugeValue, labels: []string{"condition", "status"}, perFactory: true,
		help: "Whether a condition of the factory has this status (True, False or Unknown): 1 for the one that it has, 0 for the others.",
	}
	informers = metric{
		name: "informers", kind: prometheus.GaugeValue, labels: []string{"state", "reason"},
		help: "How many informers are in this state, for this reason; a view of a type has one as a rule.",
	}
	staleMetric = metric{
		name: "stale_informers", kind: prometheus.GaugeValue,
		help: "How many informers have a cache that may be behind the API server.",
	}
	lastContact = metric{
		name: "last_contact_timestamp_seconds", kind: prometheus.GaugeValue,
		help: "When the API server last gave a sign of life for the type, as a Unix time; missing before the first.",
	}
	incarnations = metric{
		name: "generation", kind: prometheus.GaugeValue,
		help: "How many times the informer has begun to follow the type, which may go and come back.",
	}
	objects = metric{
		name: "objects", kind: prometheus.GaugeValue,
		help: "How many objects are cached.",
	}
	compressed = metric{
		name: "compressed_objects", kind: prometheus.GaugeValue,
		help: "How many of the cached objects are compressed.",
	}
	compressedBytes = metric{
		name: "compressed_bytes", kind: prometheus.GaugeValue,
		help: "How much heap the compressed objects occupy, which is a part of memory_bytes of kind objects.",
	}
	memoryBudget = metric{
		name: "memory_budget_bytes", kind: prometheus.GaugeValue, perFactory: true,
		help: "Limit of the heap of all caches of the factory in bytes; 0 without a budget.",
	}
	memoryUsed = metric{
		name: "memory_used_bytes", kind: prometheus.GaugeValue, perFactory: true,
		help: "How much heap all caches of the factory occupy.",
	}
	memoryCompressible = metric{
		name: "memory_compressible_bytes", kind: prometheus.GaugeValue, perFactory: true,
		help: "How much of it objects occupy that adaptive storage has not compressed.",
	}
	overBudget = metric{
		name: "memory_over_budget_bytes", kind: prometheus.GaugeValue, perFactory: true,
		help: "By how much the caches of the factory exceed their budget.",
	}
	memory = metric{
		name: "memory_bytes", kind: prometheus.GaugeValue, labels: []string{"kind"},
		help: "How much heap the cache occupies: objects, the table that finds them by their keys, and indexes.",
	}
	indexValues = metric{
		name: "index_values", kind: prometheus.GaugeValue, labels: []string{"index"},
		help: "How many different values an index has.",
	}
	indexEntries = metric{
		name: "index_entries", kind: prometheus.GaugeValue, labels: []string{"index"},
		help: "How many objects an index has, an object with several values once for each.",
	}
	events = metric{
		name: "events_total", kind: prometheus.CounterValue, labels: []string{"event"},
		help: "How many objects were added, updated and deleted in the cache.",
	}
	relists = metric{
		name: "relists_total", kind: prometheus.CounterValue, labels: []string{"reason"},
		help: "How often the type was listed again, because a watch could not go on where it ended.",
	}
	requestsSent = metric{
		name: "requests_total", kind: prometheus.CounterValue, labels: []string{"verb"},
		help: "How many list and watch requests were sent.",
	}
	failures = metric{
		name: "request_failures_total", kind: prometheus.CounterValue, labels: []string{"verb", "reason"},
		help: "How many list and watch requests failed, or broke off.",
	}
	lists = metric{
		name: "list_duration_seconds",
		help: "How long lists took until their last page, or until the initial events of a watch-list were over.",
	}
	lastList = metric{
		name: "last_list_duration_seconds", kind: prometheus.GaugeValue,
		help: "How long the last list took; missing before the first.",
	}
	queueLength = metric{
		name: "handler_queue_length", kind: prometheus.GaugeValue, labels: []string{"handler"},
		help: "How many events wait for an event handler, with the one that it is handling.",
	}
	lag = metric{
		name: "handler_lag_seconds", kind: prometheus.GaugeValue, labels: []string{"handler"},
		help: "How far an event handler is behind the cache: the age of the oldest event that it has not handled.",
	}
	coalesced = metric{
		name: "handler_coalesced_events_total", kind: prometheus.CounterValue, labels: []string{"handler"},
		help: "How many events an event handler did not receive, because they were merged with later ones in its queue.",
	}
	readsMetric = metric{
		name: "reads_total", kind: prometheus.CounterValue, labels: []string{"result"},
		help: "How often a packed object was read while a decoded copy was in memory (hit), or had to be decoded (miss).",
	}
	persisted = metric{
		name: "persisted_informers", kind: prometheus.GaugeValue, labels: []string{"state"},
		help: "How many informers whose content is to be kept beyond the process are in this state: Saved, Waiting for the first save, or Failing.",
	}
	lastSave = metric{
		name: "last_save_timestamp_seconds", kind: prometheus.GaugeValue,
		help: "When the content that is kept was saved, as a Unix time; missing while nothing is kept.",
	}
	savesMetric = metric{
		name: "saves_total", kind: prometheus.CounterValue,
		help: "Number of times that the content or its changes were persisted.",
	}
	saveFailures = metric{
		name: "save_failures_total", kind: prometheus.CounterValue,
		help: "How often keeping the content beyond the process failed, loading included.",
	}
)

// allMetrics are the metrics in the order of docs/operations.md.
var allMetrics = []metric{
	condition, informers, staleMetric, lastContact, incarnations, objects, compressed, compressedBytes,
	memory, memoryBudget,
	memoryUsed, memoryCompressible, overBudget, indexValues, indexEntries, events,
	relists, requestsSent, failures, lists, lastList, queueLength, lag, coalesced, readsMetric,
	persisted, lastSave, savesMetric, saveFailures,
}

func (m metric) describe(factory string) *prometheus.Desc {
	var labels []string
	if !m.perFactory {
		labels = append(labels, typeLabels...)
	}
	return prometheus.NewDesc(prometheus.BuildFQName(namespace, "", m.name), m.help,
		append(labels, m.labels...), prometheus.Labels{"factory": factory})
}
