package cli_test

import (
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// TestImportStateMetrics checks the positions of parts that cannot be converted or are ignored. Module
// integration/statemetrics compares the series.
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
			"2:45: W402: objects without this path have no series", cli.ExitOK},
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
	for _, text := range []string{"", "- a", "spec: {resources: a}", "{"} {
		if r := crdcache(t, "import", "kube-state-metrics", writeTempFile(t, "ksm.yaml", text)); r.code != cli.ExitUsage {
			t.Errorf("a config with %q: %+v, want an error", text, r)
		}
	}
}
