package crdcached_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
)

var (
	attackWatches = flag.Int("attack-watches", 300, "the number of watches that TestAttacks opens; half of them stall")
	// attackMemory limits the growth of crdcached's memory. A stalled watch holds its unsent events.
	attackMemory = flag.Int("attack-memory", 256,
		"how many MiB more crdcached may take for all attacks together")
)

// attackedConfig limits the lifetime of watches, and the time in which a client must read.
const attackedConfig = `
types: ["*.example.com"]
watches: {min: 5s, max: 6s, writeTimeout: 2s}
limits: {requests: 50, watches: 20000, totalWatches: 20000, connections: 600, connectionsPerAddress: 300, bytesPerSecond: 64Mi, burstBytes: 256Mi}
`

// readWidgets allows a user to read widgets.
var readWidgets = rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"widgets"},
	Verbs: []string{"get", "list", "watch"}}

// attackedServer is the attacked crdcached with the rights from its manifests, and its users.
type attackedServer struct {
	*testing.T
	*harness.CrdcachedServer
	gvr schema.GroupVersionResource
	// open is a namespace that the guest may read. closed is a namespace that the guest may not read; its
	// object has a unique value.
	open, closed string
	guest        *harness.User
	guestConfig  *rest.Config
	reader       *rest.Config // may read all namespaces
}

const secretValue = "value-of-the-closed-namespace"

func newAttackedServer(t *testing.T) *attackedServer {
	t.Helper()
	harness.InstallCRDs(t, harness.NewCRD("example.com", "Widget"))
	v := &attackedServer{T: t, gvr: schema.GroupVersionResource{Group: "example.com", Version: "v1",
		Resource: "widgets"}}
	v.open, v.closed = harness.Namespace(t), harness.Namespace(t)
	for namespace, value := range map[string]string{v.open: "open", v.closed: secretValue} {
		if _, err := adminClient(t).Resource(v.gvr).Namespace(namespace).Create(t.Context(),
			newObject(v.gvr, "a", value), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	v.CrdcachedServer = harness.StartCrdcachedIn(t, crdcachedKubeconfig(t), attackedConfig,
		"--authorization-webhook-cache-authorized-ttl=1s",
		"--authorization-webhook-cache-unauthorized-ttl=1s", "--authentication-token-webhook-cache-ttl=1s")
	v.guest = harness.NewUser(t, "guest")
	v.guest.Grant(t, v.open, readWidgets)
	v.guestConfig = v.As(v.guest.Config(t))
	reader := harness.NewUser(t, "reader")
	reader.Grant(t, "", readWidgets)
	v.reader = v.As(reader.Config(t))
	return v
}

func (v *attackedServer) path(namespace string) string {
	return "/apis/example.com/v1/namespaces/" + namespace + "/widgets"
}

// TestAttacks attacks crdcached in many ways. Each attack must be refused or bounded, and a reader that
// is not attacked must not miss an event of its watch.
func TestAttacks(t *testing.T) {
	v := newAttackedServer(t)
	unaffected := startUnaffectedReader(v)
	before := memoryOf(t, v.PID())
	t.Run("strangers", v.testStrangers)
	t.Run("guests", v.testGuests)
	t.Run("paths", v.testOddPaths)
	t.Run("long requests", v.testLongRequests)
	t.Run("lost rights", v.testLostRights)
	t.Run("silent connections", v.testSilentConnections)
	t.Run("resets", v.testResets)
	t.Run("stalled watches", v.testStalledWatches)
	if grown := (memoryOf(t, v.PID()) - before) >> 20; grown > *attackMemory {
		t.Errorf("crdcached grew by %d MiB, want at most %d", grown, *attackMemory)
	} else {
		t.Logf("crdcached has grown by %d MiB from %d", grown, before>>20)
	}
	unaffected.check(v)
}

type response struct {
	code int
	text string
}

// get sends a GET for a path without cleaning the path.
func (v *attackedServer) get(t *testing.T, config *rest.Config, path string,
	header http.Header) (response, error) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, v.URL, nil)
	must(t, err)
	for name, values := range header {
		r.Header[name] = values
	}
	if host := header.Get("Host"); host != "" {
		r.Host = host
	}
	raw, query, _ := strings.Cut(path, "?")
	r.URL.Opaque, r.URL.RawQuery = "//"+r.Host+raw, query
	got, err := client.Do(r)
	if err != nil {
		return response{}, err
	}
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	return response{got.StatusCode, string(text)}, err
}

// expectCodes expects one of the codes, and an answer without content of the closed namespace.
func (v *attackedServer) expectCodes(t *testing.T, config *rest.Config, path string, header http.Header,
	codes ...int) {
	t.Helper()
	got, err := v.get(t, config, path, header)
	if err != nil {
		t.Errorf("%.200s: %v", path, err)
		return
	}
	if strings.Contains(got.text, secretValue) {
		t.Errorf("the response to %.200s contains an object of the closed namespace: %.2000s", path, got.text)
	}
	if !slices.Contains(codes, got.code) {
		t.Errorf("%.200s is answered with %d, want %v: %.500s", path, got.code, codes, got.text)
	}
}

// testStrangers sends requests without a token or with an invalid token.
func (v *attackedServer) testStrangers(t *testing.T) {
	anonymous := rest.AnonymousClientConfig(v.reader)
	as := func(token string) *rest.Config {
		config := rest.CopyConfig(anonymous)
		config.BearerToken = token
		return config
	}
	holder := harness.NewUser(t, "left")
	holder.Grant(t, "", readWidgets)
	valid := holder.Config(t).BearerToken
	parts := strings.Split(valid, ".")
	for name, token := range map[string]string{
		"invented": "eyJhbGciOiJub25lIn0.e30.", "expired": expiredCopy(t, valid), "unsigned": parts[0] + "." +
			parts[1] + ".", "long": strings.Repeat("a", 1<<14),
	} {
		t.Run(name, func(t *testing.T) {
			for _, path := range []string{v.path(v.open), "/query" + v.path(v.open) + "?q=*", "/apis",
				"/openapi/v3", "/metrics", "/readyz/types", "/page/"} {
				v.expectCodes(t, as(token), path, nil, http.StatusUnauthorized)
			}
		})
	}
	for _, path := range []string{v.path(v.open), "/query" + v.path(v.open) + "?q=*", "/apis", "/openapi/v3",
		"/metrics", "/readyz/types"} {
		v.expectCodes(t, anonymous, path, nil, http.StatusUnauthorized, http.StatusForbidden)
	}
	// Only a front proxy may set identity headers.
	v.expectCodes(t, anonymous, v.path(v.closed), http.Header{"X-Remote-User": {"system:admin"},
		"X-Remote-Group": {"system:masters"}}, http.StatusUnauthorized, http.StatusForbidden)
}

// testGuests sends a guest's requests for objects outside its only permitted namespace, and expects 403.
func (v *attackedServer) testGuests(t *testing.T) {
	v.expectCodes(t, v.guestConfig, v.path(v.open), nil, http.StatusOK)
	all := "/apis/example.com/v1/widgets"
	cluster := v.guest.Config(t)
	for _, path := range []string{all, all + "?watch=true", all + "?fieldSelector=metadata.namespace%3D" +
		v.open, v.path(v.closed), v.path(v.closed) + "/a", v.path(v.closed) + "/a?resourceVersion=0"} {
		v.expectCodes(t, v.guestConfig, path, nil, http.StatusForbidden)
		ours, err := v.get(t, v.guestConfig, path, nil)
		must(t, err)
		theirs := getFromCluster(t, cluster, path)
		if ours.text != theirs {
			t.Errorf("the response for %s is\n%s\nwant the API server's\n%s", path, ours.text, theirs)
		}
	}
	for _, path := range []string{"/query" + all + "?q=*", "/query" + v.path(v.closed) + "?q=*",
		"/query" + all + "?q=*&watch=true", "/query" + all +
			"?q=*&fieldSelector=metadata.name%3Da", "/metrics", "/readyz/types"} {
		v.expectCodes(t, v.guestConfig, path, nil, http.StatusForbidden)
	}
	for _, header := range []http.Header{
		{"Impersonate-User": {"system:admin"},
			"Impersonate-Group": {"system:masters"}}, {"X-Remote-User": {"system:admin"},
			"X-Remote-Group": {"system:masters"}},
	} {
		v.expectCodes(t, v.guestConfig, v.path(v.closed), header, http.StatusForbidden)
	}
	for _, path := range []string{"/api/v1/secrets", "/api/v1/namespaces/" + v.open + "/secrets",
		"/api/v1/namespaces/" + v.open + "/pods/a/exec?command=sh", "/api/v1/nodes/a/proxy/run"} {
		v.expectCodes(t, v.guestConfig, path, nil, http.StatusForbidden)
	}
}

// testOddPaths requests paths that authorization and serving could interpret differently.
func (v *attackedServer) testOddPaths(t *testing.T) {
	refused := []int{http.StatusBadRequest, http.StatusForbidden, http.StatusNotFound,
		http.StatusMisdirectedRequest, http.StatusMovedPermanently, http.StatusMethodNotAllowed}
	open, closed := v.path(v.open), v.path(v.closed)
	for _, path := range []string{
		open + "/../../" + v.closed + "/widgets", open + "/..%2f..%2f" + v.closed + "/widgets", open +
			"/%2e%2e/%2e%2e/" + v.closed + "/widgets",
		"/apis/example.com/v1/namespaces/" + v.open + "%2F..%2F" + v.closed +
			"/widgets", "/apis/example.com/v1/namespaces/" + v.open + "/.././" + v.closed + "/widgets",
		"//apis/example.com/v1/namespaces/" + v.closed + "/widgets", "/apis//example.com/v1/namespaces/" +
			v.closed + "/widgets", "/apis/example.com/v1//namespaces/" + v.closed + "/widgets",
		"/apis/example.com/v1/watch/namespaces/" + v.closed +
			"/widgets", "/apis/example.com/v1/watch/widgets", "/apis/example.com/v1/namespaces//widgets",
		"/query/" + closed, "/query/query" + closed, "/query/.." + closed, "/query%2f.." +
			closed, "/page/.." + closed, "/healthz/.." + closed, "/api/.." + closed, "/openapi/.." + closed,
		closed + "/a/", closed + "/", closed + "%00", closed + ";x=1", closed + "/a/status", closed +
			"/a/scale", "/APIS/example.com/v1/namespaces/" + v.closed + "/widgets",
		"/version/.." + closed, "/livez/.." + closed, "/query" + closed + "/a?q=*",
	} {
		v.expectCodes(t, v.guestConfig, path, nil, refused...)
	}
	for _, host := range []string{"evil.example.com", "localhost:1", "kubernetes.default.svc", "[::1]"} {
		header := http.Header{"Host": {host}, "X-Forwarded-Host": {host}, "X-Forwarded-Uri": {closed},
			"X-Original-Url": {closed}, "X-Http-Method-Override": {"DELETE"}}
		v.expectCodes(t, v.guestConfig, closed, header, http.StatusForbidden)
		v.expectCodes(t, v.guestConfig, open, header, http.StatusOK)
	}
}

// testLongRequests sends requests that are longer than any useful one.
func (v *attackedServer) testLongRequests(t *testing.T) {
	tooLong := []int{http.StatusRequestURITooLong, http.StatusRequestHeaderFieldsTooLarge,
		http.StatusBadRequest}
	long := strings.Repeat("a", 1<<20)
	// With HTTP/2, Go's client respects the limit that the server announces.
	config := rest.CopyConfig(v.guestConfig)
	config.NextProtos = []string{"http/1.1"}
	for name, path := range map[string]string{
		"labels": v.path(v.open) + "?labelSelector=" + long, "fields": v.path(v.open) +
			"?fieldSelector=metadata.name%3D" + long,
		"set": v.path(v.open) + "?labelSelector=a%20in%20(" + strings.Repeat("a,", 1<<19) +
			"a)", "query": "/query" + v.path(v.open) + "?q=" + long,
		"continue": v.path(v.open) + "?continue=" + long, "path": v.path(v.open) + "/" + long,
	} {
		t.Run(name, func(t *testing.T) {
			if got, err := v.get(t, config, path, nil); err == nil && !slices.Contains(tooLong, got.code) {
				t.Errorf("response = %d, want an error status: %.200s", got.code, got.text)
			} // an error is allowed, because the server can close the connection during the request
		})
	}
	t.Run("headers", func(t *testing.T) {
		if got, err := v.get(t, config, v.path(v.open),
			http.Header{"X-Long": {long, long, long}}); err == nil && !slices.Contains(tooLong, got.code) {
			t.Errorf("response = %d, want an error status: %.200s", got.code, got.text)
		}
	})
	t.Run("HTTP/2", func(t *testing.T) {
		r := v.dial(t, 1<<16)
		// the response may be incomplete
		_ = r.send(v.guestConfig.BearerToken, v.path(v.open)+"?labelSelector="+long)
		harness.Eventually(t, func(context.Context) error {
			if r.ended.Load() < 1 {
				return errors.New("the stream continues")
			}
			return nil
		})
	})
	t.Run("many terms", func(t *testing.T) { // the longest allowed request, which costs little
		terms := url.QueryEscape(strings.TrimSuffix(strings.Repeat("a!=b,", 1<<13), ","))
		v.expectCodes(t, v.guestConfig, v.path(v.open)+"?labelSelector="+terms, nil, http.StatusOK)
	})
}

// testLostRights revokes a permission during a watch. The watch must end, and a new one must be denied.
func (v *attackedServer) testLostRights(t *testing.T) {
	user := harness.NewUser(t, "former")
	revoke := user.Grant(t, v.open, readWidgets)
	config := v.As(user.Config(t))
	client, err := dynamic.NewForConfig(config)
	must(t, err)
	w, err := client.Resource(v.gvr).Namespace(v.open).Watch(t.Context(), metav1.ListOptions{})
	must(t, err)
	defer w.Stop()
	revoke()
	for range w.ResultChan() { // the server ends the watch after at most 6 s
	}
	harness.Eventually(t, func(context.Context) error {
		got, err := v.get(t, config, v.path(v.open)+"?watch=true", nil)
		if err == nil && got.code != http.StatusForbidden {
			err = fmt.Errorf("the next watch is answered with %d", got.code)
		}
		return err
	})
}

// memoryOf returns the memory of a process in bytes.
func memoryOf(t *testing.T, pid int) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	size, err := strconv.Atoi(string(regexp.MustCompile(`VmRSS:\s+(\d+) kB`).FindSubmatch(text)[1]))
	must(t, err)
	return size << 10
}

// getFromCluster sends a GET to the cluster and returns the answer.
func getFromCluster(t *testing.T, config *rest.Config, path string) string {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	must(t, err)
	got, err := client.Get(config.Host + path)
	must(t, err)
	defer got.Body.Close()
	text, err := io.ReadAll(got.Body)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return string(text)
}
