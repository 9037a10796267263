package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// metricWriter writes the metrics of a type with one set of options, or of the factory.
type metricWriter struct {
	collector *Collector
	metrics   chan<- prometheus.Metric
	// labels are the cluster in a group, and the values of typeLabels.
	labels []string
}

// add writes one value. labels follow typeLabels.
func (w metricWriter) add(name string, value float64, labels ...string) {
	m := w.collector.descriptions[name]
	w.metrics <- prometheus.MustNewConstMetric(m.desc, m.kind, value, slices.Concat(w.labels, labels)...)
}

func (w metricWriter) writeCondition(condition status.Condition) {
	for _, status := range []metav1.ConditionStatus{"True", "False", "Unknown"} {
		value := 0.0
		if condition.Status == status {
			value = 1
		}
		w.add("condition", value, string(condition.Type), string(status))
	}
}

func (w metricWriter) writeBudget(m status.MemoryStats) {
	w.add("memory_budget_bytes", float64(m.Budget))
	w.add("memory_over_budget_bytes", float64(m.OverBudget))
}

// writeStatus writes the number of informers in each state, and the worst time of each kind.
func (w metricWriter) writeStatus(statuses []status.Status) {
	type stateAndReason struct {
		state  status.State
		reason status.Reason
	}
	counts := map[stateAndReason]int{}
	staleCount, incarnation := 0, 0
	var oldestContact time.Time
	var longestList time.Duration
	for _, current := range statuses {
		counts[stateAndReason{current.State, current.Reason}]++
		if current.Stale {
			staleCount++
		}
		incarnation = max(incarnation, current.Incarnation)
		contact := current.LastContact
		if !contact.IsZero() && (oldestContact.IsZero() || contact.Before(oldestContact)) {
			oldestContact = contact
		}
		longestList = max(longestList, current.ListDuration)
	}
	for k, n := range counts {
		w.add("informers", float64(n), string(k.state), string(k.reason))
	}
	w.add("stale_informers", float64(staleCount))
	w.add("incarnation", float64(incarnation))
	if !oldestContact.IsZero() {
		w.add("last_contact_timestamp_seconds", float64(oldestContact.UnixNano())/1e9)
	}
	if longestList > 0 {
		w.add("last_list_duration_seconds", longestList.Seconds())
	}
}

func (w metricWriter) writeContent(m status.Metrics) {
	w.add("objects", float64(m.Objects))
	w.add("compressed_objects", float64(m.Compressed))
	w.add("compressed_bytes", float64(m.CompressedBytes))
	w.add("memory_bytes", float64(m.ObjectBytes), "objects")
	w.add("memory_bytes", float64(m.TableBytes), "table")
	w.add("memory_bytes", float64(m.IndexBytes), "indexes")
	for _, index := range limitIndexes(m.Indexes) {
		w.add("index_values", float64(index.Values), index.Name)
		w.add("index_entries", float64(index.Entries), index.Name)
	}
}

// writeCounters writes the counters. Counters that every informer can increase start at 0: the first event
// shows as an increase. Failures start without series, because there are many kinds.
func (w metricWriter) writeCounters(c status.Counters) {
	w.add("events_total", float64(c.Adds), "add")
	w.add("events_total", float64(c.Updates), "update")
	w.add("events_total", float64(c.Deletes), "delete")
	w.add("relists_total", float64(c.Relists.Expired), string(status.RelistExpired))
	w.add("relists_total", float64(c.Relists.TooLarge), string(status.RelistTooLarge))
	w.add("relists_total", float64(c.Relists.Restored), string(status.RelistRestored))
	w.add("relists_total", float64(c.Relists.Requested), string(status.RelistRequested))
	w.add("relists_total", float64(c.Relists.Diverged), string(status.RelistDiverged))
	w.add("relists_total", float64(c.Relists.Failed), string(status.RelistFailed))
	w.add("verifications_total", float64(c.Verifications.Equal), "equal")
	w.add("verifications_total", float64(c.Verifications.Diverged), "diverged")
	w.add("verifications_total", float64(c.Verifications.Failed), "failed")
	for _, verb := range []string{"list", "watch", "watch-list"} {
		w.add("requests_total", float64(c.Requests[verb]), verb)
	}
	for kind, n := range c.Failures {
		w.add("request_failures_total", float64(n), kind.Verb, string(kind.Reason))
	}
	w.metrics <- prometheus.MustNewConstSummary(
		w.collector.descriptions["list_duration_seconds"].desc, uint64(c.Lists),
		c.ListTime.Seconds(), nil, w.labels...)
	w.add("reads_total", float64(c.Hits), "hit")
	w.add("reads_total", float64(c.Misses), "miss")
}

func (w metricWriter) writeHandlers(writeHandlers []status.Handler) {
	for _, h := range limitHandlers(writeHandlers) {
		w.add("handler_queue_length", float64(h.Depth), h.Name)
		w.add("handler_lag_seconds", h.Lag.Seconds(), h.Name)
		w.add("handler_coalesced_events_total", float64(h.Coalesced), h.Name)
	}
}

// writePersistence writes the state of persistence, if it is enabled. The time is that of the oldest save.
func (w metricWriter) writePersistence(m status.Metrics) {
	if len(m.Persistence) == 0 {
		return
	}
	counts := map[string]int{"Saved": 0, "Waiting": 0, "Failing": 0}
	var oldest time.Time
	for _, current := range m.Persistence {
		savedAt := current.Checkpoint.Time
		switch {
		case current.Err != nil:
			counts["Failing"]++
		case savedAt.IsZero():
			counts["Waiting"]++
		default:
			counts["Saved"]++
		}
		if !savedAt.IsZero() && (oldest.IsZero() || savedAt.Before(oldest)) {
			oldest = savedAt
		}
	}
	for state, n := range counts {
		w.add("persisted_informers", float64(n), state)
	}
	if !oldest.IsZero() {
		w.add("last_save_timestamp_seconds", float64(oldest.UnixNano())/1e9)
	}
	w.add("saves_total", float64(m.Saves))
	w.add("save_failures_total", float64(m.SaveFailures))
}
