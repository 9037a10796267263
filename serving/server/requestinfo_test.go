package server

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/sets"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
)

var resolver = queryResolver{&apirequest.RequestInfoFactory{APIPrefixes: sets.NewString("api", "apis"),
	GrouplessAPIPrefixes: sets.NewString("api")}}

// TestQueriesAreLists verifies that a query needs the permission to list or watch its type, whatever its
// parameters are.
func TestQueriesAreLists(t *testing.T) {
	for path, want := range map[string]string{
		"/query/apis/g.x/v1/widgets":                                              "list g.x widgets  ",
		"/query/apis/g.x/v1/namespaces/n/widgets?q=namespace%3Dother":             "list g.x widgets n ",
		"/query/api/v1/namespaces/n/pods?watch=true":                              "watch  pods n ",
		"/query/apis/g.x/v1/widgets?fieldSelector=metadata.name%3Da":              "list g.x widgets  ",
		"/query/apis/g.x/v1/widgets?watch=1&fieldSelector=metadata.name%3Da":      "watch g.x widgets  ",
		"/query/apis/g.x/v1/namespaces/n/widgets/a":                               "get g.x widgets n a",
		"/apis/g.x/v1/namespaces/n/widgets?fieldSelector=metadata.name%3Da":       "list g.x widgets n a",
		"/query/query/apis/g.x/v1/widgets":                                        "/query/query/apis/g.x/v1/widgets",
		"/query/metrics":                                                          "/query/metrics",
		"/query//apis/g.x/v1/widgets?fieldSelector=metadata.name%3Da&watch=false": "list g.x widgets  ",
	} {
		info, err := resolver.NewRequestInfo(httptest.NewRequest(http.MethodGet, path, nil))
		if err != nil {
			t.Errorf("NewRequestInfo(%s): %v", path, err)
			continue
		}
		got := info.Path
		if info.IsResourceRequest {
			got = strings.Join([]string{info.Verb, info.APIGroup, info.Resource, info.Namespace,
				info.Name}, " ")
		}
		if got != want {
			t.Errorf("%s is authorized as %q, want %q", path, got, want)
		}
	}
}

// TestMatchesAuthorized verifies that requests that the cache and the authorization parse differently are
// rejected.
func TestMatchesAuthorized(t *testing.T) {
	for target, want := range map[string]bool{
		"/apis/g.x/v1/widgets":                                   true,
		"/apis/g.x/v1/namespaces/n/widgets/a":                    true,
		"/apis/g.x/v1/namespaces/n/widgets/a/status":             true,
		"/apis/g.x/v1/widgets?watch=true&sendInitialEvents=true": true,
		"/apis/g.x/v1/widgets?fieldSelector=metadata.name%3Da":   true,
		"/api/v1/namespaces":                                     true,
		"/api/v1/namespaces/n":                                   true,
		"/api/v1/namespaces/n/status":                            true,
		"/api/v1/namespaces/n/finalize":                          true,
		"/query/apis/g.x/v1/namespaces/n/widgets":                true,
		"/apis/g.x/v1/widgets?watch=false&watch=true":            true,
		"/apis/g.x/v1/watch/widgets":                             false,
		"/api/v1/watch/namespaces/n/pods":                        false,
		"/api/v1/proxy/namespaces/n/pods/a":                      false,
		"/apis/g.x/v1/widgets?watch=False":                       true,
		"/apis/g.x/v1/namespaces/n/widgets/a/status/more":        false,
		"/apis/g.x/v1//widgets":                                  false,
		"/apis/g.x/v1/namespaces//widgets":                       false,
		"/api/v1/namespaces/n/pods/a/log":                        true,
	} {
		if got := isServed(t, target); got != want {
			t.Errorf("isServed(%s) = %v, want %v", target, got, want)
		}
	}
}

// isServed reports whether the server would serve a request for a type.
func isServed(t *testing.T, target string) bool {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	r := &http.Request{Method: http.MethodGet, URL: u}
	info, err := resolver.NewRequestInfo(r)
	if err != nil || !info.IsResourceRequest {
		return false
	}
	parsed, ok := parseTypeRequest(r)
	return ok && matchesRequestInfo(info, parsed)
}

// FuzzMatchesAuthorized verifies that a served request has the type, verb, namespace and name that were
// authorized.
func FuzzMatchesAuthorized(f *testing.F) {
	for _, seed := range []string{
		"/apis/g.x/v1/namespaces/n/widgets/a?watch=1", "/query/api/v1/pods?fieldSelector=metadata.name=a",
		"/api/v1/namespaces/n/finalize",
		"/api/v1/watch/namespaces/a", "//api/v1/../secrets", "/query/query/api/v1/pods",
		"/api/v1/namespaces/a/namespaces/b",
	} {
		path, query, _ := strings.Cut(seed, "?")
		f.Add(path, query)
	}
	f.Fuzz(func(t *testing.T, path, query string) {
		r := &http.Request{Method: http.MethodGet, URL: &url.URL{Path: path, RawQuery: query}}
		info, err := resolver.NewRequestInfo(r)
		if err != nil || !info.IsResourceRequest {
			return
		}
		served, ok := parseTypeRequest(r)
		if !ok || !matchesRequestInfo(info, served) {
			return
		}
		inNamespace := served.Namespace == info.Namespace || served.GVR.Resource == "namespaces" &&
			served.Name == info.Namespace
		if served.GVR.Group != info.APIGroup || served.GVR.Resource != info.Resource || !inNamespace ||
			served.Subresource != info.Subresource {
			t.Errorf("%s?%s is authorized as %+v and served as %+v", path, query, info, served)
		}
		if _, queries := queryAsTypeRequest(r); info.Name != served.Name &&
			(queries || served.Name != "" || served.Verb == "get") {
			t.Errorf("%s?%s is authorized for %q and served for %q", path, query, info.Name, served.Name)
		}
	})
}
