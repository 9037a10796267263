//go:build unix

package cli_test

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit"
)

// TestServeReloads verifies that serve applies a changed config. It keeps the previous config if the new one
// is invalid, and shows the error with its position. The stream of the page continues.
func TestServeReloads(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	file, original := writeTempFile(t, "c.yaml", metricsConfig), writeTempFile(t, "original.yaml", metricsConfig)
	stderr, stderrWriter := io.Pipe()
	t.Cleanup(func() { stderr.Close() })
	startServe(t, stderrWriter, "--config", file, "--web", "--metrics-address", "localhost:0", "-s", server.URL)
	lines, address := bufio.NewScanner(stderr), ""
	for lines.Scan() && loginLink.FindString(lines.Text()) == "" {
		address += metricsAddress.FindString(lines.Text())
	}
	b := newBrowser(t, lines.Text())
	awaitLine := func(text string) {
		t.Helper()
		for lines.Scan() {
			if strings.Contains(lines.Text(), text) {
				return
			}
		}
		t.Fatalf("serve printed no %q", text)
	}
	expect := func(status, metric string) {
		t.Helper()
		if r := crdcache(t, "serve", "status", "-s", server.URL); !strings.Contains(r.out, status) {
			t.Errorf("serve status: %s, want %q", r.out, status)
		}
		response, err := http.Get(address)
		must(t, err)
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil ||
			!strings.Contains(string(text), "\ncrdcache_config_last_reload_"+metric) {
			t.Errorf("metrics: %s (%v), want %q", text, err, metric)
		}
	}
	query := func(from, config, index, want string) {
		t.Helper()
		r := crdcache(t, "query", "things", "-A", "--keys-only", "-v", "--config", config, "--index", index, "-s",
			server.URL)
		if r.code != cli.ExitOK || r.out != want || !strings.Contains(r.errOut, from) {
			t.Errorf("query with %s: %+v, want %q and a note with %q", config, r, want, from)
		}
	}
	awaitServer(t, server.URL, 1)
	stream := bufio.NewScanner(b.open("/api/stream?ask=").Body)
	stream.Buffer(nil, 1<<20)
	awaitNotice := func(shown func(data string) bool) { t.Helper(); awaitEvent(t, stream, "types", shown) }
	awaitNotice(func(data string) bool { return !strings.Contains(data, "notice") })
	expect("config: loaded at ", "successful 1")

	testkit.ReplaceFile(t, file, strings.Replace(metricsConfig, "path: .spec.color", "path: '.spec['", 1))
	awaitLine("error: the previous config stays in effect: " + file + ":")
	awaitNotice(func(data string) bool { return strings.Contains(data, file+":") && strings.Contains(data, "E1") })
	expect("the previous config stays in effect: "+file+":", "successful 0")
	query("answered by the cache server", original, "color=red", "db/c\nweb/a\n")

	testkit.ReplaceFile(t, file, strings.Replace(metricsConfig, "resource: gizmos", "resource: gizmo", 1))
	awaitLine("write resource: gizmos")

	testkit.ReplaceFile(t, file, strings.NewReplacer("name: color", "name: shade", "index: color", "index: shade").Replace(metricsConfig))
	awaitLine("note: the config has changed")
	awaitNotice(func(data string) bool { return !strings.Contains(data, "notice") })
	expect("config: loaded at ", "successful 1")
	query("answered by the cache server", file, "shade=red", "db/c\nweb/a\n")
	query("it has other index configs", original, "color=red", "db/c\nweb/a\n")
	go func() { _, _ = io.Copy(io.Discard, stderr) }() // ends with Close
}
