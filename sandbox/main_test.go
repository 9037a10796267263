package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
)

func TestUpAndDown(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	startSandbox(t, dir)
	first := readPIDs(t, dir)
	if _, err := newClient(t, dir, adminUser).Resource(namespaces).List(t.Context(),
		metav1.ListOptions{}); err != nil {
		t.Errorf("List() as the admin = %v", err)
	}
	_, err := newClient(t, dir, unprivilegedUser).Resource(namespaces).List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), unprivilegedUser) {
		t.Errorf("List() as %s = %v, want a Forbidden error that names the user", unprivilegedUser, err)
	}
	r := runSandbox(t, "up", "--dir", dir)
	if r.code != 1 || !strings.Contains(r.stderr, fmt.Sprintf("in use by the sandbox of process %d", first[0])) {
		t.Errorf("second up = %+v, want exit code 1 and the process that uses the directory", r)
	}
	if readPIDs(t, dir) != first {
		t.Error("a second up changed the running sandbox")
	}
	keep := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "keep"},
	}}
	if _, err := newClient(t, dir, "").Resource(configMaps).Namespace("default").Create(t.Context(), keep,
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	mustRun(t, "down", "--dir", dir)
	assertNothingLeft(t, dir, first)
	mustRun(t, "down", "--dir", dir) // the second down succeeds, too

	startSandbox(t, dir)
	if _, err := newClient(t, dir, "").Resource(configMaps).Namespace("default").Get(t.Context(), "keep",
		metav1.GetOptions{}); err != nil {
		t.Errorf("Get() after the restart = %v, want the stored object", err)
	}
	second := readPIDs(t, dir)
	if err := syscall.Kill(second[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	assertNothingLeft(t, dir, second)
}

func TestControl(t *testing.T) {
	t.Parallel()
	b := startInBackground(t, "control", "--load", "testdata/crds", "--load", "testdata/objects")
	kubeconfig := b.nextLine(t)
	dir := filepath.Dir(kubeconfig)
	first := readPIDs(t, dir)
	c := newClient(t, dir, "").Resource(configMaps).Namespace("printing")
	old, err := c.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}

	b.mustSend(t, "kill apiserver")
	b.mustSend(t, "kill apiserver") // killing a stopped component is not an error
	if _, err := net.Dial("tcp", strings.TrimPrefix(config.Host, "https://")); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("connecting to the killed API server: got the error %v, want a refused connection", err)
	}
	b.mustSend(t, "restart apiserver")
	if now := readPIDs(t, dir); now[2] == first[2] || now[1] != first[1] {
		t.Errorf("want a new API server and the same etcd, got %v after %v", now, first)
	}
	b.mustSend(t, "kill etcd")
	if message := b.send(t, "restart apiserver"); !strings.Contains(message, "etcd is not running") {
		t.Errorf("restart apiserver without etcd printed %q, want an error", message)
	}
	b.mustSend(t, "restart etcd")

	exact := metav1.ListOptions{ResourceVersion: old.GetResourceVersion(),
		ResourceVersionMatch: metav1.ResourceVersionMatchExact}
	if _, err := c.List(t.Context(), exact); err != nil {
		t.Fatalf("exact list before the compaction = %v", err)
	}
	mustRun(t, "fill", "--dir", dir, "--count", "5")
	b.mustSend(t, "compact")
	pollUntil(t, "an exact list expires", func() bool {
		_, err := c.List(t.Context(), exact)
		return apierrors.IsResourceExpired(err)
	})
	b.mustSend(t, "restart apiserver")
	w, err := c.Watch(t.Context(), metav1.ListOptions{ResourceVersion: old.GetResourceVersion()})
	if err == nil {
		defer w.Stop()
		err = apierrors.FromObject((<-w.ResultChan()).Object)
	}
	if !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("want a watch from an old version to expire, got %v", err)
	}
	if message := b.send(t, "kill everything"); !strings.Contains(message, "unknown command") {
		t.Errorf("an unknown command printed %q, want an error", message)
	}

	last := readPIDs(t, dir)
	b.stdin.Close()
	if code := b.awaitExitCode(t); code != 0 {
		t.Errorf("exit code %d\n%s", code, b.stderr)
	}
	assertNothingLeft(t, dir, last)
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the temporary directory was not removed: %v", err)
	}
}

func TestUpFailures(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.yaml")
	if err := os.WriteFile(broken, []byte("a: [\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		args []string
		want []string // in stderr
	}{
		"flag apiserver does not know": {[]string{"--apiserver-arg", "--bogus=1"},
			[]string{"apiserver did not start", "apiserver.log", "unknown flag: --bogus"}},
		"nothing to load": {[]string{"--load", "testdata/nothing"}, []string{"testdata/nothing"}},
		"broken manifest": {[]string{"--load", broken}, []string{"error parsing " + broken}},
		"manifest the server turns down": {[]string{"--load", "testdata/rejected"},
			[]string{"objects.yaml (Ghost boo)", "no matches for kind"}},
		"no programs": {[]string{"--binaries", "testdata"}, []string{"must contain etcd and kube-apiserver"}},
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
			assertUnlocked(t, dir)
		})
	}
}

func TestUpInterruptedWhileStarting(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := startInBackground(t, "up", "--dir", dir)
	pollUntil(t, "the API server starts",
		func() bool { return readPID(directory(dir).pidPath(apiServerName)) != 0 })
	b.signal(t, syscall.SIGTERM)
	if code := b.awaitExitCode(t); code != 1 || !strings.Contains(b.stderr.String(), "interrupted") {
		t.Errorf("exit code %d, stderr %q", code, b.stderr)
	}
	assertUnlocked(t, dir)
}

func TestExecExitCode(t *testing.T) {
	tests := map[string]struct {
		args []string
		code int
	}{
		"the command's own":  {[]string{"--", "sh", "-c", `test -s "$KUBECONFIG" && exit 7`}, 7},
		"no such command":    {[]string{"--", "crdcache-no-such-command"}, 127},
		"the sandbox failed": {[]string{"--load", "testdata/nothing", "--", "true"}, 125},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if r := runSandbox(t, append([]string{"exec"}, test.args...)...); r.code != test.code {
				t.Errorf("want exit code %d, got %+v", test.code, r)
			}
		})
	}
}

// TestExecEnds ends a command with SIGTERM, and its sandbox with SIGKILL. No process may remain.
func TestExecEnds(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		signal syscall.Signal
		code   int
	}{{syscall.SIGTERM, 9}, {syscall.SIGKILL, -1}} {
		b := startInBackground(t, "exec", "--", "sh", "-c",
			`trap 'exit 9' TERM; echo $SANDBOX_DIR; while :; do sleep 0.1; done`)
		dir := b.nextLine(t)
		running := readPIDs(t, dir)
		b.signal(t, test.signal)
		if code := b.awaitExitCode(t); code != test.code {
			t.Errorf("exit code %d, want %d\n%s", code, test.code, b.stderr)
		}
		assertNothingLeft(t, dir, running)
		pollUntil(t, "the temporary directory is deleted", func() bool {
			_, err := os.Stat(dir)
			return errors.Is(err, os.ErrNotExist)
		})
		// Only the command has the other end of the pipe, so the pipe ends with the command.
		if _, err := io.ReadAll(b.stdout); err != nil {
			t.Error(err)
		}
	}
}

func TestLoadedObjectsAreThere(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		if _, err := sharedClient(t).Resource(configMaps).Namespace("printing").Get(t.Context(), name,
			metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	printer, err := sharedClient(t).Resource(schema.GroupVersionResource{Group: "office.example.com", Version: "v1",
		Resource: "printers"}).Get(t.Context(), "hall", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if pages, _, _ := unstructured.NestedInt64(printer.Object, "status", "pages"); pages != 12 {
		t.Errorf("the status was not loaded: %v", printer.Object["status"])
	}
}

func TestExcerptLog(t *testing.T) {
	var long strings.Builder
	for i := range 100 {
		fmt.Fprintf(&long, "line %d\n", i)
	}
	for name, test := range map[string]struct {
		text string
		from int64
		want string
	}{
		"short":                     {"a\nb\n", 0, "  a\n  b"},
		"earlier runs are left out": {"old\nnew\n", 4, "  new"},
		"long": {long.String(), 694, "  line 88\n  line 89\n  line 90\n  line 91\n  line 92\n  line 93\n" +
			"  line 94\n  line 95\n  line 96\n  line 97\n  line 98\n  line 99"},
	} {
		if got := excerptLog(strings.NewReader(test.text), test.from); !strings.HasSuffix(got, test.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, test.want)
		}
	}
	got := excerptLog(strings.NewReader(long.String()+strings.Repeat("x", 5000)), 0)
	if !strings.HasPrefix(got, "  line 0\n  line 1\n  line 2\n  …\n  line 91\n") || len(got) > 500 {
		t.Errorf("the excerpt of a long log = %s, want its first and last lines", got)
	}
}
