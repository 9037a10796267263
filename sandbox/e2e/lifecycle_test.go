package e2e

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}
)

// One sandbox for all lifecycle steps, besides the shared one.
func TestLifecycle(t *testing.T) {
	t.Parallel()
	other := status(t, sharedDir(t))
	dir := t.TempDir()
	up(t, dir)
	first := status(t, dir)

	t.Run("two side by side do not clash", func(t *testing.T) {
		ports := map[string]bool{first.Etcd.URL: true, first.APIServer.URL: true, other.Etcd.URL: true,
			other.APIServer.URL: true}
		if len(ports) != 4 || !first.APIServer.Ready || !other.APIServer.Ready {
			t.Errorf("want 4 different ports, all ready:\n%+v\n%+v", first, other)
		}
	})
	t.Run("contexts", func(t *testing.T) { testContexts(t, dir) })
	t.Run("directory in use", func(t *testing.T) {
		r := runSandbox(t, "up", "--dir", dir)
		if r.code != 1 || !strings.Contains(r.stderr, "in use") ||
			!strings.Contains(r.stderr, fmt.Sprint(first.SupervisorPID)) {
			t.Errorf("want exit code 1 and who uses it, got %+v", r)
		}
		if diff := cmp.Diff(first, status(t, dir)); diff != "" {
			t.Errorf("the running sandbox changed (-before +after):\n%s", diff)
		}
	})
	t.Run("kill and restart the API server",
		func(t *testing.T) { testKillAPIServer(t, dir, first.APIServer.URL) })
	t.Run("kill and restart etcd", func(t *testing.T) { testKillEtcd(t, dir) })

	keep := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "keep"},
	}}
	if _, err := client(t, dir, "").Resource(configMaps).Namespace("default").Create(t.Context(), keep,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Run("down", func(t *testing.T) {
		before := status(t, dir)
		mustSandbox(t, "down", "--dir", dir)
		assertNothingLeft(t, before)
		mustSandbox(t, "down", "--dir", dir) // idempotent
		if r := runSandbox(t, "status", "--dir", dir); r.code != 1 ||
			!strings.Contains(r.stderr, "no sandbox is running") {
			t.Errorf("status of a stopped sandbox: %+v", r)
		}
	})
	t.Run("up again has the data", func(t *testing.T) {
		up(t, dir)
		if _, err := client(t, dir, "").Resource(configMaps).Namespace("default").Get(t.Context(), "keep",
			metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
		running := status(t, dir)
		if err := syscall.Kill(running.SupervisorPID, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		assertNothingLeft(t, running)
	})
}

func testContexts(t *testing.T, dir string) {
	if _, err := client(t, dir, "").Resource(namespaces).List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("the current context cannot list: %v", err)
	}
	if _, err := client(t, dir, "sandbox-admin").Resource(namespaces).List(t.Context(),
		metav1.ListOptions{}); err != nil {
		t.Errorf("the admin cannot list: %v", err)
	}
	_, err := client(t, dir, "sandbox-unprivileged").Resource(namespaces).List(t.Context(),
		metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "sandbox-unprivileged") {
		t.Errorf("want the unprivileged user forbidden by name, got %v", err)
	}
}

func testKillAPIServer(t *testing.T, dir, serverURL string) {
	mustSandbox(t, "kill", "apiserver", "--dir", dir)
	dead := status(t, dir)
	if dead.APIServer.Alive || dead.APIServer.PID == 0 || !dead.Etcd.Ready {
		t.Errorf("want a dead API server and a ready etcd, got %+v", dead)
	}
	if !refusesConnections(t, serverURL) {
		t.Errorf("%s does not refuse connections", serverURL)
	}
	mustSandbox(t, "kill", "apiserver", "--dir", dir) // killing a dead component is no error
	mustSandbox(t, "restart", "apiserver", "--dir", dir)
	alive := status(t, dir)
	if !alive.APIServer.Ready || alive.APIServer.URL != serverURL ||
		alive.APIServer.PID == dead.APIServer.PID {
		t.Errorf("want a new process, ready on the same port; before %+v, after %+v", dead, alive)
	}
	if alive.Etcd.PID != dead.Etcd.PID {
		t.Error("etcd was restarted too")
	}
}

func testKillEtcd(t *testing.T, dir string) {
	mustSandbox(t, "kill", "etcd", "--dir", dir)
	if s := status(t, dir); s.Etcd.Alive || s.APIServer.Ready {
		t.Errorf("want etcd dead and the API server not ready, got %+v", s)
	}
	r := runSandbox(t, "restart", "apiserver", "--dir", dir)
	if r.code != 1 || !strings.Contains(r.stderr, "etcd is not running") {
		t.Errorf("an API server cannot start without etcd; got %+v", r)
	}
	mustSandbox(t, "restart", "etcd", "--dir", dir)
	if s := status(t, dir); !s.Etcd.Ready || !s.APIServer.Ready {
		t.Errorf("want both ready, got %+v", s)
	}
}

func TestUpFailures(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	leased := strings.TrimPrefix(status(t, sharedDir(t)).APIServer.URL, "https://127.0.0.1:")
	tests := map[string]struct {
		args []string
		want []string // in stderr
	}{
		"port taken by a stranger": {[]string{"--port", port}, []string{"port " + port + " is taken",
			"address already in use"}},
		"port taken by another sandbox": {[]string{"--port", leased},
			[]string{"port " + leased + " is taken", "another sandbox"}},
		"flag etcd does not know": {[]string{"--etcd-arg", "bogus=1"},
			[]string{"etcd did not start", "etcd.log", "-bogus"}},
		"flag apiserver does not know": {[]string{"--apiserver-arg", "--bogus=1"},
			[]string{"apiserver did not start", "apiserver.log", "unknown flag: --bogus"}},
		"nothing to load": {[]string{"--load", "testdata/nothing"},
			[]string{"testdata/nothing"}},
		"manifest the server turns down": {[]string{"--load", "testdata/rejected"},
			[]string{"objects.yaml (Ghost boo)", "no matches for kind"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			r := runSandbox(t, append([]string{"up", "--dir", dir}, test.args...)...)
			if r.code != 1 || r.stdout != "" {
				t.Errorf("want exit code 1 and no output, got %+v", r)
			}
			for _, want := range test.want {
				if !strings.Contains(r.stderr, want) {
					t.Errorf("stderr lacks %q:\n%s", want, r.stderr)
				}
			}
			if r := runSandbox(t, "status", "--dir", dir); r.code != 1 {
				t.Errorf("a failed start left a sandbox behind: %+v", r)
			}
		})
	}
}

func TestBrokenFilesAreNamed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(file, []byte("a: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := runSandbox(t, "up", "--dir", t.TempDir(), "--load", file)
	if want := "error parsing " + file; r.code != 1 || !strings.Contains(r.stderr, want) {
		t.Errorf("want exit code 1 and %q, got %+v", want, r)
	}
}
