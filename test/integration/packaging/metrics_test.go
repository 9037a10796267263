package packaging_test

import (
	"os"
	"regexp"
	"slices"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// monitoring is the folder of the dashboard and the alerts.
const monitoring = "../../../serving/packaging/monitoring/"

// operations is the page that documents the metrics and alerts. A test of the module metrics compares it with
// the code.
const operations = "../../../docs/operations.md"

// objectMetrics is the page that documents the series beside metrics about objects.
const objectMetrics = "../../../docs/metrics.md"

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// knownMetrics returns the names of the collector's series.
func knownMetrics(t *testing.T) []string {
	t.Helper()
	var names []string
	for _, match := range regexp.MustCompile("(?m)^\\| `(crdcache_[a-z_]+)` \\|").FindAllStringSubmatch(
		read(t, operations)+read(t, objectMetrics), -1) {
		names = append(names, match[1])
	}
	if len(names) < 10 {
		t.Fatalf("%s and %s list %d metrics, want at least 10: %q", operations, objectMetrics, len(names), names)
	}
	return names
}

// summaries matches the series _sum and _count of summaries, which have no series with the plain name.
var summaries = regexp.MustCompile("^(crdcache_list_duration_seconds)_(sum|count)$")

// metricsOf returns the metrics in an expression. It fails the test if the expression does not parse or a
// metric does not exist.
func metricsOf(t *testing.T, known []string, expression string) []string {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expression)
	if err != nil {
		t.Errorf("parsing the expression %s: %v", expression, err)
		return nil
	}
	var used []string
	parser.Inspect(parsed, func(n parser.Node, _ []parser.Node) error {
		selector, ok := n.(*parser.VectorSelector)
		if !ok {
			return nil
		}
		for _, m := range selector.LabelMatchers {
			if m.Name == model.MetricNameLabel {
				name := summaries.ReplaceAllString(m.Value, "$1")
				if !slices.Contains(known, name) || name == m.Value && summaries.MatchString(m.Value+"_sum") {
					t.Errorf("%s: the metric %s does not exist", expression, m.Value)
				}
				used = append(used, name)
			}
		}
		return nil
	})
	if len(used) == 0 {
		t.Errorf("the expression %s uses no metric", expression)
	}
	return used
}
