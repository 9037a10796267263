package server

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	apirequest "k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/apiserver/pkg/sharding"

	"github.com/crdcache/crdcache/serving/readapi"
)

// reviewer answers reviews after 5 ms. A user can list the resources whose names start with the user's name.
type reviewer struct {
	mu            sync.Mutex
	reviews       int
	concurrent    int // concurrent reviews, and their maximum
	maxConcurrent int
	isDenying     bool
}

func (r *reviewer) Authorize(_ context.Context,
	a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.mu.Lock()
	r.reviews++
	r.concurrent++
	r.maxConcurrent = max(r.maxConcurrent, r.concurrent)
	r.mu.Unlock()
	time.Sleep(5 * time.Millisecond)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.concurrent--
	if !r.isDenying && strings.HasPrefix(a.GetResource(), a.GetUser().GetName()) {
		return authorizer.DecisionAllow, "", nil
	}
	return authorizer.DecisionNoOpinion, "", nil
}

func (r *reviewer) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.reviews
}

// TestReviewsAreBounded opens many types in many namespaces as one user. It verifies that types appear as
// reviews are answered, that another user is not delayed, and that the number of reviews stays within its
// limits.
func TestReviewsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reviews := &reviewer{}
		r := newRights(reviews)
		defer r.close()
		// readRights returns the number of types whose cluster-wide permission is known, and the numbers of
		// the user's granted and unknown permissions.
		readRights := func(name string, namespaces int) (known, granted, unknown int) {
			r.withAnswers(&user.DefaultInfo{Name: name}, func(answers *userAnswers) {
				for i := range 258 {
					gvr := schema.GroupVersionResource{Group: "many.example", Version: "v1",
						Resource: fmt.Sprintf("%c%d", "abc"[i%3], i)}
					all, err := answers.canList(listAccess{gvr, ""}, i%2 == 1)
					if err != nil {
						unknown++
						continue
					}
					known++
					if all {
						granted++
						continue
					}
					for n := range namespaces {
						if _, err := answers.canList(listAccess{gvr, fmt.Sprintf("ns-%d", n)},
							i%2 == 1); err != nil {
							unknown++
						}
					}
				}
			})
			return known, granted, unknown
		}
		began := time.Now()
		advance := func(d time.Duration) { time.Sleep(d); synctest.Wait() }
		readRights("none", 16)
		advance(time.Second / 5)
		r.withAnswers(&user.DefaultInfo{Name: "none"}, func(answers *userAnswers) {
			for right, answer := range answers.answers {
				if right.namespace == "" && answer.hasObjects && answer.answeredAt.IsZero() {
					t.Errorf("%s has objects and is not reviewed before the types without objects", right.gvr)
				}
			}
		})
		advance(time.Second * 4 / 5)
		if known, _, _ := readRights("none", 16); known < 200 {
			t.Errorf("after a second, the permissions of %d types are known, want at least 200", known)
		}
		advance(5 * time.Second)
		readRights("none", 16)
		readRights("a", 0)
		advance(5 * time.Second)
		if known, granted, _ := readRights("a", 0); known < 200 || granted < 60 {
			t.Errorf("while another user has many reviews, %d types are known after 5 s and %d are granted, want 200 and 60",
				known, granted)
		}
		for range 60 {
			advance(time.Second)
			readRights("none", 16)
			readRights("a", 0)
		}
		if _, _, unknown := readRights("none", 16); unknown > 0 {
			t.Errorf("%d permissions are unknown after a minute, want 0", unknown)
		}
		if most := reviewBurst + int(time.Since(began).Seconds()*reviewsPerSecond); reviews.count() > most ||
			reviews.maxConcurrent > 2*maxReviewsOfUser {
			t.Errorf("%d reviews with %d concurrent ones, want at most the limits", reviews.count(),
				reviews.maxConcurrent)
		}
		reviews.mu.Lock()
		reviews.isDenying = true
		reviews.mu.Unlock()
		for range 45 {
			advance(time.Second)
			readRights("none", 16)
			readRights("a", 0)
		}
		if _, granted, _ := readRights("a", 0); granted > 0 {
			t.Errorf("%d revoked permissions are still granted after 45 s, want 0", granted)
		}
		advance(2 * maxUnusedAge)
		readRights("b", 0)
		if ids := slices.Collect(rightsUsers(r)); len(ids) != 1 {
			t.Errorf("users with cached permissions are %v, want 1", ids)
		}
	})
}

func rightsUsers(r *accessReviewer) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for id := range r.mu.users {
			if !yield(id) {
				return
			}
		}
	}
}

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
	must(t, err)
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

// FuzzShardSelector compares the parser of selectors with that of API servers.
func FuzzShardSelector(f *testing.F) {
	for _, text := range []string{
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')",
		" shardRange ( object.metadata.namespace,\n'0x0000000000000000', \"0x10000000000000000\" )\t",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x4000000000000000') || shardRange(object.metadata.uid, '0xc000000000000000', '0x10000000000000000')",
		"shardRange(object.metadata.uid, '0x8000000000000000', '0x8000000000000000')",
		"shardRange(object.metadata.uid, '0x0', '0x1')",
		"shardRange(object.metadata.uid, '0x0000000000000000', '0x0000000000000000f')",
		"shardRange(object.metadata.name, '0x0000000000000000', '0x8000000000000000')", "||",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := readapi.ParseShardSelector(text)
		if err != nil {
			return // parentheses and other CEL strings are not supported here
		}
		want, err := sharding.Parse(text)
		if err != nil {
			t.Fatalf("Parse(%q) succeeded, but API servers return %v", text, err)
		}
		if got.String() != want.String() {
			t.Errorf("%q is parsed as %q, API servers return %q", text, got, want)
		}
		for _, uid := range []types.UID{"", "a", types.UID(text)} {
			object := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{UID: uid, Namespace: text}}
			selects, err := want.Matches(object)
			if err != nil || selects != got.Contains(got.Key.Hash(object)) {
				t.Errorf("selector %q for the UID %q: %v, %v", text, uid, selects, err)
			}
		}
	})
}
