//go:build unix

package cli_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// syncDuration matches the duration of a sync.
var syncDuration = regexp.MustCompile(`(synced in |"syncTime": ")[0-9.µmns]+`)

// failReads makes the API server reject requests for gizmos and zones, except the cache server's watches.
func failReads(server *apitest.Server) {
	for _, verb := range []string{"list", "watch-list"} {
		for _, path := range []string{"gizmos", "zones"} {
			server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/" + path, Verb: verb,
				Status: http.StatusForbidden})
		}
	}
	for _, path := range []string{"web/gizmos", "db/gizmos", "none/gizmos", "web/gizmos/a",
		"web/gizmos/none"} {
		server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/namespaces/" + path,
			Status: http.StatusForbidden})
	}
}

// TestServeAnswersCommands compares the output with and without a cache server, and checks that cached types
// are not requested from the API server.
func TestServeAnswersCommands(t *testing.T) {
	shortRuntimeDir(t)
	server := newTreeServer(t)
	config := writeTempFile(t, "c.yaml", treeConfig)
	startServe(t, io.Discard, "gz", "zones", "-s", server.URL)
	awaitServer(t, server.URL, 2)
	commands := [][]string{
		{"dump", "gz", "-A"}, {"dump", "gz", "-A", "-o", "wide", "--show-labels"}, {"dump", "gz", "-n", "db",
			"-o", "csv"}, {"dump", "gz", "-n", "none"},
		{"dump", "gz", "-A", "-o", "json", "--show-managed-fields"}, {"dump", "gz,zones", "-A", "-o",
			"yaml"}, {"dump", "gz", "-A", "-o", "jsonl", "--sort-by", ".spec.zone"},
		{"dump", "gz", "zones", "-A", "-o", "name"}, {"dump", "gz/a", "-n", "web", "-o", "yaml"}, {"dump",
			"gz", "a", "none", "-n", "web"}, {"dump", "zone/none"},
		{"dump", "gz", "-A", "-l", "none=x"}, {"dump", "gz", "-A", "-o", "name", "--field-selector",
			"metadata.name=b"}, {"dump", "*.example.com", "-A", "-o", "name"},
		{"stats", "gz", "-A", "-o", "json"}, {"stats", "gz", "zones", "-A", "--config", config,
			"--storage", "metadata"},
		{"tree", "gz/a", "-n", "web", "-o", "json", "--types", "gz,zones"}, {"tree", "zone", "north", "-o",
			"json", "--config", config, "--types", "gz"},
		{"query", "gz", "-A", "--config", config, "--dangling"}, {"query", "gz", "-A", "--config", config,
			"--where", "@.spec.zone", "-o", "name"},
	}
	wants := make([]result, len(commands))
	for i, args := range commands {
		commands[i] = append(args, "-s", server.URL)
		wants[i] = crdcache(t, append(commands[i], "--cache", "none")...)
	}
	failReads(server)
	for i, args := range commands {
		want, got, verbose := wants[i], crdcache(t, args...), crdcache(t, append(args, "-v")...)
		for _, r := range []*result{&want, &got, &verbose} {
			r.out = syncDuration.ReplaceAllString(r.out, "$1")
		}
		if got != want {
			t.Errorf("%q with the cache server: %+v, want the same as without it: %+v", args, got, want)
		}
		if !strings.Contains(verbose.errOut, "is read from the cache server") || verbose.out != want.out {
			t.Errorf("%q with -v: %+v, want the cluster's output and a note about the cache server", args,
				verbose)
		}
	}
}

// TestServeAnswersBuiltinTables checks that a query of a built-in type requests only the rows of the matching
// objects, or of their namespaces if there are many.
func TestServeAnswersBuiltinTables(t *testing.T) {
	shortRuntimeDir(t)
	server := apitest.New(t, apitest.ConfigMaps)
	configMap := func(namespace, name string) *unstructured.Unstructured {
		o := newObject("ConfigMap", namespace, name, nil)
		o.SetAPIVersion("v1")
		o.SetCreationTimestamp(metav1.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC)) // so that the age is stable
		return o
	}
	for i := range 101 {
		server.Create(t, apitest.ConfigMaps.GVR, configMap("many", fmt.Sprint("m", i)))
	}
	server.Create(t, apitest.ConfigMaps.GVR, configMap("web", "a"), configMap("web", "b"), configMap("db", "a"))
	startServe(t, io.Discard, "configmaps", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	server.AwaitRequest(t, "/api/v1/configmaps", "watch")
	tests := []struct {
		args     []string
		requests []string // without the parameters
	}{
		{[]string{"-A", "--where", "@.metadata.name == \"c\""}, nil},
		{[]string{"-A", "--where", "@.metadata.name == \"a\"", "--sort-by", "namespace desc"},
			[]string{"get /api/v1/namespaces/db/configmaps/a", "get /api/v1/namespaces/web/configmaps/a"}},
		{[]string{"-n", "db", "-o", "csv"}, []string{"get /api/v1/namespaces/db/configmaps/a"}},
		{[]string{"-n", "many", "--show-labels"}, []string{"list /api/v1/namespaces/many/configmaps"}},
		{[]string{"-A", "-o", "json"}, nil},
	}
	command := func(args ...string) []string {
		return append([]string{"query", "configmaps", "-s", server.URL}, args...)
	}
	results := make([]result, len(tests))
	for i, tt := range tests {
		before := len(server.Requests())
		results[i] = crdcache(t, command(tt.args...)...)
		var requests []string
		for _, request := range server.Requests()[before:] {
			if path, _, _ := strings.Cut(request, "?"); strings.Contains(path, "configmaps") {
				requests = append(requests, path)
			}
		}
		slices.Sort(requests)
		if diff := cmp.Diff(tt.requests, requests); diff != "" {
			t.Errorf("%q: requests (-want +got):\n%s", tt.args, diff)
		}
	}
	for i, tt := range tests { // without a cache server, the commands leave watches open
		if want := crdcache(t, command(append(tt.args, "--cache", "none")...)...); results[i] != want {
			t.Errorf("%q with the cache server: %+v, want the same as without it: %+v", tt.args, results[i], want)
		}
	}
	// The tests below are for users who can list but not get.
	server.AddFaults(apitest.Fault{Path: "/api/v1/namespaces/db/configmaps/a", Status: http.StatusForbidden})
	args := command("-n", "db")
	if want, got := crdcache(t, append(args, "--cache", "none")...), crdcache(t, args...); got != want {
		t.Errorf("query with the cache server: %+v, want the same as without it: %+v", got, want)
	}
}

// TestServeAnswersWatch checks that a watch through the cache server continues at the cluster when the cache
// server stops.
func TestServeAnswersWatch(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	stopped := startServe(t, io.Discard, "gz", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	failReads(server)
	w := watchGizmos(t, "gz", "-n", "web", "--no-headers", "-s", server.URL)
	for _, want := range []string{"ADDED a red", "ADDED b blue"} {
		if got := w.nextOutput(); got != want {
			t.Errorf("the watch printed %q, want %q", got, want)
		}
	}
	server.Create(t, gizmos, newObject("Gizmo", "web", "e", map[string]any{"color": "green"}))
	if got := w.nextOutput(); got != "ADDED e green" {
		t.Errorf("the watch printed %q, want ADDED e green", got)
	}
	server.Repair()
	crdcache(t, "serve", "stop", "-s", server.URL)
	if code := <-stopped; code != cli.ExitOK {
		t.Errorf("the server ended with exit code %d, want 0", code)
	}
	server.Update(t, gizmos, newObject("Gizmo", "web", "e", map[string]any{"color": "black"}))
	if got := w.nextOutput(); got != "MODIFIED e black" {
		t.Errorf("after the end of the server, got the line %q, want MODIFIED e black", got)
	}
	w.stop()
	if code := <-w.code; code != cli.ExitInterrupted {
		t.Errorf("exit code %d, want %d; stderr %q", code, cli.ExitInterrupted, w.errOut)
	}
}

// TestCachePath verifies that --cache selects a cache server by its socket, which must exist and match the
// cluster and user.
func TestCachePath(t *testing.T) {
	shortRuntimeDir(t)
	server, other := newIndexedServer(t), newIndexedServer(t)
	startServe(t, io.Discard, "gz", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	_, socket, _ := strings.Cut(crdcache(t, "serve", "status", "-s", server.URL).out, "socket: ")
	socket, _, _ = strings.Cut(socket, "\n")
	shortRuntimeDir(t) // a folder without a server
	args := []string{"dump", "gz", "-A", "-o", "name", "-v"}
	if r := crdcache(t, append(args, "--cache", socket, "-s", server.URL)...); r.code != cli.ExitOK ||
		!strings.Contains(r.errOut, "from the cache server") {
		t.Errorf("dump with --cache: %+v, want objects from the cache server", r)
	}
	if r := crdcache(t, append(args, "-s", server.URL)...); r.code != cli.ExitOK ||
		!strings.Contains(r.errOut, "reading from the cluster: no cache server runs") {
		t.Errorf("dump without a server: %+v, want objects from the cluster", r)
	}
	for why, args := range map[string][]string{
		"another cluster or user": {"--cache", socket, "-s", other.URL},
		"no cache server listens": {"--cache", socket + "s", "-s", server.URL},
		"give auto, none":         {"--cache", "socket", "-s", server.URL},
	} {
		if r := crdcache(t, append([]string{"dump", "gz"}, args...)...); r.code == cli.ExitOK ||
			!strings.Contains(r.errOut, why) {
			t.Errorf("dump %q: %+v, want an error with %q", args, r, why)
		}
	}
}

// TestServerThatIsSuspended verifies that commands read from the cluster if the cache server is suspended.
func TestServerThatIsSuspended(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	stopped := startServe(t, io.Discard, "gz", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	_, socket, _ := strings.Cut(crdcache(t, "serve", "status", "-s", server.URL).out, "socket: ")
	socket, _, _ = strings.Cut(socket, "\n")
	crdcache(t, "serve", "stop", "-s", server.URL)
	<-stopped
	listener, err := net.Listen("unix", socket) // accepts no connections
	if err == nil {
		err = os.Chmod(socket, 0o600)
	}
	must(t, err)
	defer listener.Close()
	r := crdcache(t, "query", "gz", "-A", "--count", "-v", "-s", server.URL)
	r.expect(t, cli.ExitOK, "4\n")
	if !strings.Contains(r.errOut, "reading from the cluster: the cache server did not respond") {
		t.Errorf("query with a suspended server: %+v, want objects from the cluster", r)
	}
	if r := crdcache(t, "serve", "status", "-s", server.URL); r.code != cli.ExitFailed ||
		!strings.Contains(r.errOut, "is it suspended?") {
		t.Errorf("serve status of a suspended server: %+v, want an error", r)
	}
}

// TestServeEndsWatches checks that a watch continues at the cluster, with a message, after the cache server
// has lost it.
func TestServeEndsWatches(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	startServe(t, io.Discard, "gz", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	w := watchGizmos(t, "gz", "-n", "web", "--no-headers", "-v", "-s", server.URL)
	w.nextOutput()
	w.nextOutput()
	server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/gizmos", Verb: "watch", Status: 403})
	server.CloseClientConnections()
	server.AwaitRequest(t, "/apis/example.com/v1/namespaces/web/gizmos", "watch")
	server.Create(t, gizmos, newObject("Gizmo", "web", "e", map[string]any{"color": "green"}))
	if got := w.nextOutput(); got != "ADDED e green" {
		t.Errorf("the watch printed %q, want ADDED e green", got)
	}
	w.stop()
	<-w.code
}
