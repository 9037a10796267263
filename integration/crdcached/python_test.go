package crdcached_test

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/integration/harness"
)

// TestPythonExample runs examples/python as a user of one namespace. make integration installs Python.
func TestPythonExample(t *testing.T) {
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	s := harness.StartCrdcached(t, "indexConfigs: ['"+testdata+"indexes/platform.yaml']")
	user := harness.NewUser(t, "python")
	user.Grant(t, "payments", rule("get,list,watch", "workloads"))
	client := pythonClient(t, s, user.Config(t))
	const path = demo + "/namespaces/payments/workloads"

	found, err := client(path, "--query", "condition=Ready/False").Output()
	if want := "MATCH payments/card-gateway\nMATCH payments/fraud-model\n"; err != nil || string(found) != want {
		t.Errorf("the query prints\n%s%v, want\n%s", found, err, want)
	}
	if out, err := client(demo + "/workloads").CombinedOutput(); err == nil {
		t.Errorf("a list that the user cannot read printed\n%s", out)
	}

	stdout := startFollower(t, client(path))
	workloads := dynamic.NewForConfigOrDie(harness.Config(t)).Resource(schema.GroupVersionResource{
		Group: group, Version: "v1", Resource: "workloads"}).Namespace("payments")
	all, err := workloads.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	next := func() string {
		lines.Scan()
		return lines.Text()
	}
	var listed []string
	for range all.Items {
		listed = append(listed, next())
	}
	if !slices.Contains(listed, "ADDED payments/ledger") {
		t.Errorf("the list is %q, want payments/ledger", listed)
	}
	if err := workloads.Delete(t.Context(), "refund-worker", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if event := next(); event != "DELETED payments/refund-worker" {
		t.Errorf("the event is %q, want the deletion of refund-worker", event)
	}
}

// TestPythonExampleReconnects verifies that the client reports all changes although requests and watches
// fail.
func TestPythonExampleReconnects(t *testing.T) {
	object := func(name, version string) string {
		return `{"metadata":{"namespace":"n","name":"` + name + `","resourceVersion":"` + version + `"}}`
	}
	list := func(version string, items ...string) string {
		return `{"metadata":{"resourceVersion":"` + version + `"},"items":[` + strings.Join(items, ",") + `]}`
	}
	const abort = http.StatusOK + 1 // ends the connection after the text
	steps := []struct {
		version string // resource version of the watch; empty for a list
		code    int
		body    string
	}{
		{"", http.StatusOK, list("1", object("a", "1"), object("b", "1"))},
		{"1", abort, `{"type":"MODIFIED","object":` + object("a", "2") + "}\n" + `{"type":"DELE`},
		{"2", http.StatusServiceUnavailable, ""},
		{"2", http.StatusOK, `{"type":"ERROR","object":{"code":410,"message":"too old"}}` + "\n"},
		{"", http.StatusInternalServerError, ""},
		{"", http.StatusOK, list("5", object("a", "2"))},
		{"5", http.StatusOK, `{"type":"DELETED","object":` + object("a", "6") + "}\n"},
	}
	var next atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		k := int(next.Add(1)) - 1
		if k >= len(steps) {
			<-r.Context().Done()
			return
		}
		if got := r.URL.Query().Get("resourceVersion"); got != steps[k].version {
			t.Errorf("request %d continues from %q, want %q", k, got, steps[k].version)
		}
		if steps[k].code != abort {
			w.WriteHeader(steps[k].code)
		}
		_, _ = io.WriteString(w, steps[k].body)
		if steps[k].code == abort {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}))
	t.Cleanup(server.Close)
	follower := exec.CommandContext(t.Context(), "python3", "../../examples/python/client.py", "--server", server.URL, "/things")
	follower.Env = append(os.Environ(), "TOKEN=x")
	follower.Stderr = os.Stderr
	lines := bufio.NewScanner(startFollower(t, follower))
	for _, want := range []string{"ADDED n/a", "ADDED n/b", "MODIFIED n/a", "DELETED n/b", "ADDED n/a", "DELETED n/a"} {
		if !lines.Scan() || lines.Text() != want {
			t.Fatalf("the line is %q (%v), want %q", lines.Text(), lines.Err(), want)
		}
	}
}

// pythonClient returns a function that makes a command of the client.
func pythonClient(t *testing.T, s *harness.CrdcachedServer,
	user *rest.Config) func(args ...string) *exec.Cmd {
	t.Helper()
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatalf("%v: install Python 3, as make integration does", err)
	}
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, s.CA, 0o600); err != nil {
		t.Fatal(err)
	}
	return func(args ...string) *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), python, append([]string{
			"../../examples/python/client.py", "--server", s.URL, "--ca-file", ca}, args...)...)
		cmd.Env = append(os.Environ(), "TOKEN="+user.BearerToken)
		cmd.Stderr = os.Stderr
		return cmd
	}
}

// startFollower starts a command that runs until the end of the test, and returns its output.
func startFollower(t *testing.T, follower *exec.Cmd) io.Reader {
	t.Helper()
	stdout, err := follower.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := follower.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = follower.Process.Kill() // the follower runs until the end of the test
		_ = follower.Wait()
	})
	return stdout
}
