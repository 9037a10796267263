package cli_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/cli"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// oddServer answers as aggregated API servers do, such as metrics-server 0.9.0 and OLM's package-server 0.46
// behind a kube-apiserver 1.37: types with list and without watch, lists without a resource version, objects
// without UID, two objects of one namespace and name, types that can only be created, and a group that is
// stale and has no resources.
type oddServer struct {
	*httptest.Server
	exampleDown atomic.Bool // makes the group example.com stale
	reversed    atomic.Bool // reverses the list of PackageManifests

	mu      sync.Mutex
	watches []string // requests with watch
}

func newOddServer(t *testing.T) *oddServer {
	t.Helper()
	s := &oddServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(s.serve))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

func oddGroup(name, freshness string, resources ...string) string {
	list := ""
	if len(resources) > 0 {
		list = `,"resources":[` + strings.Join(resources, ",") + "]"
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},"versions":[{"version":"v1","freshness":%q%s}]}`, name, freshness, list)
}

func oddResource(name, kind, scope, verbs string) string {
	return fmt.Sprintf(`{"resource":%q,"responseKind":{"group":"","version":"","kind":%q},"scope":%q,"singularResource":%q,"verbs":[%s]}`,
		name, kind, scope, strings.ToLower(kind), verbs)
}

func (s *oddServer) discovery() string {
	example := oddGroup("example.com", "Current", oddResource("widgets", "Widget", "Namespaced", `"get","list","watch"`))
	if s.exampleDown.Load() {
		example = oddGroup("example.com", "Stale")
	}
	groups := []string{
		oddGroup("metrics.k8s.io", "Current", oddResource("nodes", "NodeMetrics", "Cluster", `"get","list"`)),
		oddGroup("packages.operators.coreos.com", "Current",
			oddResource("packagemanifests", "PackageManifest", "Namespaced", `"get","list"`)),
		oddGroup("reviews.example.org", "Current", oddResource("tokenreviews", "TokenReview", "Cluster", `"create"`),
			oddResource("silents", "Silent", "Cluster", ``)),
		example,
	}
	return `{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","metadata":{},"items":[` +
		strings.Join(groups, ",") + "]}"
}

func oddManifest(name, catalog string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"olm","creationTimestamp":"2026-01-01T00:00:00Z","labels":{"catalog":%q}},"status":{"catalogSource":%q}}`,
		name, catalog, catalog)
}

func (s *oddServer) serve(w http.ResponseWriter, r *http.Request) {
	status := func(code int, reason, message string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`,
			message, reason, code)
	}
	list := func(kind, groupVersion, version string, items ...string) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind":"%sList","apiVersion":%q,"metadata":{%s},"items":[%s]}`, kind, groupVersion, version,
			strings.Join(items, ","))
	}
	if r.URL.Query().Get("watch") != "" {
		s.mu.Lock()
		s.watches = append(s.watches, r.URL.String())
		s.mu.Unlock()
		if !strings.HasSuffix(r.URL.Path, "/widgets") {
			status(http.StatusMethodNotAllowed, "MethodNotAllowed", "watch is not supported")
			return
		}
		<-r.Context().Done() // as behind a proxy that buffers
		return
	}
	switch r.URL.Path {
	case "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		fmt.Fprint(w, s.discovery())
	case "/apis/metrics.k8s.io/v1/nodes":
		list("NodeMetrics", "metrics.k8s.io/v1", "", `{"metadata":{"name":"node-1"},"usage":{"cpu":"1"}}`)
	case "/apis/metrics.k8s.io/v1/nodes/node-1":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1","metadata":{"name":"node-1"}}`)
	case "/apis/packages.operators.coreos.com/v1/packagemanifests":
		if r.URL.Query().Get("fieldSelector") != "" {
			status(http.StatusInternalServerError, "", "field label not supported: metadata.namespace")
			return
		}
		manifests := []string{oddManifest("shared", "certified"), oddManifest("redis", "certified"),
			"null", oddManifest("shared", "community"), oddManifest("apex", "community")}
		if s.reversed.Load() {
			slices.Reverse(manifests)
		}
		list("PackageManifest", "packages.operators.coreos.com/v1", "", manifests...)
	case "/apis/packages.operators.coreos.com/v1/namespaces/olm/packagemanifests":
		list("PackageManifest", "packages.operators.coreos.com/v1", "", oddManifest("shared", "certified"),
			oddManifest("shared", "community"))
	case "/apis/packages.operators.coreos.com/v1/namespaces/olm/packagemanifests/shared":
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, strings.Replace(oddManifest("shared", "community"), "{",
			`{"kind":"PackageManifest","apiVersion":"packages.operators.coreos.com/v1",`, 1))
	case "/apis/example.com/v1/widgets":
		list("Widget", "example.com/v1", `"resourceVersion":"7"`,
			`{"kind":"Widget","apiVersion":"example.com/v1","metadata":{"name":"w1","namespace":"default","uid":"u1","resourceVersion":"5"}}`)
	default:
		status(http.StatusNotFound, "NotFound", "the server could not find the requested resource")
	}
}

func (s *oddServer) run(t *testing.T, command string) result {
	t.Helper()
	args := strings.Fields(command)
	if !slices.Contains(args, "--from") {
		args = append(args, "-s", s.URL)
	}
	return crdcache(t, args...)
}

// TestOddServer verifies that verbs read each type that can be listed, in the server's order, whatever its
// other verbs and names are, and that they send no watch.
func TestOddServer(t *testing.T) {
	s := newOddServer(t)
	file := filepath.Join(t.TempDir(), "odd.snapshot")
	const packages = "packagemanifest.packages.operators.coreos.com/shared\npackagemanifest.packages.operators.coreos.com/redis\npackagemanifest.packages.operators.coreos.com/shared\npackagemanifest.packages.operators.coreos.com/apex\n"
	catalogs := "certified\ncertified\ncommunity\ncommunity\n"
	tests := []struct {
		command     string
		code        int
		out, errOut string // a part of stderr
	}{
		{"dump packagemanifests -A -o name", cli.ExitOK, packages, ""},
		{"dump packagemanifests -A -o custom-columns=C:.status.catalogSource --no-headers", cli.ExitOK, catalogs, ""},
		{"dump packagemanifests -A --sort-by .metadata.name -o name", cli.ExitOK, strings.Join(slices.Sorted(strings.Lines(packages)), ""), ""},
		{"dump nodes.metrics.k8s.io -o name", cli.ExitOK, "nodemetrics.metrics.k8s.io/node-1\n", ""},
		{"dump * -A -o name", cli.ExitOK, "widget.example.com/w1\nnodemetrics.metrics.k8s.io/node-1\n" + packages, ""},
		{"dump *.metrics.k8s.io -o name", cli.ExitOK, "nodemetrics.metrics.k8s.io/node-1\n", ""},
		{"query nodes.metrics.k8s.io --keys-only", cli.ExitOK, "node-1\n", ""},
		{"query widgets -A --keys-only", cli.ExitOK, "default/w1\n", ""},
		{"dump tokenreviews", cli.ExitFailed, "", "does not support the verb list, only create"},
		{"dump silents", cli.ExitFailed, "", "does not support the verb list: the server lists no verbs for it"},
		{"stats *.reviews.example.org", cli.ExitFailed, "", "matches 2 types, and none of them supports the verb list"},
		{"snapshot save " + file + " *.reviews.example.org", cli.ExitFailed, "", "none of them supports the verb list"},
		{"dump packagemanifests -A --field-selector metadata.namespace=olm", cli.ExitFailed, "", "warning: retrying: packagemanifests.packages.operators.coreos.com: "},
		{"query packagemanifests -A --field-selector metadata.namespace=olm", cli.ExitFailed, "", "warning: retrying: packagemanifests.packages.operators.coreos.com: "},
		{"resources --no-headers nodes silents", cli.ExitOK, "nodes.metrics.k8s.io          NodeMetrics   Cluster   v1    NotWatchable\nsilents.reviews.example.org   Silent        Cluster   v1    NotListable\n", ""},
		{"snapshot save " + file + " --all", cli.ExitOK, "", "saved 6 objects of 3 types"},
		{"dump packagemanifests -A -o custom-columns=N:.metadata.name,C:.status.catalogSource --no-headers --from " + file,
			cli.ExitOK, "apex     community\nredis    certified\nshared   certified\nshared   community\n", ""},
		{"diff " + file + " live", cli.ExitOK, "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.command, func(t *testing.T) {
			r := s.run(t, tt.command)
			if r.code != tt.code || r.out != tt.out || !strings.Contains(r.errOut, tt.errOut) {
				t.Errorf("exit code %d, want %d; stdout:\n%s\nwant:\n%s\nstderr:\n%s\nwant %q", r.code, tt.code, r.out,
					tt.out, r.errOut, tt.errOut)
			}
		})
	}
	if len(s.watches) > 0 {
		t.Errorf("unexpected watches: %q", s.watches)
	}
}

// TestRepeatedNames verifies that verbs that list once show all objects of a list in which several have one
// name, and that the answer does not depend on the order of the list.
func TestRepeatedNames(t *testing.T) {
	s := newOddServer(t)
	const columns = "-o custom-columns=N:.metadata.name,C:.status.catalogSource --no-headers"
	for command, want := range map[string]string{
		"query packagemanifests -A --keys-only":                                          "olm/apex\nolm/redis\nolm/shared\nolm/shared\n",
		"query packagemanifests -A --count":                                              "4\n",
		"query packagemanifests -A " + columns:                                           "apex     community\nredis    certified\nshared   certified\nshared   community\n",
		"query packagemanifests -A --group-by .status.catalogSource -o csv":              ".STATUS.CATALOGSOURCE,COUNT\ncertified,2\ncommunity,2\n",
		"query packagemanifests -A --where .status.catalogSource==\"community\" --count": "2\n",
		"stats packagemanifests -A -o json":                                              `"objects": 4,`,
		"stats packagemanifests -A -o json --storage object":                             `"objects": 4,`,
		"stats packagemanifests -A -o json --storage metadata":                           `"objects": 4,`,
		"tree packagemanifests/shared -n olm --no-headers --types packagemanifests":      "shared",
		"tree packagemanifests/shared -n olm -o json --types packagemanifests":           `"name": "shared"`,
	} {
		for _, reversed := range []bool{false, true} {
			s.reversed.Store(reversed)
			r := s.run(t, command)
			isWanted := strings.Count(r.out, want) == 2
			if strings.HasPrefix(command, "query") {
				isWanted = r.out == want
			}
			if r.code != cli.ExitOK || !isWanted {
				t.Errorf("%s, reversed %t: exit code %d, stdout:\n%s\nwant:\n%s\nstderr:\n%s", command, reversed, r.code,
					r.out, want, r.errOut)
			}
		}
	}
}

// TestWatchPolls verifies that watch prints the objects of types that cannot be watched, and says so.
func TestWatchPolls(t *testing.T) {
	for _, name := range []string{"nodes.metrics.k8s.io", "*.metrics.k8s.io"} {
		s := newOddServer(t)
		ctx, cancel := context.WithCancel(t.Context())
		printed, told := make(chan struct{}), make(chan struct{})
		code := make(chan int, 1)
		go func() { // ends with cancel
			code <- cli.Main(ctx, []string{"crdcache", "watch", name, "-s", s.URL}, nil,
				&signalingWriter{text: "node-1", textWritten: printed},
				&signalingWriter{text: "nodes.metrics.k8s.io: Synced: the type cannot be watched", textWritten: told})
		}()
		for what, done := range map[string]chan struct{}{"the objects": printed, "that it polls": told} {
			select {
			case <-done:
			case got := <-code:
				t.Fatalf("watch %s ended with exit code %d", name, got)
			case <-time.After(5 * time.Minute):
				t.Errorf("watch %s does not print %s", name, what)
			}
		}
		cancel()
		<-code
	}
}

// TestUnknownGroups verifies that the types of a group that cannot be discovered are unknown: each verb that
// can lack them says so and has the exit code of an incomplete answer, and no object counts as removed.
func TestUnknownGroups(t *testing.T) {
	s := newOddServer(t)
	dir := t.TempDir()
	before, outage := filepath.Join(dir, "before"), filepath.Join(dir, "outage")
	if r := s.run(t, "snapshot save "+before+" --all"); r.code != cli.ExitOK {
		t.Fatal(r.errOut)
	}
	s.exampleDown.Store(true)
	for _, command := range []string{
		"dump * -A -o name", "dump widgets", "dump *.example.com", "dump widgets/w1", "stats * -A", "query widgets",
		"resources", "resources widgets", "tree nodes.metrics.k8s.io/node-1", "snapshot save " + outage + " --all",
		"dump widgets --from " + outage, "diff " + before + " live", "diff " + before + " live widgets",
		"diff " + before + " " + outage, "diff " + outage + " " + before, "diff " + outage + " " + outage,
	} {
		t.Run(command, func(t *testing.T) {
			args := strings.Fields(command)
			if !strings.HasPrefix(command, "diff") || strings.Contains(command, " live") {
				r := s.run(t, command)
				if r.code != cli.ExitIncomplete || !strings.Contains(r.errOut, "example.com/v1: ") ||
					strings.Contains(r.out, "removed") {
					t.Errorf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", r.code, cli.ExitIncomplete, r.out, r.errOut)
				}
				return
			}
			r := crdcache(t, args...)
			if r.code != cli.ExitIncomplete || r.out != "" || !strings.Contains(r.errOut, "example.com is not compared: ") {
				t.Errorf("exit code %d, want %d; stdout:\n%s\nstderr:\n%s", r.code, cli.ExitIncomplete, r.out, r.errOut)
			}
		})
	}
	r := crdcache(t, "snapshot", "info", outage)
	if !strings.Contains(r.out, "unknown: the types of example.com/v1: ") {
		t.Errorf("snapshot info does not name the unknown group:\n%s", r.out)
	}
	s.exampleDown.Store(false)
	crdcache(t, "diff", before, "live", "-s", s.URL).expect(t, cli.ExitOK, "")
}

// TestHints verifies what messages say about the command line and the source.
func TestHints(t *testing.T) {
	server := newCluster(t)
	server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
	file := filepath.Join(t.TempDir(), "zones.snapshot")
	for _, tt := range []struct {
		args           []string
		want, unwanted string
	}{
		{[]string{"stats", "gizmos", "nope"}, "--field-selector metadata.name=nope", ""},
		{[]string{"stats", "gizmos,nope"}, `no resource type "nope"`, "--field-selector"},
		{[]string{"stats", "gizmos", "-n", "web"}, ": 1 object in namespace web, ", ""},
		{[]string{"stats", "gizmos", "-A"}, ": 1 object, ", "in namespace"},
		{[]string{"query", "gizmos", "-A", "--where", `spec.x == "y"`}, "write .spec.x\n", ""},
		{[]string{"query", "gizmos", "-A", "--where", `.spec.x = "y"`}, "--where: ", "write ."},
		{[]string{"snapshot", "save", file, "zones"}, "saved ", ""},
		{[]string{"dump", "gizmos", "-A", "--from", file}, "gizmos.example.com: not saved in the snapshot", ""},
	} {
		if !slices.Contains(tt.args, "--from") {
			tt.args = append(tt.args, "-s", server.URL)
		}
		r := crdcache(t, tt.args...)
		if text := r.out + r.errOut; !strings.Contains(text, tt.want) ||
			tt.unwanted != "" && strings.Contains(text, tt.unwanted) {
			t.Errorf("%q prints %q, want %q and not %q", tt.args, text, tt.want, tt.unwanted)
		}
	}
}

// TestBehindBufferingProxy verifies that no verb waits for a watch to print the objects, because a proxy that
// buffers sends nothing before a watch ends, and that none accepts an older state.
func TestBehindBufferingProxy(t *testing.T) {
	server := newCluster(t)
	server.Create(t, gizmos, newObject("Gizmo", "web", "a", nil))
	var gaveUp atomic.Bool // a watch of gizmos has ended
	hang := func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		<-r.Context().Done()
		gaveUp.Store(gaveUp.Load() || r.URL.Path == gizmosPath)
	}
	for _, path := range []string{gizmosPath, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"/apis/apiregistration.k8s.io/v1/apiservices"} {
		for _, verb := range []string{"watch", "watch-list"} {
			server.AddFaults(apitest.Fault{Path: path, Verb: verb, Effect: hang})
		}
	}
	for _, command := range []string{"dump gizmos -A", "query gizmos -A", "stats gizmos -A", "resources gizmos",
		"tree gizmo/a -n web"} {
		r := crdcache(t, append(strings.Fields(command), "--timeout", "5m", "-s", server.URL)...)
		if r.code != cli.ExitOK || !strings.Contains(r.out, "a") {
			t.Errorf("%s: exit code %d, want %d; stderr:\n%s", command, r.code, cli.ExitOK, r.errOut)
		}
	}
	for _, request := range server.Requests() {
		if strings.HasPrefix(request, "watch") || strings.Contains(request, "resourceVersion=0") {
			t.Errorf("unexpected request: %s", request)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	printed := make(chan struct{})
	code := make(chan int, 1)
	go func() { // ends with cancel
		code <- cli.Main(ctx, []string{"crdcache", "watch", "gizmos", "-A", "-s", server.URL}, nil,
			&signalingWriter{text: "web", textWritten: printed}, io.Discard)
	}()
	select {
	case <-printed:
		if gaveUp.Load() {
			t.Error("watch prints the objects after the watch-list has timed out")
		}
	case <-time.After(5 * time.Minute):
		t.Error("watch does not print the objects")
	}
	cancel()
	<-code
}
