package indexers

import (
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

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

// Objects implements MetricIndex.
func (s sampledIndex) Objects(key string, yield func(object string, item any) bool) {
	for _, object := range s[key] {
		if !yield(object, nil) {
			return
		}
	}
}

// labelWithMostValues returns the label with the most values.
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
