package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/test/testcluster"
)

// TestProgram runs the program, which the README repeats. It prints all objects, even if the permission to
// list them is granted only after the first list.
func TestProgram(t *testing.T) {
	source, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, program, _ := bytes.Cut(source, []byte("\n")) // skip the package comment
	if !bytes.Contains(readme, append([]byte("```go\n"), program...)) {
		t.Error("the program in README.md differs from main.go")
	}

	cluster, err := testcluster.New(t.Context(), testcluster.Options{Paths: []string{"../../testdata/crds"}})
	if err != nil {
		t.Fatal(err)
	}
	const objects = 1000
	for n := range objects {
		err := cluster.Load(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "demo.crdcache.dev/v1", "kind": "Workload",
			"metadata": map[string]any{"namespace": "default", "name": fmt.Sprint("w", n)},
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	cluster.Faults().Add(testcluster.Fault{Match: testcluster.Match{Resource: "workloads"}, Times: 1,
		Effect: testcluster.Status(http.StatusForbidden, metav1.StatusReasonForbidden, "not yet")})
	out := run(t, cluster, objects)
	if added := strings.Count(out, "added default/w"); added != objects ||
		!strings.HasSuffix(out, "\n1000 workloads are still readable\n") {
		t.Errorf("%d of %d objects are printed:\n%.2000s", added, objects, out)
	}
}

// run builds and runs the program with a kubeconfig of the cluster, until it has printed lines.
func run(t *testing.T, cluster http.Handler, lines int) (out string) {
	t.Helper()
	server := httptest.NewServer(cluster)
	t.Cleanup(server.Close)
	dir := t.TempDir()
	program, kubeconfig := filepath.Join(dir, "informer"), filepath.Join(dir, "kubeconfig")
	if out, err := command(t, "go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	text := fmt.Appendf(nil, "{apiVersion: v1, kind: Config, current-context: c, "+
		"contexts: [{name: c, context: {cluster: c}}], clusters: [{name: c, cluster: {server: %q}}]}", server.URL)
	if err := os.WriteFile(kubeconfig, text, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := command(t, program)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	stdout, err := cmd.StdoutPipe()
	if err = errors.Join(err, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	for scanner := bufio.NewScanner(stdout); scanner.Scan(); {
		if out += scanner.Text() + "\n"; strings.Count(out, "\n") == lines {
			_ = cmd.Process.Signal(os.Interrupt) // if it fails, the program does not end
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("running the example: %v", err)
	}
	return out
}

func command(t *testing.T, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(t.Context(), name, args...)
}
