package lifecycle_test

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/test/integration/harness"
)

// TestReadmeProgram runs the program of README.md before its CRD exists, deletes the CRD and creates it
// again. The program reports the objects without a restart, and logs nothing.
func TestReadmeProgram(t *testing.T) {
	asked, once := make(chan struct{}), sync.Once{}
	config := harness.ConfigThroughProxy(t, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.URL.String(), "workloads") { // or its CRD
				once.Do(func() { close(asked) })
			}
			next.ServeHTTP(w, r)
		})
	})
	program := filepath.Join(t.TempDir(), "informer")
	build := exec.Command("go", "build", "-o", program, "./informer")
	build.Dir = "../../../examples" // a module of its own, if there is no workspace
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+harness.WriteKubeconfig(t, config))
	var logged bytes.Buffer
	cmd.Stderr = &logged
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	expect := func(want string) {
		t.Helper()
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the program prints %q, want %q; its log is %q", lines.Text(), want, logged.String())
		}
	}
	<-asked
	client, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	workloads := client.Resource(schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1",
		Resource: "workloads"}).Namespace(metav1.NamespaceDefault)
	for _, name := range []string{"first", "second"} {
		t.Run(name, func(t *testing.T) { // its end deletes the CRD
			harness.InstallCRDs(t, harness.NewCRD("demo.crdcache.dev", "Workload"))
			created := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "demo.crdcache.dev/v1",
				"kind": "Workload", "metadata": map[string]any{"name": name}}}
			if _, err := workloads.Create(t.Context(), created, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			expect("added default/" + name)
		})
		expect("deleted default/" + name)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	expect("0 workloads are still readable")
	if err := cmd.Wait(); err != nil || logged.Len() > 0 {
		t.Errorf("the program ends with %v and the log %q, want neither", err, logged.String())
	}
}
