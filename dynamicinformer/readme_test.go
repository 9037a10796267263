package dynamicinformer_test

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestReadmeProgram runs the Go program of the README, so that it can't go stale: it prints every object that
// is there, also when the right to list them is granted only after it has been refused.
func TestReadmeProgram(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(readme), "```go\n")
	snippet, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("README.md has no Go snippet")
	}
	dir := t.TempDir()
	source, program, kubeconfig := filepath.Join(dir, "main.go"), filepath.Join(dir,
		"readme"), filepath.Join(dir, "kubeconfig")
	if err := os.WriteFile(source, []byte(snippet), 0o600); err != nil {
		t.Fatal(err)
	}
	// Run in a folder of the module, go finds the imports of a file anywhere.
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program,
		source).CombinedOutput(); err != nil {
		t.Fatalf("the README's program does not compile: %v\n%s", err, out)
	}

	workloads := schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}
	server := apitest.New(t, apitest.Type{GVR: workloads, Kind: "Workload", Namespaced: true})
	const objects = 1000
	for n := range objects {
		u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "demo.crdcache.dev/v1",
			"kind": "Workload"}}
		u.SetNamespace("web")
		u.SetName(fmt.Sprint("w", n))
		server.Create(t, workloads, u)
	}
	config := fmt.Appendf(nil, `{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}],
  clusters: [{name: c, cluster: {server: %q}}]}`, server.URL)
	if err := os.WriteFile(kubeconfig, config, 0o600); err != nil {
		t.Fatal(err)
	}
	const path = "/apis/demo.crdcache.dev/v1/workloads"
	server.Break(apitest.Fault{Path: path, Status: http.StatusForbidden})
	var out bytes.Buffer
	run := exec.CommandContext(t.Context(), program)
	run.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	run.Stdout, run.Stderr = &out, &out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	server.AwaitRequest(t, path, "list")
	server.Repair()
	err = run.Wait()
	if added := strings.Count(out.String(), "added w"); err != nil || added != objects ||
		!strings.HasSuffix(out.String(), "\n1000 workloads\n") {
		t.Errorf("%v: %d of %d objects are printed:\n%.2000s", err, added, objects, out.String())
	}
}
