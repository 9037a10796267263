package metrics

import (
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// metricWriter writes the metrics of one view, or of the factory.
type metricWriter struct {
	collector *Collector
	metrics   chan<- prometheus.Metric
	// labels are the values of typeLabels.
	labels []string
}

// add writes one value. labels follow typeLabels.
func (s metricWriter) add(m metric, value float64, labels ...string) {
	s.metrics <- prometheus.MustNewConstMetric(s.collector.descriptions[m.name], m.kind, value,
		slices.Concat(s.labels, labels)...)
}

var statuses = []metav1.ConditionStatus{metav1.ConditionTrue, metav1.ConditionFalse, metav1.ConditionUnknown}

func (s metricWriter) condition(state status.Condition) {
	for _, status := range statuses {
		value := 0.0
		if state.Status == status {
			value = 1
		}
		s.add(condition, value, string(state.Type), string(status))
	}
}

func (s metricWriter) memory(m status.MemoryStats) {
	s.add(memoryBudget, float64(m.Budget))
	s.add(memoryUsed, float64(m.Used))
	s.add(memoryCompressible, float64(m.Compressible))
	s.add(overBudget, float64(m.OverBudget))
}

// status writes the number of informers in each state, and the worst time of each kind.
func (s metricWriter) status(statuses []status.Status) {
	type kind struct {
		state  status.State
		reason status.Reason
	}
	counts := map[kind]int{}
	behind, incarnation := 0, 0
	var oldest time.Time
	var slowest time.Duration
	for _, one := range statuses {
		counts[kind{one.State, one.Reason}]++
		if one.Stale {
			behind++
		}
		incarnation = max(incarnation, one.Incarnation)
		if !one.LastContact.IsZero() && (oldest.IsZero() || one.LastContact.Before(oldest)) {
			oldest = one.LastContact
		}
		slowest = max(slowest, one.ListDuration)
	}
	for k, n := range counts {
		s.add(informers, float64(n), string(k.state), string(k.reason))
	}
	s.add(staleMetric, float64(behind))
	s.add(incarnations, float64(incarnation))
	if !oldest.IsZero() {
		s.add(lastContact, float64(oldest.UnixNano())/1e9)
	}
	if slowest > 0 {
		s.add(lastList, slowest.Seconds())
	}
}

func (s metricWriter) writeContent(m status.Metrics) {
	s.add(objects, float64(m.Objects))
	s.add(compressed, float64(m.Compressed))
	s.add(compressedBytes, float64(m.CompressedBytes))
	s.add(memory, float64(m.ObjectBytes), "objects")
	s.add(memory, float64(m.TableBytes), "table")
	s.add(memory, float64(m.IndexBytes), "indexes")
	for _, x := range boundedIndexes(m.Indexes) {
		s.add(indexValues, float64(x.Values), x.Name)
		s.add(indexEntries, float64(x.Entries), x.Name)
	}
}

// counters writes the counters. Counters that every informer can increase start at 0, so that the first event
// shows as an increase. There would be too many series for failures.
func (s metricWriter) counters(c status.Counters) {
	s.add(events, float64(c.Adds), "add")
	s.add(events, float64(c.Updates), "update")
	s.add(events, float64(c.Deletes), "delete")
	s.add(relists, float64(c.Relists.Expired), string(status.RelistExpired))
	s.add(relists, float64(c.Relists.TooLarge), string(status.RelistTooLarge))
	s.add(relists, float64(c.Relists.Restored), string(status.RelistRestored))
	s.add(relists, float64(c.Relists.Failed), string(status.RelistFailed))
	for _, verb := range []string{"list", "watch", "watch-list"} {
		s.add(requestsSent, float64(c.Requests[verb]), verb)
	}
	for kind, n := range c.Failures {
		s.add(failures, float64(n), kind.Verb, string(kind.Reason))
	}
	s.metrics <- prometheus.MustNewConstSummary(s.collector.descriptions[lists.name], uint64(c.Lists),
		c.ListTime.Seconds(), nil, s.labels...)
	s.add(readsMetric, float64(c.Hits), "hit")
	s.add(readsMetric, float64(c.Misses), "miss")
}

func (s metricWriter) handlers(handlers []status.Handler) {
	for _, h := range boundedHandlers(handlers) {
		s.add(queueLength, float64(h.Depth), h.Name)
		s.add(lag, h.Lag.Seconds(), h.Name)
		s.add(coalesced, float64(h.Coalesced), h.Name)
	}
}

// persistence writes the state of persistence, if it is enabled. The oldest save of several informers
// determines the time.
func (s metricWriter) persistence(m status.Metrics) {
	if len(m.Persistence) == 0 {
		return
	}
	counts := map[string]int{"Saved": 0, "Waiting": 0, "Failing": 0}
	var oldest time.Time
	for _, one := range m.Persistence {
		at := one.Checkpoint.Time
		switch {
		case one.Err != nil:
			counts["Failing"]++
		case at.IsZero():
			counts["Waiting"]++
		default:
			counts["Saved"]++
		}
		if !at.IsZero() && (oldest.IsZero() || at.Before(oldest)) {
			oldest = at
		}
	}
	for state, n := range counts {
		s.add(persisted, float64(n), state)
	}
	if !oldest.IsZero() {
		s.add(lastSave, float64(oldest.UnixNano())/1e9)
	}
	s.add(savesMetric, float64(m.Saves))
	s.add(saveFailures, float64(m.SaveFailures))
}
