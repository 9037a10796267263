package packaging_test

import (
	"cmp"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
	"sigs.k8s.io/yaml"
)

// dashboard has the fields of a Grafana dashboard that the tests use.
type dashboard struct {
	UID        string  `json:"uid"`
	Title      string  `json:"title"`
	Inputs     []any   `json:"__inputs"`
	Panels     []panel `json:"panels"`
	Templating struct {
		List []struct {
			Name       string `json:"name"`
			Definition string `json:"definition"`
		} `json:"list"`
	} `json:"templating"`
}

type panel struct {
	ID          int                        `json:"id"`
	Type        string                     `json:"type"`
	Title       string                     `json:"title"`
	Description string                     `json:"description"`
	Datasource  struct{ Type, UID string } `json:"datasource"`
	GridPos     struct{ X, Y, W, H int }   `json:"gridPos"`
	Targets     []struct {
		RefID string `json:"refId"`
		Expr  string `json:"expr"`
	} `json:"targets"`
}

// durationVariable matches Grafana variables for durations. Variables in label values parse as they are.
var durationVariable = regexp.MustCompile(`\$__(rate_)?interval`)

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	var d dashboard
	if err := json.Unmarshal([]byte(read(t, monitoring+"dashboard.json")), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboard verifies that every expression parses and uses existing metrics, and every metric is used.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	metricNames := knownMetrics(t)
	usedMetrics := map[string]bool{}
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			for _, name := range metricsOf(t, metricNames, durationVariable.ReplaceAllString(target.Expr,
				"5m")) {
				usedMetrics[name] = true
			}
			// The clusters of a group share its budget.
			if strings.Contains(target.Expr, "$factory") && !strings.Contains(target.Expr, "$cluster") &&
				p.Title != "Are the caches within their budget?" {
				t.Errorf("the panel %q does not select the clusters", p.Title)
			}
		}
	}
	for _, name := range metricNames {
		if !usedMetrics[name] {
			t.Errorf("no panel shows %s", name)
		}
	}
	for _, v := range d.Templating.List {
		if query := regexp.MustCompile(`^label_values\((.*), \w+\)$`).FindStringSubmatch(
			v.Definition); query != nil {
			metricsOf(t, metricNames, query[1])
		} else if v.Name != "datasource" {
			t.Errorf("the variable %s has the definition %q, want label_values", v.Name, v.Definition)
		}
	}
}

// TestPanels verifies that each panel has a question as its title, a description and the selected data
// source, and does not overlap another panel.
func TestPanels(t *testing.T) {
	d := readDashboard(t)
	if d.UID == "" || d.Title == "" || len(d.Inputs) > 0 {
		t.Errorf("the dashboard cannot be provisioned: UID %q, title %q, inputs %v", d.UID, d.Title, d.Inputs)
	}
	ids := map[int]string{}
	panelAt := map[[2]int]string{}
	for _, p := range d.Panels {
		if other, isDuplicate := ids[p.ID]; isDuplicate {
			t.Errorf("the panels %q and %q have the same id", p.Title, other)
		}
		ids[p.ID] = p.Title
		if !strings.HasSuffix(p.Title, "?") {
			t.Errorf("the title %q is not a question", p.Title)
		}
		if p.Type != "row" && (p.Description == "" || p.Datasource.UID != "${datasource}" ||
			len(p.Targets) == 0) {
			t.Errorf("the panel %q has no description, no target or another data source: %+v", p.Title, p)
		}
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other, isDuplicate := panelAt[[2]int{x, y}]; isDuplicate {
					t.Fatalf("the panel %q overlaps %q", p.Title, other)
				}
				panelAt[[2]int{x, y}] = p.Title
			}
		}
		if right := p.GridPos.X + p.GridPos.W; right > 24 {
			t.Errorf("the panel %q ends at column %d, want at most 24", p.Title, right)
		}
	}
}

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

// ruleFile has the fields of a rules file that the tests use.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []rule `json:"rules"`
	} `json:"groups"`
}

type rule struct {
	Alert       string            `json:"alert"`
	Expr        string            `json:"expr"`
	For         string            `json:"for"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
}

func parse(t *testing.T, name string, target any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, name)), target); err != nil {
		t.Fatalf("parsing %s: %v", name, err)
	}
}

// TestEachAlertIsTested verifies that the tests of each alert include one that fires and one that does not.
func TestEachAlertIsTested(t *testing.T) {
	var alertRules ruleFile
	parse(t, monitoring+"alerts.yaml", &alertRules)
	type outcome struct {
		alert string
		fires bool
	}
	seen := map[outcome]bool{}
	for _, test := range readAlertTests(t) {
		for _, rule := range test.Rules {
			seen[outcome{rule.Alert, len(rule.Expected) > 0}] = true
		}
	}
	for _, rule := range alertRules.Groups[0].Rules {
		for _, fires := range []bool{true, false} {
			if !seen[outcome{rule.Alert, fires}] {
				t.Errorf("no test of %s expects that it fires: %v", rule.Alert, fires)
			}
		}
	}
}

// TestManifest compares the rules of prometheusrule.yaml with alerts.yaml.
func TestManifest(t *testing.T) {
	var fileRules ruleFile
	var manifest struct {
		APIVersion string         `json:"apiVersion"`
		Kind       string         `json:"kind"`
		Metadata   map[string]any `json:"metadata"`
		Spec       ruleFile       `json:"spec"`
	}
	parse(t, monitoring+"alerts.yaml", &fileRules)
	parse(t, monitoring+"prometheusrule.yaml", &manifest)
	if manifest.APIVersion != "monitoring.coreos.com/v1" || manifest.Kind != "PrometheusRule" ||
		manifest.Metadata["name"] != "crdcache" {
		t.Errorf("the manifest is %s %s %v, want a PrometheusRule", manifest.APIVersion, manifest.Kind,
			manifest.Metadata)
	}
	if diff := gocmp.Diff(fileRules, manifest.Spec); diff != "" {
		t.Errorf("(-alerts.yaml +prometheusrule.yaml):\n%s", diff)
	}
}

// TestRunbooks verifies that each alert has a severity and a runbook section, and each section has an alert.
func TestRunbooks(t *testing.T) {
	const page = "https://github.com/crdcache/crdcache/blob/main/docs/operations.md#"
	var alertRules ruleFile
	parse(t, monitoring+"alerts.yaml", &alertRules)
	metricNames := knownMetrics(t)
	var alerts, sections []string
	for _, rule := range alertRules.Groups[0].Rules {
		alerts = append(alerts, rule.Alert)
		metricsOf(t, metricNames, rule.Expr)
		if want := page + strings.ToLower(rule.Alert); rule.Annotations["runbook_url"] != want {
			t.Errorf("%s: the runbook is %q, want %q", rule.Alert, rule.Annotations["runbook_url"], want)
		}
		if s := rule.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity = %q, want critical or warning", rule.Alert, s)
		}
		if cmp.Or(rule.Annotations["summary"], rule.For) == "" || rule.Annotations["description"] == "" {
			t.Errorf("%s: the rule has no summary or no description: %+v", rule.Alert, rule)
		}
	}
	for _, match := range regexp.MustCompile("(?m)^### (.*)$").FindAllStringSubmatch(read(t,
		operations), -1) {
		sections = append(sections, match[1])
	}
	slices.Sort(alerts)
	slices.Sort(sections)
	if diff := gocmp.Diff(alerts, sections); diff != "" {
		t.Errorf("sections of %s (-alerts +sections):\n%s", operations, diff)
	}
}
