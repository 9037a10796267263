package cli_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// relistEnv is a variable with the address of a server. It makes the test binary cache the gizmos of the
// server.
const relistEnv = "CRDCACHE_TEST_AS_FILLED"

const relistObjectCount = 10_000

// relistAndReportMemory caches the gizmos. For each line of standard input it lists them again, and writes
// the largest memory of the process so far, in KiB. The kernel can reclaim pages of files, so they do not
// count.
func relistAndReportMemory(url string) int {
	fail := func(err error) int {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	f, err := dynamicinformer.New(dynamicinformer.Options{Config: &rest.Config{Host: url}})
	if err != nil {
		return fail(err)
	}
	i, err := f.ForResource(gizmos)
	if err != nil {
		return fail(err)
	}
	_, err = i.AddEventHandler(dynamicinformer.MetadataOnly(cache.ResourceEventHandlerFuncs{}))
	err = errors.Join(err, f.Start(context.Background()), f.WaitForSync(context.Background()))
	if err != nil {
		return fail(err)
	}
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		err := i.Relist(context.Background())
		status, statusErr := os.ReadFile("/proc/self/status")
		if err := errors.Join(err, statusErr); err != nil {
			return fail(err)
		}
		field := func(name string) (kibibytes int) {
			_, after, _ := strings.Cut(string(status), name+":")
			_, _ = fmt.Sscan(after, &kibibytes) // 0 is an error for the test
			return kibibytes
		}
		fmt.Println(field("VmHWM") - field("RssFile"))
	}
	return 0
}

type limits struct{ Objects, Budget, GoMemoryLimit, ContainerLimit int64 }

// recommendedLimits returns the figures for the gizmos of a server.
func recommendedLimits(t *testing.T, server *apitest.Server, flags ...string) (bytes int64, l limits) {
	t.Helper()
	r := crdcacheSilently(t, append([]string{"stats", "gizmos", "-A", "-s", server.URL, "-o", "json"},
		flags...)...)
	var reports []struct {
		Bytes, Objects int64
		Limits         limits
	}
	if err := json.Unmarshal([]byte(r.out), &reports); err != nil || len(reports) != 1 {
		t.Fatalf("%v: %s", err, r.out)
	}
	return reports[0].Bytes / max(reports[0].Objects, 1), reports[0].Limits
}

// TestLimits verifies that the figures of stats --limit are consistent in each storage mode, and that wrong
// input is refused.
func TestLimits(t *testing.T) {
	server := newTreeServer(t)
	for _, storage := range []string{"packed", "compressed", "object", "metadata"} {
		var before limits
		for _, n := range []int64{0, 1000, 1_000_000} {
			size, l := recommendedLimits(t, server, "--storage", storage, "--limit", strconv.FormatInt(n, 10))
			if want := max(n, 6); l.Objects != want || l.Budget < size*want || l.GoMemoryLimit < l.Budget ||
				l.ContainerLimit < l.GoMemoryLimit*11/10 || l.Budget < before.Budget ||
				l.ContainerLimit < before.ContainerLimit {
				t.Errorf("%s: the limits for %d objects of %d bytes are %+v, want consistent ones above %+v", storage,
					want, size, l, before)
			}
			before = l
		}
	}
	if _, l := recommendedLimits(t, server); l != (limits{}) {
		t.Errorf("the limits without --limit are %+v, want none", l)
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--limit", "-1"}, "--limit is -1: give 0"},
		{[]string{"--limit", "1000000001"}, "at most 1000000000"},
		{[]string{"--limit", "many"}, `invalid argument "many"`},
		{[]string{"--limit", "5", "--storage", "none"}, "need stored objects"},
	} {
		r := crdcache(t, append([]string{"stats", "gizmos", "-A", "-s", server.URL}, test.args...)...)
		if r.code != cli.ExitUsage || !strings.Contains(r.errOut, test.want) {
			t.Errorf("%q: %+v, want %s", test.args, r, test.want)
		}
	}
	for want, args := range map[string][]string{
		"  for 7 objects: memory budget 1.0 MiB, GOMEMLIMIT=25MiB, container limit 68Mi\n": {"--limit", "7"},
		"6 objects, 400 B in storage mode none":                                            {"--storage", "none"},
		"cannot recommend memory limits: no objects are cached":                            {"--limit", "7", "-l", "none=x"},
	} {
		r := crdcacheSilently(t, append([]string{"stats", "gizmos", "-A", "-s", server.URL}, args...)...)
		if r.code != cli.ExitOK || !strings.Contains(r.out, want) {
			t.Errorf("%q: %s, want %s", args, r.out, want)
		}
	}
}

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
