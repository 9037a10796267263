package cli

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

const widgetCRDPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.example.com"

func runCommand(t *testing.T, args ...string) (code int, out, errOut string) {
	t.Helper()
	t.Setenv("KUBECONFIG", "/dev/null")
	return runMain(t, args...)
}

// runMain runs a command line. It can be called concurrently.
func runMain(t *testing.T, args ...string) (code int, out, errOut string) {
	var stdout, stderr bytes.Buffer
	code = Main(t.Context(), append([]string{"crdcache"}, args...), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

func widgetServer(t *testing.T) *apitest.Server {
	t.Helper()
	server := apitest.New(t, apitest.Type{GVR: widgets, Kind: "Widget", Singular: "widget", Namespaced: true})
	server.Create(t, widgets, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "a", "namespace": "default"},
	}})
	return server
}

func TestTimeoutBoundsDiscovery(t *testing.T) {
	server := widgetServer(t)
	server.AddFaults(apitest.Fault{Path: "/apis"})
	code, out, errOut := runCommand(t, "dump", "widgets.example.com", "-s", server.URL, "--timeout", "50ms")
	if code != ExitNotSynced || out != "" {
		t.Errorf("exit code %d and output %q, want %d and no output", code, out, ExitNotSynced)
	}
	want := "error: not synced: the API server at " + server.URL +
		" did not complete discovery within 50ms\n"
	if diff := cmp.Diff(want, errOut); diff != "" {
		t.Errorf("stderr (-want +got):\n%s", diff)
	}
}

// TestThrottledDiscovery checks that every command reports status 429 once, with a remedy.
func TestThrottledDiscovery(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "1")
		http.Error(w, "Too many requests, please try again later.", http.StatusTooManyRequests)
	}))
	defer server.Close()
	var running sync.WaitGroup
	for _, command := range []string{
		"dump widgets", "dump widgets gizmos", "dump widgets/a", "query widgets", "watch widgets",
		"tree widgets/a",
		"stats widgets", "resources", "suggest widgets.example.com", "serve widgets",
		"snapshot save " + filepath.Join(t.TempDir(), "file") + " widgets",
	} {
		running.Go(func() {
			args := append(strings.Fields(command), "-s", server.URL, "--timeout", "3s")
			code, out, errOut := runMain(t, args...)
			if code != ExitNotSynced || out != "" {
				t.Errorf("%s: exit code %d and output %q, want %d and no output", command, code, out, ExitNotSynced)
			}
			if strings.Count(errOut, "TooManyRequests") != 1 || strings.Count(errOut, "--timeout") != 1 {
				t.Errorf("stderr of %s does not name TooManyRequests and --timeout once:\n%s", command, errOut)
			}
		})
	}
	running.Wait()
	_, _, errOut := runMain(t, "dump", "widgets", "-s", server.URL, "--request-timeout", "3s")
	if !strings.Contains(errOut, "TooManyRequests") {
		t.Errorf("the error of a slow request does not name TooManyRequests:\n%s", errOut)
	}
}

func TestWebPageInsteadOfAPIServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = w.Write([]byte("<html>\x1b[31mLog in</html>"))
	}))
	defer server.Close()
	code, out, errOut := runCommand(t, "dump", "widgets", "gadgets", "-s", server.URL)
	if code != ExitFailed || out != "" || strings.Count(errOut, "\n") != 1 ||
		strings.Contains(errOut, "\x1b") {
		t.Errorf("exit code %d, want %d; stdout %q, stderr %q", code, ExitFailed, out, errOut)
	}
}

func TestColumnsThatCannotBeRead(t *testing.T) {
	tests := map[string]struct {
		status, lines int
		tables        bool // the server prints tables
	}{
		"forbidden":              {http.StatusForbidden, 1, false},
		"forbidden, with tables": {http.StatusForbidden, 0, true},
		"failing":                {http.StatusInternalServerError, 1, true},
		"no CRD":                 {http.StatusNotFound, 0, false},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			server := widgetServer(t)
			server.AddFaults(apitest.Fault{Path: widgetCRDPath, Status: tt.status})
			address := server.URL
			if !tt.tables {
				address = newProxyWithoutTables(t, address)
			}
			code, out, errOut := runCommand(t, "dump", "widgets", "-A", "-s", address)
			if code != ExitOK || !strings.HasPrefix(out, "NAMESPACE   NAME   AGE\ndefault     a") {
				t.Errorf("exit code %d, want %d; stdout:\n%s", code, ExitOK, out)
			}
			if strings.Count(errOut, "\n") != tt.lines || tt.lines > 0 &&
				!strings.HasPrefix(errOut, "warning: widgets.v1.example.com is shown with") {
				t.Errorf("want %d warnings on stderr:\n%s", tt.lines, errOut)
			}
		})
	}
}

// newProxyWithoutTables returns the address of a proxy that never requests tables from the server.
func newProxyWithoutTables(t *testing.T, address string) string {
	t.Helper()
	target, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.ErrorLog = log.New(io.Discard, "", 0) // commands cancel their watches
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Accept", "application/json")
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	return server.URL
}

// TestAnonymous verifies that the server's message is printed if discovery is denied.
func TestAnonymous(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","reason":"Forbidden","code":403,
			"message":"forbidden: User \"system:anonymous\" cannot get path \"%s\""}`, r.URL.Path)
	}))
	defer server.Close()
	code, _, errOut := runCommand(t, "dump", "widgets", "-s", server.URL)
	if code != ExitForbidden || !strings.Contains(errOut,
		`User "system:anonymous" cannot get path "/api"`) || strings.Contains(errOut, "unknown") {
		t.Errorf("exit code %d, want %d; stderr %q", code, ExitForbidden, errOut)
	}
}
