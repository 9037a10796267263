//go:build unix

package cli_test

import (
	"bufio"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

const metricsConfig = gizmoIndexes + `    metrics:
    - {name: gizmos, help: "Number of gizmos\\by color.", index: color}
    - name: gizmo_size
      help: Size.
      labels: [{name: name, path: .metadata.name}, {name: odd, value: "a\"\\\n"}]
      value: {path: .spec.size}
`

var metricsAddress = regexp.MustCompile(`http://127\.0\.0\.1:\d+/metrics`)

// TestServeMetrics checks the metrics of a config in the text format.
func TestServeMetrics(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	stderr, stderrWriter := io.Pipe()
	t.Cleanup(func() { stderr.Close() })
	startServe(t, stderrWriter, "--config", writeTempFile(t, "c.yaml", metricsConfig), "--metrics-address", "localhost:0", "-s",
		server.URL)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && metricsAddress.FindString(lines.Text()) == "" {
	}
	address := metricsAddress.FindString(lines.Text())
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with Close
	awaitServer(t, server.URL, 1)
	get := func(host string) (status int, text string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
		must(t, err)
		request.Host = host
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		defer response.Body.Close()
		body, err := io.ReadAll(response.Body)
		must(t, err)
		return response.StatusCode, string(body)
	}
	const want = `# HELP gizmo_size Size.
# TYPE gizmo_size gauge
gizmo_size{name="a",odd="a\"\\\n"} 10
gizmo_size{name="b",odd="a\"\\\n"} 9
gizmo_size{name="c",odd="a\"\\\n"} 100
gizmo_size{name="d",odd="a\"\\\n"} 1
# HELP gizmos Number of gizmos\\by color.
# TYPE gizmos gauge
gizmos{color="blue"} 1
gizmos{color="red"} 2
`
	sorted := func(text string) []string { return slices.Sorted(strings.SplitAfterSeq(text, "\n")) }
	_, text := get("")
	got, own, _ := strings.Cut(text, "# HELP crdcache_")
	if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" || !strings.Contains(own,
		`crdcache_stale{group="example.com",resource="gizmos",version="v1"} 0`) {
		t.Errorf("metrics (-want +got):\n%s\n%s", diff, own)
	}
	if status, text := get("evil.example:80"); status != http.StatusForbidden {
		t.Errorf("a request for another host = %d, want 403: %s", status, text)
	}
	for _, tt := range []struct{ config, address, message string }{
		{metricsConfig, "0.0.0.0:0", "use a loopback address and a port"},
		{gizmoIndexes, "127.0.0.1:0", "there are no metrics to serve"},
		{metricsConfig + "    selectors: {labels: a=b}\n", "127.0.0.1:0", "all objects of a type are served"},
	} {
		r := crdcache(t, "serve", "--config", writeTempFile(t, "c.yaml", tt.config), "--metrics-address", tt.address, "-s",
			"http://127.0.0.1:1")
		if r.code == cli.ExitOK || !strings.Contains(r.errOut, tt.message) {
			t.Errorf("serve at %s: %+v, want %q", tt.address, r, tt.message)
		}
	}
}
