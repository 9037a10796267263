package packaging_test

import (
	"cmp"
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
