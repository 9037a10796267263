package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/internal/expression"
)

var (
	getOptions    = metav1.GetOptions{}
	updateOptions = metav1.UpdateOptions{}
	deleteOptions = metav1.DeleteOptions{}
)

// query requests workloads; parameters alternates names and values.
func (f *fixture) query(namespace string, parameters ...string) (Answer, string) {
	f.Helper()
	query := url.Values{}
	for i := 0; i < len(parameters); i += 2 {
		query.Add(parameters[i], parameters[i+1])
	}
	w := get(f.T, f.server, QueryPath(demoGroup, "v1", namespace, "workloads")+"?"+query.Encode())
	var answer Answer
	if w.Code != http.StatusOK {
		var status metav1.Status
		f.must(json.Unmarshal(w.Body.Bytes(), &status))
		return answer, status.Message
	}
	f.must(json.Unmarshal(w.Body.Bytes(), &answer))
	if answer.Kind != AnswerKind || answer.ResourceVersion == "" {
		f.Errorf("the answer is %+v, want its kind and resource version", answer)
	}
	return answer, ""
}

// TestQuery verifies the objects, keys, pages, counts, values and groups of queries.
func TestQuery(t *testing.T) {
	s := newFixture(t, Options{})
	allKeys, _ := s.query("", "q", "port=8080", "keys", "true")
	if len(allKeys.Keys) < 2 {
		t.Fatalf("the keys are %q, want at least 2", allKeys.Keys)
	}
	objects, _ := s.query("", "q", "port=8080")
	var keys []string
	for _, item := range objects.Items {
		var o metav1.PartialObjectMetadata
		s.must(json.Unmarshal(item, &o))
		keys = append(keys, o.Namespace+"/"+o.Name)
	}
	if diff := cmp.Diff(allKeys.Keys, keys); diff != "" || !strings.Contains(objects.Plan, "port") {
		t.Errorf("the plan is %[2]s; keys of the objects (-want +got):\n%[1]s", diff, objects.Plan)
	}
	page, _ := s.query("", "q", "port=8080", "keys", "true", "limit", "1")
	rest, _ := s.query("", "q", "port=8080", "keys", "true", "continue", page.Continue)
	if diff := cmp.Diff(allKeys.Keys, append(page.Keys, rest.Keys...)); diff != "" {
		t.Errorf("keys of all pages (-want +got):\n%s", diff)
	}
	if count, _ := s.query("", "q", "port=8080", "count", "true"); count.Count == nil ||
		*count.Count != len(allKeys.Keys) {
		t.Errorf("Count = %v, want %d", count.Count, len(allKeys.Keys))
	}
	values, _ := s.query("", "values", "port")
	groups, _ := s.query("", "groupBy", "port", "compute", "max(.spec.replicas)")
	if len(values.Values) == 0 || len(groups.Groups) < len(values.Values) ||
		groups.Groups[0].Results[0].Value == "" {
		t.Errorf("the values are %+v and the groups %+v, want at least one group per value", values.Values,
			groups.Groups)
	}
	inNamespace, _ := s.query("payments", "q", "port=8080", "keys", "true")
	for _, key := range inNamespace.Keys {
		if !strings.HasPrefix(key, "payments/") {
			t.Errorf("the query returned the key %s, want only the namespace payments", key)
		}
	}
	if plan, _ := s.query("", "q", "port=8080", "explain", "true"); plan.Plan == "" || plan.Items != nil {
		t.Errorf("Plan = %q, want a plan without objects", plan.Plan)
	}
	if labelled, _ := s.query("", "labelSelector", "demo.crdcache.dev/team=checkout", "scan", "true", "keys",
		"true"); len(labelled.Keys) == 0 {
		t.Error("the label selector selects no keys, want at least one")
	}
}

// TestInvalidQueries checks the errors of invalid queries.
func TestInvalidQueries(t *testing.T) {
	s := newFixture(t, Options{})
	for want, parameters := range map[string][]string{
		"port=\n":            {"q", "port="},
		`no index "nothing"`: {"q", "nothing=1"},
		"limit is":           {"limit", "-1"},
		"continue token":     {"continue", "x"},
		"index":              {"q", `where("@.spec.replicas > 1")`},
		"about references":   {"q", "dangling(environment)"},
		"found '=='":         {"labelSelector", "=="},
		"fieldSelector is":   {"q", "port=8080", "fieldSelector", "metadata.name=ledger"},
		"measure":            {"compute", "x"},
	} {
		if _, got := s.query("", parameters...); !strings.Contains(got, want) {
			t.Errorf("the error of the query %q = %q, want %q", parameters, got, want)
		}
	}
	for path, want := range map[string]int{
		QueryPath(demoGroup, "v1", "", "routes"):    http.StatusNotFound,
		QueryPath(demoGroup, "v2", "", "workloads"): http.StatusNotFound,
		"/query/apis/" + demoGroup:                  http.StatusBadRequest,
		QueryPath("", "v1", "", "namespaces"):       http.StatusOK,
	} {
		if w := get(t, s.server, path); w.Code != want {
			t.Errorf("%s = %d, want %d: %s", path, w.Code, want, w.Body)
		}
	}
}

// TestWatchOfQuery verifies that a watch of a query sends an event when an object begins or ceases to
// match.
func TestWatchOfQuery(t *testing.T) {
	s := newFixture(t, Options{})
	s.writeEnvironment("in", "moon")
	s.writeEnvironment("out", "earth")
	watch := s.watch(QueryPath(demoGroup, "v1", "", "environments") +
		"?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan" +
		"&allowWatchBookmarks=true&q=" + url.QueryEscape(`where("@.spec.stage == \"moon\"")`))
	expectEvent := func(want string) {
		t.Helper()
		if e, _ := watch.next(); e.Type+" "+e.Object.Metadata.Name != want {
			t.Errorf("the watch sent %s %s, want %s", e.Type, e.Object.Metadata.Name, want)
		}
	}
	expectEvent("ADDED in")
	expectEvent("BOOKMARK ")
	s.writeEnvironment("out", "mars")
	s.writeEnvironment("out", "moon")
	expectEvent("ADDED out")
	s.writeEnvironment("in", "mars")
	expectEvent("DELETED in")
	s.deleteEnvironment("in")
	s.deleteEnvironment("out")
	expectEvent("DELETED out")
}

// stageExpression fails on broken environments.
type stageExpression struct{ expression.Expression }

func (stageExpression) Eval(_ context.Context, object map[string]any) (any, error) {
	stage, _, _ := unstructured.NestedString(object, "spec", "stage")
	if stage == "broken" {
		return nil, errors.New("cost limit exceeded")
	}
	return stage == "moon", nil
}

func (stageExpression) String() string { return "stage" }

// TestFailedExpressionEndsWatch verifies that a watch of a query ends with an error if the expression fails
// on an initial object or on a changed object.
func TestFailedExpressionEndsWatch(t *testing.T) {
	expression.SetCompiler(func(string) (expression.Expression, error) { return stageExpression{}, nil })
	s := newFixture(t, Options{})
	s.writeEnvironment("in", "moon")
	path := QueryPath(demoGroup, "v1", "", "environments") + "?watch=true&sendInitialEvents=true&" +
		"resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&q=" + url.QueryEscape(`cel("stage")`)
	first := s.watch(path)
	var got []string
	for range 2 {
		e, _ := first.next()
		got = append(got, fmt.Sprint(e.Type, " ", e.Object.Metadata.Name))
	}
	s.writeEnvironment("in", "broken")
	for _, watch := range []*stream{first, s.watch(path)} {
		e, _ := watch.next()
		_, more := watch.next()
		got = append(got, fmt.Sprint(e.Type, " ", e.Object.Code, " ", more))
	}
	want := []string{"ADDED in", "BOOKMARK ", "ERROR 400 false", "ERROR 400 false"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

// TestStoppedInformer verifies that when its informer stops, a type is no longer served, and its watches end.
func TestStoppedInformer(t *testing.T) {
	s := newFixture(t, Options{})
	w := s.watch("/apis/" + demoGroup + "/v1/environments?watch=true&resourceVersion=" + s.writeEnvironment("moon-1",
		"dev").GetResourceVersion())
	s.must(s.factory.Shutdown(context.Background()))
	for { // until the watch ends
		if _, ok := w.next(); !ok {
			break
		}
	}
	s.writeEnvironment("moon-2", "dev")
	answer := get(t, s.server, "/apis/"+demoGroup+"/v1/environments/moon-2?resourceVersion=0")
	if answer.Code != 200 || answer.Header().Get(ServedHeader) != servedByCluster {
		t.Errorf("a later request = %d, served by the %s, want 200 by the cluster", answer.Code,
			answer.Header().Get(ServedHeader))
	}
	if err := s.server.WaitForSync(t.Context(), environments.GroupResource()); !errors.Is(err,
		dynamicinformer.ErrStopped) {
		t.Errorf("WaitForSync() of a stopped informer = %v, want ErrStopped", err)
	}
}

// TestWaitingEnds verifies that WaitForSync fails if its type is dropped, and waits for the new informer if
// it is replaced.
func TestWaitingEnds(t *testing.T) {
	s := newFixture(t, Options{})
	absent := schema.GroupVersionResource{Group: demoGroup, Version: "v1", Resource: "absents"}
	informer, err := s.factory.ForResource(absent)
	s.must(err)
	s.must(s.server.AddType(informer))
	done := make(chan error, 1)
	wait := func(gvr schema.GroupVersionResource) {
		started := make(chan struct{})
		go func() { // ends with the next step
			close(started)
			done <- s.server.WaitForSync(context.Background(), gvr.GroupResource())
		}()
		<-started
	}
	wait(absent)
	s.server.RemoveType(absent.GroupResource())
	if err := <-done; err == nil {
		t.Error("WaitForSync() of a dropped type succeeded, want an error")
	}
	workloadsInformer, err := s.factory.ForResource(workloads)
	s.must(err)
	later := workloads.GroupResource().WithVersion("v0") // this version does not exist
	informer, err = s.factory.ForResource(later)
	s.must(err)
	s.must(s.server.AddType(informer))
	wait(workloads)
	s.must(s.server.AddType(workloadsInformer))
	s.must(<-done)
}

var environmentsPath = "/apis/" + demoGroup + "/v1/environments"

// parseVersion parses a resource version. It returns 0 if the text is invalid.
func parseVersion(version string) uint64 {
	n, _ := strconv.ParseUint(version, 10, 64)
	return n
}

// awaitVersion waits until the cache of a type has the version of an object.
func (f *fixture) awaitVersion(o *unstructured.Unstructured) {
	f.Helper()
	version := parseVersion(o.GetResourceVersion())
	informer := f.server.cacheOf(environments.GroupResource()).informer
	for {
		h := informer.History()
		if h.ResourceVersion >= version {
			return
		}
		select {
		case <-h.Next:
		case <-f.Context().Done():
			f.Fatal("timed out waiting for the cache to reach the version")
		}
	}
}

// TestRelistOfTheInformerExpiresWatches verifies that when the API server ends the informer's watch with 410,
// watches expire, because the changes before the next list are unordered.
func TestRelistOfTheInformerExpiresWatches(t *testing.T) {
	s := newFixture(t, Options{})
	o := s.writeEnvironment("w", "a")
	s.awaitVersion(o)
	watch := s.watch(environmentsPath + "?watch=true&resourceVersion=" + o.GetResourceVersion())
	o = o.DeepCopy()
	s.must(unstructured.SetNestedField(o.Object, "b", "spec", "stage"))
	s.must(s.cluster.Restore(o))
	if e, _ := watch.next(); e.Type != "ERROR" || e.Object.Code != http.StatusGone {
		t.Errorf("the watch sent %+v, want ERROR with code 410", e)
	}
	if e, more := watch.next(); more {
		t.Errorf("the watch continues with the event %+v, want its end", e)
	}
}

// TestRedefinitionEndsWatches verifies that when the definition of a type changes, its watches end.
func TestRedefinitionEndsWatches(t *testing.T) {
	s := newFixture(t, Options{})
	watch := s.watch(environmentsPath + "?watch=true&allowWatchBookmarks=true&resourceVersion=" +
		s.writeEnvironment("w", "a").GetResourceVersion())
	definition, err := s.cluster.Client().Resource(crd.GVR).Get(t.Context(), "environments."+demoGroup, getOptions)
	s.must(err)
	labelled := definition.DeepCopy()
	labelled.SetLabels(map[string]string{"no": "matter"})
	_, err = s.cluster.Client().Resource(crd.GVR).Update(t.Context(), labelled, updateOptions)
	s.must(err)
	definition, err = s.cluster.Client().Resource(crd.GVR).Get(t.Context(), "environments."+demoGroup, getOptions)
	s.must(err)
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	versions[0].(map[string]any)["additionalPrinterColumns"] = []any{map[string]any{"name": "Moon",
		"type": "string", "jsonPath": ".spec.region"}}
	s.must(unstructured.SetNestedSlice(definition.Object, versions, "spec", "versions"))
	_, err = s.cluster.Client().Resource(crd.GVR).Update(t.Context(), definition, updateOptions)
	s.must(err)
	for {
		if _, more := watch.next(); !more {
			break
		}
	}
}
