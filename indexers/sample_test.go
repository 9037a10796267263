package indexers_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCheckMetricSeries verifies the warnings about the cardinality of metrics.
func TestCheckMetricSeries(t *testing.T) {
	const name, class, since = "{name: name, path: .metadata.name}", "{name: class, path: .spec.class}",
		"{name: since, path: .spec.since}"
	tests := map[string]struct {
		metric         string
		objects, total int
		want           string
	}{
		"few values":         {"labels: [" + class + "]", 200, 90_000, ""},
		"no labels":          {"value: {path: .spec.n}", 200, 90_000, ""},
		"no objects":         {"labels: [" + name + "]", 0, 0, ""},
		"one object":         {"limit: 1, labels: [" + name + "]", 1, 0, ""},
		"a series an object": {"labels: [" + name + "]", 200, 9000, ""},
		"above the limit": {"labels: [" + name + "]", 200, 90_000,
			`metric "m" has about 90000 series for 90000 objects, more than its limit of 10000; label "name" has 200 values in 200 objects; use fewer labels, or raise limit`},
		"above the limit in the sample": {"limit: 2, index: class", 200, 0,
			`metric "m" has about 3 series for 200 objects, more than its limit of 2; label "class" has 3 values in 200 objects; use fewer labels, or raise limit`},
		"states": {"limit: 300, labels: [" + name + "], states: {name: s, path: .spec.class, values: [c0, c1]}", 200, 0,
			`metric "m" has about 400 series for 200 objects, more than its limit of 300; label "name" has 200 values in 200 objects; use fewer labels, or raise limit`},
		"an unbounded label": {"labels: [" + class + ", " + since + "]", 200, 0,
			`label "since" of metric "m" has 200 values in 200 objects; use a label with fewer values; for a series of each object, add its name as a label`},
		"too few objects to tell": {"labels: [" + since + "]", 99, 0, ""},
	}
	for reason, tt := range tests {
		t.Run(reason, func(t *testing.T) {
			var sample []*unstructured.Unstructured
			for n := range tt.objects {
				sample = append(sample, &unstructured.Unstructured{Object: map[string]any{
					"metadata": map[string]any{"name": fmt.Sprint("o", n)},
					"spec": map[string]any{"class": fmt.Sprint("c", n%3), "since": fmt.Sprint("t", n),
						"n": int64(n)},
				}})
			}
			got := ""
			for _, w := range metricResource(t, "    - {name: m, help: Help., "+tt.metric+"}").
				CheckMetricSeries(sample, tt.total) {
				got += w.Message + "; " + w.Hint
				if w.Code != "W312" || w.Column != 14 {
					t.Errorf("warning %v, want W312 at the name of the metric", w)
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("warnings (-want +got):\n%s", diff)
			}
		})
	}
}
