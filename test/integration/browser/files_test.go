package browser_test

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// linkPattern matches the address of a page in crdcache's output.
var linkPattern = regexp.MustCompile(`http://127\.0\.0\.1:\d+/login\?token=\S+`)

// serveFiles runs crdcache serve over files until the test ends and returns a link to its page.
func serveFiles(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.Command(harness.Crdcache(t), append([]string{"serve", "--web"}, args...)...)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt) // the process may have ended
		<-drained
		_ = cmd.Wait() // the exit code is 130
	})
	lines, output := bufio.NewScanner(stderr), ""
	for lines.Scan() && linkPattern.FindString(output) == "" {
		output += lines.Text() + "\n"
		if linkPattern.FindString(output) != "" {
			break
		}
	}
	// ends with the process
	go func() { defer close(drained); _, _ = io.Copy(io.Discard, stderr) }()
	found := linkPattern.FindString(output)
	if found == "" {
		t.Fatalf("no link in the output %s", output)
	}
	return found
}

// TestFiles shows changing files, and a snapshot of them.
func TestFiles(t *testing.T) {
	folder, scratch := t.TempDir(), t.TempDir()
	if err := os.CopyFS(folder, os.DirFS(testdata+"/objects")); err != nil {
		t.Fatal(err)
	}
	crds, config := "--from="+testdata+"/crds", "--config="+testdata+"/indexes/platform.yaml"
	// Both servers must outlive the browser, because the browser reports lost connections as errors.
	snapshotPath := filepath.Join(t.TempDir(), "demo.snapshot")
	if out, err := exec.Command(harness.Crdcache(t), "snapshot", "save", snapshotPath, "--all", crds,
		"--from="+testdata+"/objects").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	snapshotLink := serveFiles(t, "--from="+snapshotPath, config)
	b := openTab(t, serveFiles(t, crds, "--from="+folder, config), 1280, 800)
	b.awaitText(".connection", "Live")
	b.awaitText("#notice", "Files, read on ")
	b.awaitText("#title", "crds and 1 more")
	b.awaitText("#tree", "workloads")
	b.goTo(workloadsPage)
	b.awaitText(".grid-row", "ledger")
	b.awaitText(".index", "environment")
	b.screenshot("type")
	b.goTo("#/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger")
	b.awaitText(".graph .node", "production-eu")
	file := filepath.Join(folder, "20-workloads-payments.yaml")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// The page does not show when the files are watched, so objects change until a change appears.
	for replicas := 40; !strings.Contains(b.text(".changes"), ".spec.replicas"); replicas++ {
		changed := bytes.Replace(text, []byte("  replicas: 6\n"),
			fmt.Appendf(nil, "  replicas: %d\n", replicas), 1)
		if bytes.Equal(changed, text) {
			t.Fatal("the file does not contain the object")
		}
		next := filepath.Join(scratch, "next")
		if err := errors.Join(os.WriteFile(next, changed, 0o600), os.Rename(next, file)); err != nil {
			t.Fatal(err)
		}
		if b.ctx.Err() != nil {
			t.Fatal(b.ctx.Err())
		}
	}
	b.visit(snapshotLink)
	b.awaitText("#notice", "It does not change.")
	b.awaitText("#title", "demo.snapshot")
	b.goTo(workloadsPage)
	b.awaitText(".grid-row", "ledger")
}
