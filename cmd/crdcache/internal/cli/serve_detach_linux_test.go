package cli_test

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
)

// TestServeDetach checks that the server outlives the starting command, which returns when the server
// answers.
func TestServeDetach(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	absent := "  - name: others\n    match: {group: example.com, version: v1, resource: others}\n"
	config := writeTempFile(t, "c.yaml", gizmoIndexes+absent)
	detach := func(code int, args ...string) string {
		t.Helper()
		p := newProcess(t, append([]string{"serve", "--detach", "-s", server.URL}, args...)...)
		err := p.Run()
		var failed *exec.ExitError
		if code == cli.ExitOK && err != nil || code != cli.ExitOK &&
			(!errors.As(err, &failed) || failed.ExitCode() != code) {
			t.Fatalf("%v: %s", err, &p.errOut)
		}
		return p.errOut.String()
	}
	if stderr := detach(cli.ExitFailed, "nothing.example.com"); strings.Count(stderr, "error: ") != 1 ||
		!strings.Contains(stderr, "nothing.example.com") {
		t.Errorf("stderr for a missing type: %s", stderr)
	}
	detach(cli.ExitUsage)

	stderr := detach(cli.ExitOK, "--config", config)
	defer func() { // not in Cleanup, because t.Context has ended then
		if r := crdcache(t, "serve", "stop", "-s", server.URL); r.code != cli.ExitOK {
			t.Errorf("serve stop: %+v, want exit code %d", r, cli.ExitOK)
		}
	}()
	for _, want := range []string{"warning: cached when it is installed: ", "others.v1.example.com",
		"serving the cache of " + server.URL, "serves; its log is "} {
		if !strings.Contains(stderr, want) {
			t.Errorf("stderr %s, want %q", stderr, want)
		}
	}
	_, log, _ := strings.Cut(strings.TrimSpace(stderr), "its log is ")
	if info, err := os.Stat(log); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the log %s has the mode %v, %v, want 0600", log, info, err)
	}
	awaitServer(t, server.URL, 1)
	r := crdcache(t, "query", "gz", "-A", "--config", config, "--index", "color=red", "--keys-only", "-v",
		"-s", server.URL)
	if r.code != cli.ExitOK || r.out != "db/c\nweb/a\n" ||
		!strings.Contains(r.errOut, "answered by the cache server") {
		t.Errorf("query: %+v, want the result of the cache server", r)
	}
	if stderr := detach(cli.ExitFailed, "gz"); !strings.Contains(stderr, "another cache server runs") {
		t.Errorf("stderr of a second server: %s", stderr)
	}
}
