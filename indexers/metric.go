package indexers

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers/internal/sortkey"
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

type objectField uint8

const (
	noField objectField = iota
	objectName
	objectNamespace
)

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

// MetricIndex is an index of a cache. It has the methods of query.Index.
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

// minSample is the number of objects from which on a label with a value for almost each object is unbounded.
const minSample = 100

// CheckMetricSeries warns about the metrics of the resource that would have more series than their limit, and
// about labels with a value for almost each object, as far as a sample of the objects of a type shows. total
// is the number of all objects, if there are more than in the sample.
func (r *Resource) CheckMetricSeries(sample []*unstructured.Unstructured, total int) (warnings []Diagnostic) {
	total = max(total, len(sample))
	half := len(sample) / 2
	firstHalf, all := r.readSample(sample[:half]), r.readSample(sample)
	for i, metric := range r.Metrics {
		series := len(all[i])
		label, values := labelWithMostValues(all[i])
		if remaining := total - len(sample); remaining > 0 { // the second half shows the growth
			series += (series - len(firstHalf[i])) * remaining / (len(sample) - half)
		}
		hint := fmt.Sprintf("label %q has %d values in %d objects; use fewer labels, or raise limit", label, values,
			len(sample))
		if series > metric.limit {
			warnings = append(warnings, r.file.finding(codeManySeries, metric.position,
				fmt.Sprintf("metric %q has about %d series for %d objects, more than its limit of %d", metric.Name, series,
					total, metric.limit), hint))
		} else if !metric.perObject && len(sample) >= minSample && 10*values >= 9*len(sample) {
			warnings = append(warnings, r.file.finding(codeManySeries, metric.position,
				fmt.Sprintf("label %q of metric %q has %d values in %d objects", label, metric.Name, values, len(sample)),
				"use a label with fewer values; for a series of each object, add its name as a label"))
		}
	}
	return warnings
}

// readSample returns the series of each metric, without limits.
func (r *Resource) readSample(sample []*unstructured.Unstructured) [][]MetricSeries {
	functions := CompileIndexes(r.CacheIndexes()...)
	sampled := map[string]sampledIndex{}
	for _, name := range functions.Names() {
		sampled[name] = sampledIndex{}
	}
	for _, object := range sample {
		for i, keys := range functions.Keys(object) {
			index := sampled[functions.Names()[i]]
			for _, key := range keys {
				index[key] = append(index[key], cache.MetaObjectToName(object).String())
			}
		}
	}
	series := make([][]MetricSeries, len(r.Metrics))
	for i, m := range r.Metrics {
		unlimited := *m
		unlimited.limit = math.MaxInt
		reader := &metricReader{positions: map[string]int{}}
		reader.read(&unlimited, sampled[m.Index.Name])
		series[i] = reader.family.Series
	}
	return series
}

// sampledIndex has the objects of each key of an index.
type sampledIndex map[string][]string

// Keys implements MetricIndex. Series need no order.
func (s sampledIndex) Keys(_, _ string, _ bool, yield func(key string, count int) bool) {
	for key, objects := range s {
		if !yield(key, len(objects)) {
			return
		}
	}
}

func (s sampledIndex) Objects(key string, yield func(object string, item any) bool) {
	for _, object := range s[key] {
		if !yield(object, nil) {
			return
		}
	}
}

func labelWithMostValues(series []MetricSeries) (label string, values int) {
	seen, counts := map[MetricLabel]bool{}, map[string]int{}
	for _, s := range series {
		for _, l := range s.Labels {
			if seen[l] {
				continue
			}
			seen[l] = true
			counts[l.Name]++
			if n := counts[l.Name]; n > values || n == values && l.Name < label {
				label, values = l.Name, n
			}
		}
	}
	return label, values
}

// notNumber replaces a value that is not a number. It is a text that is not a value of any type.
const notNumber = "\x01"

// numbers convert the values of types to decimal numbers: times and durations to seconds, booleans to 0 and
// 1.
var numbers = map[sortkey.Type]func(text string) (string, bool){
	sortkey.Any:      numberFromText,
	sortkey.Int:      sortkey.Int.Canonical,
	sortkey.Number:   sortkey.Number.Canonical,
	sortkey.Quantity: sortkey.Quantity.Canonical,
	sortkey.Bool: func(text string) (string, bool) {
		number, ok := map[string]string{"true": "1", "false": "0"}[text]
		return number, ok
	},
	sortkey.Duration: func(text string) (string, bool) {
		d, ok := sortkey.ParseDuration(text)
		return formatFloat(d.Seconds()), ok
	},
	sortkey.Time: func(text string) (string, bool) {
		canonical, ok := sortkey.Time.Canonical(text)
		t, err := time.Parse(time.RFC3339, canonical)
		return strconv.FormatInt(t.Unix(), 10), ok && err == nil
	},
	sortkey.Date: func(text string) (string, bool) {
		t, err := time.Parse(time.DateOnly, text)
		return strconv.FormatInt(t.Unix(), 10), err == nil
	},
}

// integerPercentPattern is the form of a percentage in Kubernetes.
var integerPercentPattern = newLazyPattern(`^[0-9]+%$`)

// numberFromText converts a text without a declared type as kube-state-metrics does: a number, true, false,
// unknown, yes or no, a time, a quantity, a percentage, or a number in Go's syntax.
func numberFromText(text string) (string, bool) {
	if number, ok := sortkey.Number.Canonical(text); ok {
		return number, true
	}
	switch strings.ToLower(text) {
	case "true", "yes":
		return "1", true
	case "false", "no", "unknown":
		return "0", true
	}
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return strconv.FormatInt(t.Unix(), 10), true
	}
	if integerPercentPattern.compile().MatchString(text) {
		return sortkey.Number.Canonical(strings.TrimSuffix(text, "%") + "e-2")
	}
	if number, ok := sortkey.Quantity.Canonical(text); ok {
		return number, true
	}
	number, err := strconv.ParseFloat(text, 64)
	return formatFloat(number), err == nil && !math.IsInf(number, 0) && !math.IsNaN(number)
}

// combinations combine two values of one function of a metric.
var combinations = map[string]func(a, b float64) float64{
	"Sum": func(a, b float64) float64 { return a + b },
	"Min": func(a, b float64) float64 { return min(a, b) },
	"Max": func(a, b float64) float64 { return max(a, b) },
}

// combineValues combines the values of an object's keys that differ only in their last part, the value.
func (i *Index) combineValues(keys []string) []string {
	if len(keys) < 2 {
		return keys
	}
	type group struct {
		labels []string
		value  float64
	}
	var groups []group
	positions := map[string]int{}
	for _, key := range keys {
		parts := SplitValue(key)
		last := len(parts) - 1
		value, _ := strconv.ParseFloat(parts[last], 64)
		labels := strings.TrimSuffix(key, parts[last])
		n, exists := positions[labels]
		if !exists {
			n = len(groups)
			positions[labels] = n
			groups = append(groups, group{parts[:last], value})
			continue
		}
		groups[n].value = combinations[i.combine](groups[n].value, value)
	}
	for n, g := range groups {
		keys[n] = i.joinKey(append(g.labels, formatFloat(g.value)))
	}
	return keys[:len(groups)]
}
