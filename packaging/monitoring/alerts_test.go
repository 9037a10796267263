// Package monitoring has a Grafana dashboard and alerts for the metrics of crdcache's informers. It is a
// separate module, because its tests depend on Prometheus' parser and promtool.
package monitoring

import (
	"cmp"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

// ruleFile has the fields of a rules file that the tests use.
type ruleFile struct {
	Groups []struct {
		Name  string `json:"name"`
		Rules []struct {
			Alert       string            `json:"alert"`
			Expr        string            `json:"expr"`
			For         string            `json:"for"`
			Labels      map[string]string `json:"labels"`
			Annotations map[string]string `json:"annotations"`
		} `json:"rules"`
	} `json:"groups"`
}

func parse(t *testing.T, name string, target any) {
	t.Helper()
	if err := yaml.UnmarshalStrict([]byte(read(t, name)), target); err != nil {
		t.Fatalf("parsing %s: %v", name, err)
	}
}

// promtool runs the promtool of promtool.mod. The tag remove_all_sd omits service discovery, which is most of
// the program.
func promtool(t *testing.T, arguments ...string) {
	t.Helper()
	command := append([]string{"run", "-modfile=promtool.mod", "-tags=remove_all_sd",
		"github.com/prometheus/prometheus/cmd/promtool"}, arguments...)
	run := exec.CommandContext(t.Context(), "go", command...)
	run.Env = append(os.Environ(), "GOWORK=off") // required by -modfile
	out, err := run.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(arguments, " "), err, out)
	}
}

// TestAlerts checks the rules and runs their tests with promtool.
func TestAlerts(t *testing.T) {
	promtool(t, "check", "rules", "--lint=all", "--lint-fatal", "alerts.yaml")
	promtool(t, "test", "rules", "alerts_test.yaml")
}

// TestEachAlertIsTested verifies that the tests of each alert include one that fires and one that does not.
func TestEachAlertIsTested(t *testing.T) {
	var alertRules ruleFile
	parse(t, "alerts.yaml", &alertRules)
	var tests struct {
		Tests []struct {
			Rules []struct {
				Alert    string `json:"alertname"`
				Expected []any  `json:"exp_alerts"`
			} `json:"alert_rule_test"`
		} `json:"tests"`
	}
	if err := yaml.Unmarshal([]byte(read(t, "alerts_test.yaml")), &tests); err != nil {
		t.Fatal(err)
	}
	type outcome struct {
		alert string
		fires bool
	}
	seen := map[outcome]bool{}
	for _, test := range tests.Tests {
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
	parse(t, "alerts.yaml", &fileRules)
	parse(t, "prometheusrule.yaml", &manifest)
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
	parse(t, "alerts.yaml", &alertRules)
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

// TestOneVersion verifies that the parser and promtool have the same Prometheus version.
func TestOneVersion(t *testing.T) {
	version := func(file string) string {
		match := regexp.MustCompile(`(?m)github\.com/prometheus/prometheus (v\S+)`).
			FindStringSubmatch(read(t, file))
		if match == nil {
			t.Fatalf("%s does not require Prometheus", file)
		}
		return match[1]
	}
	if library, tool := version("go.mod"), version("promtool.mod"); library != tool {
		t.Errorf("go.mod has the Prometheus version %s, promtool.mod %s, want equal versions", library, tool)
	}
}
