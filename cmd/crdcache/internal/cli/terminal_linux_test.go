package cli_test

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestProgressOnNarrowTerminal checks that the progress line fits a terminal that becomes narrower, and is
// removed.
func TestProgressOnNarrowTerminal(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	server := newCluster(t)
	server.AddFaults(apitest.Fault{Path: gizmosPath})
	terminal := newTerminal(t, 40)
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int)
	var out bytes.Buffer
	go func() { // ended by cancel
		code <- cli.Main(ctx, []string{"crdcache", "dump", "gizmos", "-A", "-s", server.URL}, nil,
			&out, terminal.File)
	}()
	frames := func(n int) func(string) bool {
		return func(output string) bool { return strings.Count(output, "synced 0 of 1 types, ") >= n }
	}
	if err := awaitOutput(t, terminal, frames(1)); err != nil {
		t.Error(err)
	}
	if err := terminal.Resize(20); err != nil {
		t.Error(err)
	}
	if err := awaitOutput(t, terminal,
		func(output string) bool { return strings.Contains(output, "synced 0 of 1 ty...") }); err != nil {
		t.Error(err)
	}
	cancel()
	if got := <-code; got != cli.ExitInterrupted || out.Len() > 0 {
		t.Errorf("exit code %d, want %d; stdout %q", got, cli.ExitInterrupted, out.String())
	}
	output := terminal.Close()
	if screen, err := renderScreen(output, 40); err != nil ||
		strings.Join(screen, "\n") != "error: interrupted\n" {
		t.Errorf("the screen is %[2]q, %[1]v, want only the error", err, screen)
	}
	for frame := range strings.SplitSeq(output, "\r\x1b[K") {
		if len(frame) >= 40 {
			t.Errorf("the progress line %q does not fit 40 columns", frame)
		}
	}
}

// TestProgressGivesWayToWarnings checks that a warning replaces the progress line.
func TestProgressGivesWayToWarnings(t *testing.T) {
	t.Setenv("LC_ALL", "C")
	server := newCluster(t)
	shown := make(chan struct{})
	proxy := newProxy(t, server.URL, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == gizmosPath {
			select {
			case <-shown:
				w.Header().Set("Warning", `299 - "gizmos are old"`)
			case <-r.Context().Done():
			}
		}
	})
	terminal := newTerminal(t, 80)
	code := make(chan int)
	var out bytes.Buffer
	go func() { // ends with the response
		code <- cli.Main(t.Context(), []string{"crdcache", "dump", "gizmos", "-A", "-s", proxy}, nil,
			&out, terminal.File)
	}()
	if err := awaitOutput(t, terminal,
		func(output string) bool { return strings.Contains(output, "synced 0 of 1 types, ") }); err != nil {
		t.Error(err)
	}
	close(shown)
	if got := <-code; got != cli.ExitOK {
		t.Errorf("exit code %d, want %d", got, cli.ExitOK)
	}
	screen, err := renderScreen(terminal.Close(), 80)
	if err != nil || len(screen) != 3 || !strings.HasPrefix(screen[0], "Warning: gizmos are old") ||
		screen[1] != "No resources found" {
		t.Errorf("the screen is %[2]q, %[1]v, want the warning first", err, screen)
	}
}

// newProxy forwards requests after calling intercept, which can set headers.
func newProxy(t *testing.T, target string, intercept func(http.ResponseWriter, *http.Request)) string {
	t.Helper()
	address, err := url.Parse(target)
	must(t, err)
	proxy := httputil.NewSingleHostReverseProxy(address)
	proxy.FlushInterval = -1 // flush immediately, for watches
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		intercept(w, r)
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// awaitOutput waits until the output of a terminal matches.
func awaitOutput(t *testing.T, terminal *testkit.Terminal, isComplete func(output string) bool) error {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	return terminal.Await(ctx, isComplete)
}

// TestSnapshotDiffColors verifies that differences are colored, and that control characters in keys are
// replaced.
func TestSnapshotDiffColors(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	save := func(color string) string {
		file := filepath.Join(t.TempDir(), "a.snapshot")
		from := writeTempFile(t, "a.yaml",
			"{apiVersion: example.com/v1, kind: Gizmo, metadata: {name: a, namespace: web}, spec: {color: "+
				color+"}}")
		crdcache(t, "snapshot", "save", file, "gizmos", "--quiet", "--from", from).expect(t, cli.ExitOK, "")
		return file
	}
	terminal := newTerminal(t, 80)
	code := cli.Main(t.Context(), []string{"crdcache", "diff", save("red"),
		save(`"a\u001b[2Jb"`)}, nil, terminal.File, terminal.File)
	output := terminal.Close()
	if code != cli.ExitFailed || !strings.Contains(output, "\x1b[33m~ web/a\x1b[0m") ||
		strings.Contains(output, "\x1b[2J") || strings.Contains(output, "\uFFFD[33m") {
		t.Errorf("exit code %d, want %d; the terminal shows %q", code, cli.ExitFailed, output)
	}
}

// TestSnapshotToTerminal verifies that a snapshot is not written to a terminal.
func TestSnapshotToTerminal(t *testing.T) {
	from := writeTempFile(t, "a.yaml", gizmoObject)
	terminal := newTerminal(t, 200)
	code := cli.Main(t.Context(), []string{"crdcache", "snapshot", "save", "-", "--all", "--from", from}, nil,
		terminal.File, terminal.File)
	if output := terminal.Close(); code != cli.ExitUsage ||
		!strings.HasPrefix(output, "error: a snapshot is binary") {
		t.Errorf("exit code %d, want %d; the terminal shows %q", code, cli.ExitUsage, output)
	}
}
