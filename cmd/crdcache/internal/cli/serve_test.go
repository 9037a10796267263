//go:build unix

package cli_test

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// shortRuntimeDir sets a short directory for sockets, because socket paths have a length limit.
func shortRuntimeDir(t *testing.T) {
	t.Helper()
	dir, err := os.MkdirTemp("", "s")
	must(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) }) // removes the temporary directory
	t.Setenv("XDG_RUNTIME_DIR", dir)
}

// startServe runs crdcache serve until the test ends. exitCode receives its exit code.
func startServe(t *testing.T, errOut io.Writer, args ...string) (exitCode <-chan int) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done, codes := make(chan struct{}), make(chan int, 1)
	go func() { // ended by cancel
		defer close(done)
		codes <- cli.Main(ctx, append([]string{"crdcache", "serve"}, args...), strings.NewReader(""),
			io.Discard, errOut)
	}()
	t.Cleanup(func() { cancel(); <-done })
	return codes
}

// awaitServer waits until the server has the given number of synced types.
func awaitServer(t *testing.T, url string, types int) {
	t.Helper()
	for t.Context().Err() == nil {
		if r := crdcache(t, "serve", "status", "-s", url); strings.Count(r.out, "Synced") == types &&
			!strings.Contains(r.out, "not served") {
			return
		}
		time.Sleep(10 * time.Millisecond) // pause between polls
	}
}

// TestServeAnswersQueries compares answers with and without the cache server in all output formats.
func TestServeAnswersQueries(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	large := newObject("Gizmo", "web", "large", map[string]any{"color": "no\tcolor", "size": int64(12345678)})
	large.SetLabels(map[string]string{"app": "shop", "none": "y"})
	server.Create(t, gizmos, large)
	config := writeTempFile(t, "c.yaml", gizmoIndexes)
	stopped := startServe(t, io.Discard, "things", "--config", config, "-s", server.URL)
	awaitServer(t, server.URL, 1)
	for _, args := range [][]string{
		{"--index", "color=red"}, {"--index", "color=red", "-o", "yaml"}, {"--index", "color=red", "-o",
			"json"}, {"--index", "color=red", "-o", "name"},
		{"--index", "!(color=red)", "--keys-only"}, {"--sort-by", "size desc", "--limit", "2",
			"--keys-only"}, {"--index", "color", "--count"},
		{"--group-by", "color,namespace"}, {"--group-by", "color", "--compute",
			"sum(size)", "-o", "json"}, {"--explain", "--index", "size<50"},
		{"-l", "none=x", "--count"}, {"--where", "@.spec.size > 9", "--keys-only"}, {"--index", "color=none"},
		{"-o", "wide", "--show-labels"}, {"--sort-by", "size", "-o", "wide", "--no-headers", "-L",
			"app"}, {"-o", "csv"}, {"-o", "wide", "--show-kind", "--limit", "2"},
		{"-o", "custom-columns=N:.metadata.name,S:.spec.size"}, {"-n", "web"}, {"-n", "web", "--sort-by",
			"size", "--limit", "1", "--keys-only"},
		{"-l", "none=x", "--limit", "1", "-o", "name"}, {"--where", "@.spec.size > 9", "--limit",
			"1", "-o", "name"},
	} {
		if args[0] != "-n" {
			args = append(args, "-A")
		}
		args = append([]string{"query", "things", "--config", config, "-s", server.URL}, args...)
		want, got := crdcache(t, append(args, "--cache", "none")...), crdcache(t, args...)
		verbose := crdcache(t, append(args, "-v")...)
		if got != want {
			t.Errorf("%q: %+v, without a server %+v", args, got, want)
		}
		if !strings.Contains(verbose.errOut, "note: answered by the cache server for gizmos.v1.example.com") ||
			verbose.out != want.out {
			t.Errorf("%q with -v: %+v, want the cluster's output and a note about the cache server", args,
				verbose)
		}
	}
	crdcache(t, "query", "gz", "-n", "db", "--index", "color=red", "--keys-only", "-s", server.URL).expect(t,
		cli.ExitOK, "db/c\n")
	// plans, which count only the selected objects
	for _, args := range [][]string{{"-n", "web"}, {"-A", "-l", "none"}} {
		args = append([]string{"query", "gz", "--config", config, "--index", "size<50", "--explain", "-s",
			server.URL}, args...)
		if want, got := crdcache(t, append(args, "--cache", "none")...), crdcache(t, args...); got != want {
			t.Errorf("%q: %+v, without a server %+v", args, got, want)
		}
	}

	other := writeTempFile(t, "d.yaml", strings.Replace(gizmoIndexes, ".spec.color", ".spec.colour", 1))
	for why, args := range map[string][]string{
		"it does not cache":           {"query", "zones", "--count"},
		"it has other index":          {"query", "gz", "-A", "--config", other, "--count"},
		"not support field selectors": {"query", "gz", "-A", "--field-selector", "metadata.name=a", "--count"},
		"not support queries about":   {"query", "gz", "-A", "--dangling", "--count"},
	} {
		if r := crdcache(t, append(args, "-v", "-s", server.URL)...); r.code != cli.ExitOK ||
			!strings.Contains(r.errOut, why) {
			t.Errorf("%q: %+v, want stderr with %q", args, r, why)
		}
	}
	elsewhere := strings.Replace(server.URL, "127.0.0.1", "localhost", 1)
	if r := crdcache(t, "query", "gz", "-A", "--count", "-v", "-s", elsewhere); r.code != cli.ExitOK ||
		!strings.Contains(r.errOut, "no cache server runs") {
		t.Errorf("query with another address: %+v, want that no cache server runs", r)
	}

	if r := crdcache(t, "serve", "gz", "-s", server.URL); r.code != cli.ExitFailed ||
		!strings.Contains(r.errOut, "another cache server runs") {
		t.Errorf("a second server: %+v, want an error", r)
	}
	if r := crdcache(t, "serve", "stop", "-s", server.URL); r.code != cli.ExitOK ||
		!strings.HasSuffix(r.out, " has ended\n") {
		t.Errorf("serve stop: %+v, want that the server has ended", r)
	}
	if code := <-stopped; code != cli.ExitOK {
		t.Errorf("the stopped server ended with exit code %d, want 0", code)
	}
	if r := crdcache(t, "serve", "status", "-s", server.URL); r.code != cli.ExitFailed ||
		!strings.Contains(r.errOut, "no cache server runs") {
		t.Errorf("serve status after the stop: %+v, want that no cache server runs", r)
	}
	crdcache(t, "query", "gz", "-A", "--count", "-s", server.URL).expect(t, cli.ExitOK, "5\n")
}

func TestServeEndsWhenIdle(t *testing.T) {
	shortRuntimeDir(t)
	if code := <-startServe(t, io.Discard, "gz", "--idle", "1ms", "-s", newIndexedServer(t).URL); code != cli.ExitOK {
		t.Errorf("the idle server ended with exit code %d, want 0", code)
	}
}

// TestServeWarnsOfMisspelledFields verifies that a warning about misspelled fields is printed, with and
// without the cache server.
func TestServeWarnsOfMisspelledFields(t *testing.T) {
	shortRuntimeDir(t)
	server := newTenantServer(t, false)
	startServe(t, io.Discard, "rooms", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	args := []string{"query", "rooms", "-n", "web", "--where", "@.spec.flor == 7", "--group-by",
		".spec.onwer", "-s", server.URL}
	want, got := crdcache(t, append(args, "--cache", "none")...), crdcache(t, args...)
	if got != want || strings.Count(got.errOut, "did you mean") != 2 {
		t.Errorf("query with the cache server: %+v, want the same as without it and two warnings: %+v", got, want)
	}
}

// TestServeOutOfContact checks that a server stops answering as soon as its watch has ended, because it can
// lack recent writes.
func TestServeOutOfContact(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	startServe(t, io.Discard, "gz", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	for !strings.Contains(crdcache(t, "query", "gz", "-A", "--count", "-v", "-s", server.URL).errOut,
		"answered by the cache server") {
	}
	must(t, server.Listener.Close())
	for t.Context().Err() == nil {
		// repeat, because a connection may open while the listener closes
		server.CloseClientConnections()
		if r := crdcache(t, "query", "gz", "-A", "--count", "-v", "--timeout", "1s", "-s",
			server.URL); r.code != cli.ExitOK {
			if !strings.Contains(r.errOut, "(Unreachable)") {
				t.Errorf("query without contact: %+v, want the reason Unreachable", r)
			}
			break
		}
	}
	if r := crdcache(t, "serve", "status", "-s", server.URL); r.code != cli.ExitOK ||
		!strings.Contains(r.out, "(Unreachable)") {
		t.Errorf("serve status without contact: %+v, want the reason Unreachable", r)
	}
}

// TestServeReportsForbiddenTypes verifies that serve reports types that cannot be read.
func TestServeReportsForbiddenTypes(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/gizmos", Status: http.StatusForbidden,
		Message: "eve may not"})
	stderr, out := io.Pipe()
	stopped := startServe(t, out, "gizmos", "-s", server.URL)
	lines := bufio.NewScanner(stderr)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "note: ") {
	}
	got := lines.Text()
	stderr.Close() // the test reads no more lines
	if !strings.HasPrefix(got, "note: gizmos.example.com is read directly until it can be cached: ") ||
		!strings.HasSuffix(got, "eve may not") {
		t.Errorf("stderr is %q, want a note about the denied type", got)
	}
	// Wait until the server listens.
	for crdcache(t, "serve", "stop", "-s", server.URL).code != cli.ExitOK && t.Context().Err() == nil {
	}
	<-stopped
}

// TestServeCachesLaterTypes verifies that serve caches the types that match a pattern, even if there are none
// at the start.
func TestServeCachesLaterTypes(t *testing.T) {
	shortRuntimeDir(t)
	server := newIndexedServer(t)
	var stderr bytes.Buffer
	stopped := startServe(t, &stderr, "*.example.com", "*.later.example", "-s", server.URL)
	awaitServer(t, server.URL, 2)
	status := func() string { return crdcache(t, "serve", "status", "-s", server.URL).out }
	if got := status(); !strings.Contains(got, "*.later.example  ") || !strings.Contains(got, "not cached: ") {
		t.Errorf("the status is %s, want a pattern without types", got)
	}
	rooms := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(roomCRD), &rooms.Object))
	server.Create(t, crd.GVR, rooms)
	awaitServer(t, server.URL, 3)
	if r := crdcache(t, "dump", "rooms", "-A", "-v", "-s", server.URL); !strings.Contains(r.errOut,
		"rooms.v1.example.com is read from the cache server") {
		t.Errorf("dump of an installed type: %+v, want objects from the cache server", r)
	}
	server.Delete(t, crd.GVR, "", "rooms.example.com")
	for strings.Contains(status(), "rooms") && t.Context().Err() == nil {
	}
	crdcache(t, "serve", "stop", "-s", server.URL)
	<-stopped
	text := stderr.String()
	for _, want := range []string{"warning: cached when it is installed: ",
		"rooms.v1.example.com is cached now",
		"rooms.v1.example.com is no longer cached"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("stderr %s, want %q once", text, want)
		}
	}
	if strings.Contains(text, "gizmos") {
		t.Errorf("stderr has notes about the initial types: %s", text)
	}
}

// TestServePolls verifies that serve polls types that cannot be watched if they are named. It names those
// that a pattern leaves out, and the objects that its cache lacks.
func TestServePolls(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds")
	}
	shortRuntimeDir(t)
	s := newOddServer(t)
	if r := s.run(t, "serve *.metrics.k8s.io"); r.code != cli.ExitFailed ||
		!strings.Contains(r.errOut, "only cached if they are named: nodes.metrics.k8s.io") {
		t.Errorf("serve of a pattern: exit code %d, stderr:\n%s", r.code, r.errOut)
	}
	told := make(chan struct{})
	startServe(t, &signalingWriter{text: "are named: packagemanifests.packages.operators.coreos.com\n", textWritten: told},
		"nodes.metrics.k8s.io", "*", "-A", "-s", s.URL)
	<-told
	awaitServer(t, s.URL, 2)
	if r := s.run(t, "serve status"); !strings.Contains(r.out, "Synced (Polled)") {
		t.Errorf("serve status:\n%s", r.out)
	}
	s = newOddServer(t)
	startServe(t, io.Discard, "packagemanifests", "-A", "-s", s.URL)
	awaitServer(t, s.URL, 1)
	if r := s.run(t, "serve status"); !strings.Contains(r.out, "warning: packagemanifests.packages.operators.coreos.com: "+
		"the server lists 4 objects with only 3 different names: the cache has one object of each name, and lacks another olm/shared") {
		t.Errorf("serve status:\n%s", r.out)
	}
	s.run(t, "query packagemanifests -A --count").expect(t, cli.ExitOK, "4\n")
}

const lampDefinition = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: gizmos.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: gizmos, singular: gizmo, kind: Gizmo}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, properties: {spec: {
      type: object, properties: {
      ratio: {type: number}, groups: {type: array, x-kubernetes-list-type: set, items: {type: string}}}}}}}}]
status: {conditions: [{type: Established, status: "True"}]}
---
`

// TestQueryCEL verifies that CEL conditions decode numbers and sets with the current schema, and fail without
// one where its types matter.
func TestQueryCEL(t *testing.T) {
	shortRuntimeDir(t)
	const text = `{apiVersion: example.com/v1, kind: Gizmo, metadata: {name: a, namespace: web},
  spec: {ratio: 1, groups: [a, b]}}`
	definition := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(lampDefinition), &definition.Object))
	server := apitest.New(t, apitest.Type{GVR: gizmos, Kind: "Gizmo", Singular: "gizmo", Namespaced: true},
		apitest.Type{GVR: zones, Kind: "Zone"})
	server.Create(t, crds, definition)
	server.Create(t, gizmos, newObject("Gizmo", "web", "a", map[string]any{"ratio": int64(1), "groups": []any{"a", "b"}}))
	query := func(source []string, condition string) result {
		return crdcache(t, append([]string{"query", "gizmos", "-A", "--keys-only", "--where-cel", condition}, source...)...)
	}
	withSchema := writeTempFile(t, "all.yaml", lampDefinition+text)
	startServe(t, io.Discard, "gizmos", "-s", server.URL)
	awaitServer(t, server.URL, 1)
	for _, source := range [][]string{{"--from", withSchema}, {"-s", server.URL, "--cache", "none"}, {"-s", server.URL}} {
		for condition, want := range map[string]string{"self.spec.ratio / 2.0 == 0.5": "web/a\n",
			"type(self.spec.ratio) == double": "web/a\n", "!(self.spec.groups == ['b', 'a'])": "",
			"self.spec.ratio / 2.0 > 0.5 || self.metadata.name == 'b'": ""} {
			if r := query(source, condition); r.code != cli.ExitOK || r.out != want || r.errOut != "" {
				t.Errorf("%q, %s: %+v, want %q", source, condition, r, want)
			}
		}
	}
	severalTypes := startWatch(t, "watch", "gizmos,zones", "-A", "-o", "name", "-s", server.URL,
		"--where-cel", "type(self.spec.ratio) == double && self.spec.groups == ['b', 'a']")
	severalTypes.expect("gizmo.example.com/a")
	severalTypes.interrupt()
	without := writeTempFile(t, "objects.yaml", text)
	if r := query([]string{"--from", without}, "self.spec.ratio / 2.0 == 0.5"); r.code == cli.ExitOK || r.out != "" {
		t.Errorf("without a schema: %+v, want an error", r)
	}
	changed := strings.Replace(lampDefinition, "list-type: set", "list-type: atomic", 1)
	_ = yaml.Unmarshal([]byte(changed), &definition.Object) // as before
	server.Update(t, crds, definition)
	for r := (result{}); r.out == "" && t.Context().Err() == nil; {
		r = query([]string{"-s", server.URL}, "!(self.spec.groups == ['b', 'a'])")
	}
}
