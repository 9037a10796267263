//go:build unix

package cli_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// neverReachedWarning is the warning about a cluster, with the time and the cause.
var neverReachedWarning = regexp.MustCompile(
	`warning: gone: the API server has not responded since 2[0-9-]+ [0-9:]+: .*connection refused`)

// TestServeClusters checks that one process caches several clusters. One of them cannot be reached, and two
// contexts have the same cluster and user.
func TestServeClusters(t *testing.T) {
	shortRuntimeDir(t)
	a, b := newIndexedServer(t), newCluster(t)
	b.Create(t, gizmos, newObject("Gizmo", "web", "other", map[string]any{"color": "red"}))
	kubeconfig := writeKubeconfig(t, map[string]string{"a": a.URL, "b/eu": b.URL, "gone": "http://127.0.0.1:1",
		"again": a.URL})
	stderr, stderrWriter := io.Pipe()
	t.Cleanup(func() { stderr.Close() })
	exitCode := startServe(t, stderrWriter, "--config", writeTempFile(t, "c.yaml", metricsConfig),
		"--contexts", "a,b/eu,gone,again",
		"--web", "--metrics-address", "localhost:0", kubeconfig)
	lines := bufio.NewScanner(stderr)
	link, address, warning := "", "", ""
	for (link == "" || address == "" || warning == "") && lines.Scan() {
		if loginLink.MatchString(lines.Text()) {
			link = lines.Text()
		}
		address += metricsAddress.FindString(lines.Text())
		warning += neverReachedWarning.FindString(lines.Text())
	}
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with Close
	// Before 'serve status', which creates more links and invalidates the oldest.
	page := newBrowser(t, link)
	awaitServer(t, a.URL, 1)
	awaitServer(t, b.URL, 1)
	r := crdcache(t, "dump", "gizmos", "-A", "-v", "-o", "name", "--contexts", "a,b/eu", kubeconfig)
	if r.code != cli.ExitOK || !strings.Contains(r.out, "b/eu\tgizmo.example.com/other\n") ||
		strings.Contains(r.errOut, "reading from the cluster") {
		t.Errorf("dump: %+v, want the objects of both caches", r)
	}

	if status := crdcache(t, "serve", "status", "--context", "a",
		kubeconfig); !neverReachedWarning.MatchString(status.out) {
		t.Errorf("serve status: %+v, want the warning about the cluster that was never reached", status)
	}
	stream := bufio.NewScanner(page.open("/clusters/again/api/stream?ask=").Body)
	stream.Buffer(nil, 1<<20)
	unreachable, cached := false, false
	awaitEvent(t, stream, "types", func(data string) bool {
		unreachable = unreachable || strings.Contains(data, `"title":"gone","problem":`)
		cached = cached || strings.Contains(data, `"objects":4`)
		return unreachable && cached
	})
	for path, want := range map[string]string{"/": "4", "/clusters/a/": "4", "/clusters/b%2Feu/": "1"} {
		var table struct{ Total int }
		page.read(path+"api/table?type=gizmos.example.com/v1", &table)
		if fmt.Sprint(table.Total) != want {
			t.Errorf("the table below %s has %d objects, want %s", path, table.Total, want)
		}
	}
	page.get("/clusters/gone/api/health", http.StatusOK)
	response, err := http.Get(address)
	must(t, err)
	defer response.Body.Close()
	metrics, err := io.ReadAll(response.Body)
	must(t, err)
	for _, want := range []string{`gizmos{cluster="a",color="red"} 2`, `gizmos{cluster="b/eu",color="red"} 1`} {
		if !strings.Contains(string(metrics), want) {
			t.Errorf("the metrics are %s, want %s in them", metrics, want)
		}
	}
	if n := strings.Count(string(metrics), "# TYPE gizmos gauge"); n != 1 {
		t.Errorf("the metric gizmos has %d headers, want 1", n)
	}
	crdcache(t, "serve", "stop", "--context", "b/eu", kubeconfig)
	if code := <-exitCode; code != cli.ExitOK {
		t.Errorf("exit code %d, want %d", code, cli.ExitOK)
	}
}
