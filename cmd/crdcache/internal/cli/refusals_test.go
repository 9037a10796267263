package cli_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestResourcesOfNoServer verifies that resources reports a discovery error immediately, regardless of
// --timeout, with the exit code of the cause.
func TestResourcesOfNoServer(t *testing.T) {
	server := newCluster(t)
	server.AddFaults(apitest.Fault{Path: "/api", Status: http.StatusUnauthorized},
		apitest.Fault{Path: "/apis", Status: http.StatusUnauthorized})
	dead := newCluster(t)
	dead.Close()
	tests := map[string]struct {
		args []string
		code int
		want string
	}{
		"dead": {[]string{"-s", dead.URL}, cli.ExitFailed,
			"error: cannot reach the API server at " + dead.URL},
		"no kubeconfig": {[]string{"--kubeconfig", "/dev/null", "-s", "http://localhost:1"},
			cli.ExitFailed, "error: cannot reach the API server at http://localhost:1"},
		"unknown credentials": {[]string{"-s", server.URL}, cli.ExitForbidden, "error: the API server at " +
			server.URL + " does not accept the credentials"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			// without a timeout
			r := crdcache(t, append([]string{"resources", "--timeout", "0"}, tt.args...)...)
			if r.code != tt.code || r.out != "" || !strings.HasPrefix(r.errOut, tt.want) ||
				strings.Count(r.errOut, "\n") != 1 {
				t.Errorf("exit code %d, want %d; stdout %q, stderr %q", r.code, tt.code, r.out, r.errOut)
			}
		})
	}
}

const (
	podsPath     = "/api/v1/pods"
	deniedFormat = `pods is forbidden: User "eve" cannot %s resource "pods" in API group "" at the cluster scope`
)

// TestWatchRefusedList verifies that the server's error for a denied list of tables is printed.
func TestWatchRefusedList(t *testing.T) {
	server := newPodServer(t)
	message := strings.Replace(deniedFormat, "%s", "list", 1)
	server.AddFaults(apitest.Fault{Path: podsPath, Status: http.StatusForbidden, Message: message})
	r := crdcache(t, "watch", "pods", "-A", "-s", server.URL)
	if r.code != cli.ExitForbidden || !strings.Contains(r.errOut, message) ||
		strings.Contains(r.errOut, "meta.k8s.io") {
		t.Errorf("exit code %d, want %d; stderr:\n%s", r.code, cli.ExitForbidden, r.errOut)
	}
}

// TestWatchRefusedWatch verifies that the command ends if the server refuses to watch its only type.
func TestWatchRefusedWatch(t *testing.T) {
	for _, args := range [][]string{{"watch", "gizmos"}, {"dump", "-w", "gizmos"},
		{"watch", "gizmos", "-o", "json"}} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			server := newCluster(t)
			server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
			for _, verb := range []string{"watch", "watch-list"} {
				server.AddFaults(apitest.Fault{Path: gizmosPath, Verb: verb, Status: http.StatusForbidden,
					Message: "gizmos.example.com is forbidden: eve cannot watch"})
			}
			r := crdcache(t, append(args, "-A", "-s", server.URL)...)
			if r.code != cli.ExitForbidden || !strings.Contains(r.out, "web") ||
				!strings.Contains(r.errOut,
					"error: gizmos.example.com can be listed but not watched, so changes cannot be shown; use dump to print the objects: gizmos.example.com is forbidden: eve cannot watch\n") {
				t.Errorf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", r.code, cli.ExitForbidden, r.out,
					r.errOut)
			}
		})
	}
}

// TestWatchRefusedWatchOfOne verifies that if the server refuses to watch one of several types, the command
// warns and watches the other types.
func TestWatchRefusedWatchOfOne(t *testing.T) {
	server := newCluster(t)
	server.Create(t, zones, newObject("Zone", "", "z", nil))
	for _, verb := range []string{"watch", "watch-list"} {
		server.AddFaults(apitest.Fault{Path: gizmosPath, Verb: verb, Status: http.StatusForbidden,
			Message: "eve cannot watch"})
	}
	ctx, cancel := context.WithCancel(t.Context())
	warned := make(chan struct{})
	stderr := &signalingWriter{text: "warning: gizmos.example.com can be listed but not watched",
		textWritten: warned}
	code := make(chan int)
	t.Setenv("KUBECONFIG", "/none")
	go func() { // ends with cancel
		code <- cli.Main(ctx, []string{"crdcache", "watch", "gizmos,zones", "-A", "-s", server.URL}, nil,
			io.Discard, stderr)
	}()
	<-warned
	cancel()
	if got := <-code; got != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d", got, cli.ExitInterrupted)
	}
}

// newPodServer returns a server with a type without a CRD.
func newPodServer(t *testing.T) *apitest.Server {
	t.Helper()
	return apitest.New(t, apitest.Type{GVR: schema.GroupVersionResource{Version: "v1", Resource: "pods"},
		Kind: "Pod", Singular: "pod", Namespaced: true})
}

// signalingWriter is a writer that signals when a text was written.
type signalingWriter struct {
	text        string
	textWritten chan struct{}

	mu      sync.Mutex
	written strings.Builder
}

func (n *signalingWriter) Write(p []byte) (int, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.written.Write(p)
	if n.textWritten != nil && strings.Contains(n.written.String(), n.text) {
		close(n.textWritten)
		n.textWritten = nil
	}
	return len(p), nil
}

// TestResourcesReportWhyTheyWait verifies that after a timeout, the server's last error is printed.
func TestResourcesReportWhyTheyWait(t *testing.T) {
	server := newCluster(t)
	server.AddFaults(apitest.Fault{Path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		Status: http.StatusInternalServerError, Message: "etcd is gone"})
	r := crdcache(t, "resources", "-s", server.URL, "--timeout", "100ms")
	if r.code != cli.ExitNotSynced || !strings.Contains(r.errOut, "within 100ms") ||
		!strings.Contains(r.errOut, "etcd is gone") {
		t.Errorf("exit code %d, want %d; stderr %q", r.code, cli.ExitNotSynced, r.errOut)
	}
}
