package indexers

import (
	"cmp"
	"encoding/binary"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// ReadMetrics returns the series of all metrics, by name. Series of different sources with the same labels
// are combined. A source that has not synced has no series. The work is proportional to the number of keys
// of the indexes, or of objects with a key for metrics with a series for each object.
//
// It adds families about the metrics themselves:
//   - crdcache_stale, by group, version and resource, is 1 if the series of a type can be behind the server,
//     or are missing, because a cache has not synced or drops a field of them; otherwise it is 0.
//   - crdcache_metric_limited_values, by metric, is the number of values in series with the labels other.
//   - crdcache_metric_skipped_values_total, by metric, counts the values that its index has left out because
//     they are not of the declared type or no numbers, or because a CEL expression failed.
//
// Only one family is in memory at a time.
func ReadMetrics(sources ...MetricSource) iter.Seq[MetricFamily] {
	declared := map[string]bool{}
	for _, source := range sources {
		for _, m := range source.Metrics {
			declared[m.Name] = true
		}
	}
	return func(yield func(MetricFamily) bool) {
		stale, limited, skipped := diagnosticFamilies(sources)
		for _, name := range slices.Sorted(maps.Keys(declared)) {
			r, labels := readFamily(name, sources), []MetricLabel{{"metric", name}}
			limited.Series = append(limited.Series, MetricSeries{labels, float64(r.limited)})
			skipped.Series = append(skipped.Series, MetricSeries{labels, float64(r.skipped)})
			if !yield(r.family) {
				return
			}
		}
		for _, family := range []MetricFamily{limited, skipped, stale} {
			if !yield(family) {
				return
			}
		}
	}
}

func readFamily(name string, sources []MetricSource) *metricReader {
	r := &metricReader{positions: map[string]int{}}
	for _, source := range sources {
		for _, m := range source.Metrics {
			if m.Name != name {
				continue
			}
			if r.family.Name == "" { // the first help text counts
				r.family.Name, r.family.Help = m.Name, m.Help
			}
			if source.Skipped != nil {
				r.skipped += source.Skipped(m.Index.Name)
			}
			if index, ok := source.Index(m.Index.Name); ok && source.Synced {
				r.read(m, index)
			}
		}
	}
	return r
}

// diagnosticFamilies returns the families about metrics, the first one with its series.
func diagnosticFamilies(sources []MetricSource) (stale, limited, skipped MetricFamily) {
	stale = MetricFamily{Name: reservedMetricPrefix + "stale",
		Help: "1 if the metrics of a type can be behind the API server or are missing, otherwise 0."}
	types := map[schema.GroupVersionResource]int{}
	for _, s := range sources {
		position, exists := types[s.Type]
		if !exists {
			position = len(stale.Series)
			types[s.Type] = position
			stale.Series = append(stale.Series, MetricSeries{Labels: []MetricLabel{{"group", s.Type.Group},
				{"resource", s.Type.Resource}, {"version", s.Type.Version}}})
		}
		if s.Stale || !s.Synced {
			stale.Series[position].Value = 1
		}
	}
	return stale, MetricFamily{Name: reservedMetricPrefix + "metric_limited_values",
			Help: "Number of values in series with the labels other, because the metric has reached its limit."},
		MetricFamily{Name: reservedMetricPrefix + "metric_skipped_values_total", Counter: true,
			Help: "Number of values that the metric has left out, because they do not have its type."}
}

// metricReader collects the series of one name.
type metricReader struct {
	*Metric
	family      MetricFamily
	positions   map[string]int // of the series, by identity
	seriesCount int            // number of series of the current metric
	limited     int            // number of values in series with the labels other
	skipped     uint64
	labels      []MetricLabel
	id          []byte
}

func (r *metricReader) read(m *Metric, index MetricIndex) {
	r.Metric, r.seriesCount = m, 0
	if !m.hasValue && !slices.ContainsFunc(m.labels, metricLabel.varies) {
		r.labels = r.labels[:0]
		r.addLabels(nil, "", "")
		r.add(0, 0)
	}
	index.Keys("", "", false, func(key string, count int) bool {
		parts := m.Index.Parts(key)
		if len(parts) != len(m.Index.parts) {
			return true
		}
		if !m.perObject {
			r.addValue(parts, "", "", count)
			return true
		}
		index.Objects(key, func(object string, _ any) bool {
			if name, err := cache.ParseObjectName(object); err == nil {
				r.addValue(parts, name.Namespace, name.Name, 1)
			}
			return true
		})
		return true
	})
}

// varies reports whether objects can differ in the label.
func (l metricLabel) varies() bool { return l.part != noPart || l.object != noField }

func (r *metricReader) addValue(parts []string, namespace, name string, count int) {
	r.labels = r.labels[:0]
	r.addLabels(parts, namespace, name)
	last := ""
	if r.hasValue {
		last = parts[len(parts)-1]
	}
	switch {
	case !r.hasValue:
		r.add(float64(count), 0)
	case r.states == nil:
		value, _ := strconv.ParseFloat(last, 64) // a sum beyond the range is infinite
		r.add(value, count)
	default:
		labels := slices.Clone(r.labels)
		for _, state := range r.states {
			value := 0.0
			if state == last {
				value = float64(count)
			}
			r.labels = append(append(r.labels[:0], labels...), MetricLabel{r.stateLabel, state})
			r.add(value, 0)
		}
	}
}

func (r *metricReader) addLabels(parts []string, namespace, name string) {
	for _, l := range r.Metric.labels {
		value := l.fixed
		switch {
		case l.object == objectName:
			value = name
		case l.object == objectNamespace:
			value = namespace
		case l.part != noPart && parts[l.part] != Null:
			value = parts[l.part]
		}
		if value == "" {
			continue
		}
		if !l.entries {
			r.setLabel(l.name, value)
			continue
		}
		entries := SplitValue(value)
		for n := 0; n+1 < len(entries); n += 2 {
			r.setLabel(labelName(l.name+entries[n]), entries[n+1])
		}
	}
}

// setLabel adds a label unless there is one of this name.
func (r *metricReader) setLabel(name, value string) {
	value = strings.ToValidUTF8(value, "\uFFFD")
	isSet := func(l MetricLabel) bool { return l.Name == name }
	if value != "" && !slices.ContainsFunc(r.labels, isSet) {
		r.labels = append(r.labels, MetricLabel{name, value})
	}
}

// labelName replaces characters that the name of a label cannot have by _. Prometheus reserves names that
// begin with two of them.
func labelName(text string) string {
	if text == "" || text[0] >= '0' && text[0] <= '9' {
		text = "_" + text
	}
	name := strings.Map(func(c rune) rune {
		if c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			return c
		}
		return '_'
	}, text)
	if rest := strings.TrimLeft(name, "_"); len(name)-len(rest) > 1 {
		return "_" + rest
	}
	return name
}

// add combines a value with the series of the current labels. count is the weight of the value in a sum, or 0
// to add it once.
func (r *metricReader) add(value float64, count int) {
	slices.SortFunc(r.labels, func(a, b MetricLabel) int { return cmp.Compare(a.Name, b.Name) })
	position, exists := r.positions[r.identity()]
	if !exists && r.seriesCount >= r.limit {
		r.limited++
		for i := range r.labels {
			if !r.isFixed(r.labels[i].Name) {
				r.labels[i].Value = overflowValue
			}
		}
		position, exists = r.positions[r.identity()]
	}
	combine := combinations[cmp.Or(r.function, "Sum")]
	if count > 0 && r.function == "Sum" {
		value *= float64(count)
	}
	if !exists {
		r.seriesCount++
		r.positions[string(r.id)] = len(r.family.Series)
		r.family.Series = append(r.family.Series, MetricSeries{slices.Clone(r.labels), value})
		return
	}
	s := &r.family.Series[position]
	s.Value = combine(s.Value, value)
}

// identity returns a text that is different for different labels.
func (r *metricReader) identity() string {
	r.id = r.id[:0]
	for _, l := range r.labels {
		r.id = append(append(r.id, l.Name...), 0)
		r.id = append(binary.AppendUvarint(r.id, uint64(len(l.Value))), l.Value...)
	}
	return string(r.id)
}

func (r *metricReader) isFixed(label string) bool {
	return slices.ContainsFunc(r.Metric.labels, func(l metricLabel) bool {
		return l.name == label && !l.varies()
	})
}
