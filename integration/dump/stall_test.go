package dump_test

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
)

func widget(group, namespace, name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": group + "/v1", "kind": "Widget",
		"metadata": map[string]any{"namespace": namespace, "name": name},
	}}
}

// stalledServer forwards requests to the API server as the admin, but never answers requests whose path has
// the suffix. stalled is closed at the first such request.
func stalledServer(t *testing.T, suffix string) (address string, stalled <-chan struct{}) {
	t.Helper()
	config := harness.Config(t)
	transport, err := rest.TransportFor(config)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(config.Host)
	if err != nil {
		t.Fatal(err)
	}
	proxy := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(target)
			r.Out.Header.Del("Authorization")
		},
	}
	arrived, done := make(chan struct{}), make(chan struct{})
	arrive := sync.OnceFunc(func() { close(arrived) })
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, suffix) {
			proxy.ServeHTTP(w, r)
			return
		}
		arrive()
		select {
		case <-done:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(done) })
	return server.URL, arrived
}

func TestInterrupt(t *testing.T) {
	for _, tc := range []struct {
		name   string
		suffix string
		signal syscall.Signal
	}{
		{"while syncing", "/namespaces", syscall.SIGINT},
		{"while discovering", "/apis", syscall.SIGINT},
		{"terminated", "/namespaces", syscall.SIGTERM},
	} {
		t.Run(tc.name, func(t *testing.T) {
			address, stalled := stalledServer(t, tc.suffix)
			var stdout, stderr bytes.Buffer
			cmd := command(t, "namespaces", "-o", "json", "--server", address, "--timeout", "0")
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-stalled:
			case <-time.After(patience):
				t.Fatal("the command did not ask")
			}
			if err := cmd.Process.Signal(tc.signal); err != nil {
				t.Fatal(err)
			}
			err := cmd.Wait()
			r := result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
			r.expectError(t, exitInterrupted, "interrupted")
			if err == nil {
				t.Error("the command succeeded")
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	for name, suffix := range map[string]string{"while syncing": "/namespaces",
		"while discovering": "/apis"} {
		t.Run(name, func(t *testing.T) {
			address, _ := stalledServer(t, suffix)
			r := dump(t, "namespaces", "--server", address, "--timeout", "500ms")
			r.expectError(t, exitNotSynced, "")
		})
	}
	t.Run("beside another", func(t *testing.T) {
		address, _ := stalledServer(t, "/configmaps")
		r := dump(t, "configmaps,namespaces", "-A", "-o", "name", "--server", address, "--timeout", "5s")
		expectSame(t, "output", harness.Kubectl(t, "get", "namespaces", "-o", "name"), r.stdout)
		result{stderr: r.stderr, code: r.code}.expectError(t, exitNotSynced, "configmaps")
	})
}
