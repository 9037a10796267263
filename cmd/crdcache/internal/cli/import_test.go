package cli_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// TestImportStateMetrics checks the positions of parts that cannot be converted or are ignored. Package
// test/integration/statemetrics compares the series.
func TestImportStateMetrics(t *testing.T) {
	const resource = `spec: {resources: [{groupVersionKind: {group: example.com, version: v1, kind: Widget}, metrics: [
{name: m, each: {type: Gauge, gauge: {path: [spec, "a=b", c]}}}
]}]}
`
	const gauge = `{type: Gauge, gauge: {path: [spec, "a=b", c]}}`
	for name, tt := range map[string]struct {
		each    string
		message string
		code    int
	}{
		"without counterpart": {gauge, "2:45: E401: a=b has no counterpart before the end of a path", cli.ExitUsage},
		"a list look-up":      {`{type: Gauge, gauge: {path: ["[a]"]}}`, "E401: [a] is not a list look-up", cli.ExitUsage},
		"an unknown type":     {`{type: Summary}`, "E401: the metric has no type gauge, info or stateSet", cli.ExitUsage},
		"another type":        {`{type: Info, gauge: {path: [a]}}`, "E401: the metric has no each.info", cli.ExitUsage},
		"a wrong value":       {`{type: Gauge, gauge: {path: a}}`, "2:45: E401: the field has a value of the wrong type", cli.ExitUsage},
		"a merge key":         {`{<<: {a: b}}`, "2:18: E401: merge keys are not supported", cli.ExitUsage},
		"an unknown field": {`{type: Gauge, gauge: {path: [a], values: [b]}}`,
			`2:50: W401: kube-state-metrics ignores "values" in gauge`, cli.ExitOK},
		"an info without labels": {`{type: Info, info: {path: [a]}}`, "W401: kube-state-metrics has no series for an info", cli.ExitOK},
		"zero for missing paths": {`{type: Gauge, gauge: {path: [a, b], valueFrom: [c], nilIsZero: true}}`,
			"2:45: W402: a map at this path counts once", cli.ExitOK},
		"states without a label": {`{type: StateSet, stateSet: {path: [a], list: [b]}}`,
			"2:44: W402: a stateSet without labelName is left out", cli.ExitOK},
		"an invalid label": {`{type: Gauge, gauge: {path: [a], labelFromKey: 1st}}`, `E015: the name of a label cannot be "1st"`, cli.ExitUsage},
	} {
		t.Run(name, func(t *testing.T) {
			file := writeTempFile(t, "ksm.yaml", strings.Replace(resource, gauge, tt.each, 1))
			r := crdcache(t, "import", "kube-state-metrics", file)
			if r.code != tt.code || !strings.Contains(r.errOut, tt.message) ||
				(r.code == cli.ExitOK) != (r.out != "") {
				t.Errorf("%+v\nwant code %d and %q", r, tt.code, tt.message)
			}
		})
	}
	config := strings.Replace(resource, gauge, `{type: Gauge, gauge: {path: [a], values: [b]}}`, 1)
	for name, tt := range map[string]struct{ text, message string }{
		"an object of a List":        {"items:\n- " + config, `:3:50: W401`},
		"Helm values":                {"kube-state-metrics: {customResourceState: {config: {" + config + "}}}", `:2:50: W401`},
		"a ConfigMap":                {"data:\n  c.yaml: |\n    " + strings.ReplaceAll(config, "\n", "\n    "), `:4:54: W401`},
		"a text in quotes":           {"data: {a: " + strconv.Quote(config) + "}", `:1:11: W401`},
		"a second document":          {"a: b\n---\n" + config, `:4:50: W401`},
		"any version":                {strings.Replace(config, "version: v1, ", "", 1), "W402: only one version"},
		"no group":                   {strings.Replace(config, "group: example.com, ", "", 1) + "---\n" + config, "W401: kube-state-metrics ignores a resource without"},
		"errorLogV of a metric":      {strings.Replace(config, "{name: m", "{name: m, errorLogV: 3", 1), "W402: nothing is logged"},
		"errorLogV in another place": {strings.Replace(config, "values:", "errorLogV:", 1), `W401: kube-state-metrics ignores "errorLogV"`},
	} {
		r := crdcache(t, "import", "kube-state-metrics", writeTempFile(t, "ksm.yaml", tt.text))
		if r.code != cli.ExitOK || !strings.Contains(r.errOut, tt.message) || !strings.Contains(r.out, "name: kube_customresource_m") {
			t.Errorf("%s: %+v\nwant %s", name, r, tt.message)
		}
	}
	for _, text := range []string{"", "- a", "spec: {resources: a}", "{"} {
		if r := crdcache(t, "import", "kube-state-metrics", writeTempFile(t, "ksm.yaml", text)); r.code != cli.ExitUsage {
			t.Errorf("a config with %q: %+v, want an error", text, r)
		}
	}
}
