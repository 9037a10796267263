package crdcached_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/answers"
)

const (
	testdata = "../../../testdata/"
	group    = "demo.crdcache.dev"
	demo     = "/apis/" + group + "/v1"
)

// TestRights checks what users can read from a server that caches the objects of testdata.
func TestRights(t *testing.T) {
	harness.Require(t, harness.WatchList, harness.SelectableFields, harness.ErrorWording)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
	s := harness.StartCrdcached(t, "types: ['*.demo.crdcache.dev', namespaces, configmaps]\npage: {enabled: true}\n")
	for name, test := range map[string]func(*testing.T, *harness.CrdcachedServer){
		"answers": testAnswers, "watches": testWatches, "queries": testQueries, "writing": testWriting,
		"paths": testPaths, "page": testPage,
	} {
		t.Run(name, func(t *testing.T) { test(t, s) })
	}
}

func newPolicyRule(verbs, resource string, names ...string) rbacv1.PolicyRule {
	g := group
	if resource == "namespaces" {
		g = ""
	}
	return rbacv1.PolicyRule{APIGroups: []string{g}, Resources: []string{resource},
		Verbs: strings.Split(verbs, ","), ResourceNames: names}
}

// newReaderConfigs returns configurations of users, by a description of their rights.
func newReaderConfigs(t *testing.T) map[string]*rest.Config {
	t.Helper()
	user := func(name, namespace string, rules ...rbacv1.PolicyRule) *rest.Config {
		u := harness.NewUser(t, name)
		if len(rules) > 0 {
			u.Grant(t, namespace, rules...)
		}
		return u.Config(t)
	}
	return map[string]*rest.Config{
		"no token": rest.AnonymousClientConfig(harness.Config(t)),
		"an unknown token": func() *rest.Config {
			c := rest.AnonymousClientConfig(harness.Config(t))
			c.BearerToken = "x.y.z"
			return c
		}(),
		"no rights": user("none", ""),
		"everywhere": user("everywhere", "", newPolicyRule("get,list,watch", "workloads"),
			newPolicyRule("get,list,watch", "namespaces")),
		"one namespace":        user("tenant", "payments", newPolicyRule("get,list,watch", "workloads")),
		"one object":           user("named", "payments", newPolicyRule("get,list,watch", "workloads", "ledger")),
		"get alone":            user("getter", "", newPolicyRule("get", "workloads")),
		"the status":           user("status", "payments", newPolicyRule("get", "workloads/status")),
		"one namespace itself": user("owner", "", newPolicyRule("get", "namespaces", "payments")),
	}
}

var requestPaths = []string{
	demo + "/workloads", demo + "/workloads?limit=2", demo + "/workloads?limit=two", demo +
		"/workloads?labelSelector=,", demo + "/workloads?resourceVersion=0",
	demo + "/workloads?fieldSelector=metadata.name%3Dledger", demo +
		"/workloads?fieldSelector=metadata.name%21%3Dledger", demo +
		"/workloads?fieldSelector=spec.nothing%3Da",
	demo + "/namespaces/payments/workloads", demo +
		"/namespaces/payments/workloads?fieldSelector=metadata.name%3Dledger",
	demo + "/namespaces/payments/workloads?fieldSelector=metadata.name%3Dledger,metadata.name%3Dcard-gateway",
	demo + "/namespaces/payments/workloads?fieldSelector=metadata.name%3Dledger&fieldSelector=metadata.name%3Dcard-gateway",
	demo + "/namespaces/payments/workloads/ledger", demo + "/namespaces/payments/workloads/none", demo +
		"/namespaces/payments/workloads/ledger?resourceVersion=0",
	demo + "/namespaces/payments/workloads/ledger/status", demo +
		"/namespaces/payments/workloads/ledger/scale", demo + "/namespaces/payments/workloads/ledger/exec",
	demo + "/namespaces/storefront/workloads", demo + "/namespaces/none/workloads", demo +
		"/namespaces/storefront/workloads/ledger",
	demo + "/routes", demo + "/environments", "/api/v1/namespaces", "/api/v1/namespaces/payments",
	"/api/v1/namespaces/none",
	"/api/v1/namespaces/payments/configmaps", "/version", "/api", "/apis", "/apis/" +
		group, demo, "/api/v1", "/openapi/v3", "/nothing", "/metrics", "/logs",
}

// testAnswers expects the API server's answer to each request of each user.
func testAnswers(t *testing.T, s *harness.CrdcachedServer) {
	for name, real := range newReaderConfigs(t) {
		t.Run(name, func(t *testing.T) {
			for _, path := range requestPaths {
				for _, accept := range []string{"application/json",
					"application/json;as=Table;v=v1;g=meta.k8s.io,application/json"} {
					compare(t, s, real, http.MethodGet, path, accept)
				}
			}
			if name == "everywhere" {
				return // testWriting covers users with all rights
			}
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch,
				http.MethodDelete} {
				compare(t, s, real, method, demo+"/namespaces/payments/workloads/ledger", "application/json")
				compare(t, s, real, method, demo+"/namespaces/payments/workloads", "application/json")
			}
		})
	}
}

// compare sends a request to both servers and compares the answers.
func compare(t *testing.T, s *harness.CrdcachedServer, real *rest.Config, method, path, accept string) {
	t.Helper()
	want, got := send(t, real, method, path, "Accept", accept), send(t, s.As(real), method, path,
		"Accept", accept)
	if want.Code != got.Code {
		t.Errorf("%s %s: %d, want %d: %.300s, want %.300s", method, path, got.Code, want.Code,
			got.Body, want.Body)
		return
	}
	if want.Code == http.StatusUnauthorized {
		if !strings.Contains(got.Body, "crdcached does not accept the credentials") {
			t.Errorf("%s %s: the refusal does not name crdcached: %s", method, path, got.Body)
		}
	} else if diff := cmp.Diff(answers.Comparable(want.Body), answers.Comparable(got.Body)); diff != "" {
		t.Errorf("%s %s, %s (-API server +crdcached):\n%.2000s", method, path, accept, diff)
	}
	if a, b := want.Header.Get("Content-Type"), got.Header.Get("Content-Type"); a != b {
		t.Errorf("%s %s: the type is %s, want %s", method, path, b, a)
	}
}

// testWatches checks that a watch requires the permission to watch. The permission to list is not enough.
func testWatches(t *testing.T, s *harness.CrdcachedServer) {
	lister := harness.NewUser(t, "lister")
	lister.Grant(t, "", newPolicyRule("list", "workloads"))
	for _, query := range []string{"watch=true", "watch=1", "watch=",
		"watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "watch=true&watch=false"} {
		compare(t, s, lister.Config(t), http.MethodGet, demo+"/workloads?"+query, "application/json")
	}
	got := send(t, s.As(lister.Config(t)), http.MethodGet, "/query"+demo+"/workloads?watch=true")
	if got.Code != http.StatusForbidden ||
		!strings.Contains(got.Body, `cannot watch resource \"workloads\"`) {
		t.Errorf("a watch of a query = %d, %s, want 403", got.Code, got.Body)
	}
}

// testQueries checks that a query requires the right to list its type, and that the response has the API
// server's text.
func testQueries(t *testing.T, s *harness.CrdcachedServer) {
	tenant := harness.NewUser(t, "tenant")
	tenant.Grant(t, "payments", newPolicyRule("get,list,watch", "workloads"))
	named := harness.NewUser(t, "named")
	named.Grant(t, "", newPolicyRule("get,list,watch", "workloads", "ledger"))
	real := tenant.Config(t)
	for _, path := range []string{demo + "/workloads", demo + "/namespaces/storefront/workloads",
		demo + "/routes"} {
		for _, params := range []string{"", "?q=namespace%3Dpayments", "?count=true", "?explain=true",
			"?values=namespace", "?fieldSelector=metadata.namespace%3Dpayments"} {
			want, got := send(t, real, http.MethodGet, path), send(t, s.As(real), http.MethodGet,
				"/query"+path+params)
			if want.Code != http.StatusForbidden || got.Code != want.Code || got.Body != want.Body {
				t.Errorf("%s%s: %d, want %d: %s, want %s", path, params, got.Code, want.Code,
					got.Body, want.Body)
			}
		}
	}
	path := "/query" + demo + "/workloads?fieldSelector=metadata.name%3Dledger"
	if got := send(t, s.As(named.Config(t)), http.MethodGet, path); got.Code != http.StatusForbidden {
		t.Errorf("a query with permission to read one object = %d, %.300s, want 403", got.Code, got.Body)
	}
	got := send(t, s.As(real), http.MethodGet, "/query"+demo+"/namespaces/payments/workloads?keys=true&q="+
		`namespace%3Dstorefront%7C%7Cnamespace%3Dpayments`+"&scan=true")
	if got.Code != http.StatusOK || strings.Contains(got.Body, "storefront/") ||
		!strings.Contains(got.Body, "payments/ledger") {
		t.Errorf("a query in a namespace = %d, %s, want its objects only", got.Code, got.Body)
	}
	if strings.Contains(got.Body, `"plan"`) {
		t.Errorf("the answer contains the plan, which counts objects of other namespaces: %s", got.Body)
	}
	got = send(t, s.As(real), http.MethodGet, "/query"+demo+"/namespaces/payments/workloads?explain=true")
	if got.Code != http.StatusBadRequest {
		t.Errorf("a plan in a namespace = %d, %s, want 400", got.Code, got.Body)
	}
	got = send(t, s.As(real), http.MethodGet, "/query"+demo+"/namespaces/payments/workloads?values=namespace")
	if got.Code == http.StatusOK && strings.Contains(got.Body, "storefront") {
		t.Errorf("the values contain other namespaces: %s", got.Body)
	}
}

// testWriting checks that no user can write, including users with all rights.
func testWriting(t *testing.T, s *harness.CrdcachedServer) {
	admin := s.As(harness.Config(t))
	for _, path := range []string{"/namespaces/payments/workloads", "/namespaces/payments/workloads/ledger"} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodPatch,
			http.MethodDelete} {
			got := send(t, admin, method, demo+path)
			if got.Code != http.StatusMethodNotAllowed || !strings.Contains(got.Body,
				` is not supported on resources of kind \"workloads.demo.crdcache.dev\"`) {
				t.Errorf("%s %s = %d, %s, want 405", method, path, got.Code, got.Body)
			}
		}
	}
	for _, verb := range []string{"exec", "attach", "portforward", "proxy"} {
		for _, rest := range []string{"", "/more"} {
			if got := send(t, admin, http.MethodGet, demo+"/namespaces/payments/workloads/ledger/"+verb+
				rest); got.Code != http.StatusMethodNotAllowed && got.Code != http.StatusMisdirectedRequest &&
				got.Code != http.StatusNotFound {
				t.Errorf("%s%s = %d, %s, want an error", verb, rest, got.Code, got.Body)
			}
		}
	}
}

// TestSecretsAreNotServed checks that patterns, names and references do not expose Secrets unless the config
// selects them.
func TestSecretsAreNotServed(t *testing.T) {
	refused := exec.CommandContext(t.Context(), harness.Crdcached(t), "--kubeconfig", harness.CrdcachedKubeconfig(t),
		"--type=*", "--type=secrets", "--bind-address=127.0.0.1", "--secure-port=0")
	if out, err := refused.CombinedOutput(); err == nil ||
		!strings.Contains(string(out), "secrets: secrets are cached only if the config sets secrets: true") {
		t.Errorf("with the type secrets, crdcached ends with %v and %s, want an error about Secrets", err, out)
	}
	s := harness.StartCrdcached(t, "types: ['*']\n")
	admin := harness.Config(t)
	for _, path := range []string{"/api/v1/secrets", "/api/v1/namespaces/default/secrets",
		"/api/v1/namespaces/default/secrets/a", "/api/v1/secrets?watch=true", "/query/api/v1/secrets"} {
		if got := send(t, s.As(admin), http.MethodGet, path); got.Code != http.StatusMisdirectedRequest ||
			!strings.Contains(got.Body, "crdcached does not cache secrets") {
			t.Errorf("%s = %d, %s, want 421", path, got.Code, got.Body)
		}
	}
	got := send(t, s.As(admin), http.MethodGet, "/readyz/types")
	if strings.Contains(got.Body, "secrets") || !strings.Contains(got.Body, "[+]configmaps.v1. ") {
		t.Errorf("the types = %d, %s, want no Secrets", got.Code, got.Body)
	}
	allowed := harness.StartCrdcached(t, "types: [secrets]\nsecrets: true\n")
	compare(t, allowed, admin, http.MethodGet, "/api/v1/secrets", "application/json")
}

// testPaths checks that no path bypasses authorization.
func testPaths(t *testing.T, s *harness.CrdcachedServer) {
	tenant := harness.NewUser(t, "tenant")
	tenant.Grant(t, "payments", newPolicyRule("get,list,watch", "workloads"))
	config := s.As(tenant.Config(t))
	for _, path := range []string{
		"//apis/demo.crdcache.dev/v1/workloads", demo + "//workloads", demo +
			"/namespaces/payments/../storefront/workloads",
		demo + "/namespaces/payments/workloads/../../storefront/workloads", demo +
			"/namespaces/payments%2F..%2Fstorefront/workloads",
		demo + "/namespaces/payments/workloads%2F..%2F..%2F..%2Fworkloads", demo + "/watch/workloads", demo +
			"/watch/namespaces/storefront/workloads",
		"/query/query" + demo + "/workloads", "/query/../" + demo + "/workloads", "/query/" + demo +
			"/workloads", "/openapi/../apis/demo.crdcache.dev/v1/workloads",
		"/api/../apis/demo.crdcache.dev/v1/workloads", "/page/", "/page/open", "/readyz/types", "/metrics",
		"/debug/pprof/heap", "/debug/flags/v",
		demo + "/namespaces/storefront/workloads/", demo + "/namespaces//workloads",
	} {
		if got := send(t, config, http.MethodGet, path); got.Code == http.StatusOK ||
			strings.Contains(got.Body, `"uid"`) {
			t.Errorf("%s = %d, %.300s, want an error", path, got.Code, got.Body)
		}
	}
	for name, bytes := range map[string]int{"selector": 200_000, "other": 200_000} {
		path := fmt.Sprintf("%s/namespaces/payments/workloads?%s=%s", demo, name, strings.Repeat("a", bytes))
		if got := send(t, config, http.MethodGet, path); got.Code != http.StatusRequestURITooLong {
			t.Errorf("a URL of %d bytes = %d, want 414", len(path), got.Code)
		}
	}
}

// testPage checks that a user needs the right to get the path of the page. The page shows the types that the
// user may list, in all namespaces or in named ones.
func testPage(t *testing.T, s *harness.CrdcachedServer) {
	pages := rbacv1.PolicyRule{NonResourceURLs: []string{"/page/*"}, Verbs: []string{"get"}}
	user := func(name, namespace string, rules ...rbacv1.PolicyRule) *rest.Config {
		u := harness.NewUser(t, name)
		u.Grant(t, "", pages)
		if len(rules) > 0 {
			u.Grant(t, namespace, rules...)
		}
		return s.As(u.Config(t))
	}
	stranger := harness.NewUser(t, "stranger")
	stranger.Grant(t, "", newPolicyRule("list", "workloads"))
	const (
		workloads, routes = "/api/type?type=workloads.demo.crdcache.dev%2Fv1",
			"/api/type?type=routes.demo.crdcache.dev%2Fv1"
		ledger, dns = "/api/object?type=workloads.demo.crdcache.dev%2Fv1&key=payments%2Fledger",
			"/api/object?type=workloads.demo.crdcache.dev%2Fv1&key=edge%2Fdns"
	)
	visitor, tenant := user("visitor", "", newPolicyRule("list", "workloads")), user("tenant", "payments",
		newPolicyRule("list", "workloads"))
	withoutRights := user("nobody", "")
	for _, visit := range []struct {
		who        *rest.Config
		open, base string
		codes      map[string]int
	}{
		{s.As(stranger.Config(t)), "/page/open", "/page", map[string]int{"/": 403, workloads: 403}},
		{withoutRights, "/page/open", "/page", map[string]int{"/open": 200, "/": 200, workloads: 403,
			ledger: 403}},
		{visitor, "/page/open", "/page", map[string]int{"/": 200, workloads: 200, ledger: 200,
			dns: 200, routes: 403}},
		{tenant, "/page/open", "/page", map[string]int{"/": 200, workloads: 403}},
		{tenant, "/page/open?namespace=edge", "/page/namespaces/edge",
			map[string]int{"/": 200, workloads: 403}},
		{tenant, "/page/open?namespace=payments", "/page/namespaces/payments",
			map[string]int{"/": 200, workloads: 200, ledger: 200, dns: 404, routes: 403}},
		{tenant, "/page/open?namespace=payments", "/page", map[string]int{workloads: 403, ledger: 403}},
		{tenant, "/page/open?namespace=payments,edge", "/page/namespaces/edge,payments",
			map[string]int{ledger: 200, dns: 404}},
		{tenant, "/page/open?namespace=payments", "/page/namespaces/edge",
			map[string]int{workloads: 403, dns: 403}},
		{tenant, "/page/open?namespace=..", "/page/namespaces/..,a", map[string]int{ledger: 400}},
		{s.As(harness.Config(t)), "/page/open", "/page", map[string]int{"/": 200, workloads: 200,
			dns: 200, routes: 200}},
	} {
		browser := newBrowser(t, visit.who)
		browser(visit.open)
		for path, want := range visit.codes {
			if got, text := browser(visit.base + path); got != want {
				t.Errorf("%s, then %s: %d, want %d: %.300s", visit.open, path, got, want, text)
			}
		}
	}
	// The browser may have a cookie from another replica.
	if got := send(t, s.As(harness.Config(t)), http.MethodGet, "/page"+ledger); got.Code != http.StatusOK {
		t.Errorf("the page with another replica's cookie = %d, %s, want 200", got.Code, got.Body)
	}
}

// newBrowser returns a function that gets a path as a user and keeps cookies.
func newBrowser(t *testing.T, user *rest.Config) func(path string) (code int, body string) {
	t.Helper()
	client, err := rest.HTTPClientFor(user)
	must(t, err)
	if client.Jar, err = cookiejar.New(nil); err != nil {
		t.Fatal(err)
	}
	return func(path string) (int, string) {
		t.Helper()
		response, err := client.Get(user.Host + path)
		must(t, err)
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		must(t, err)
		return response.StatusCode, string(text)
	}
}
