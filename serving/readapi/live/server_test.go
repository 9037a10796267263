package live

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

const (
	asTable   = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
	asPartial = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json"
)

// TestAnswersEqualThoseOfTheCluster sends the same requests to the server and to the cluster. It also checks
// which of the two has answered.
func TestAnswersEqualThoseOfTheCluster(t *testing.T) {
	s := newFixture(t, Options{})
	inPayments := "/apis/" + demoGroup + "/v1/namespaces/payments/workloads"
	for _, tt := range []struct{ path, accept, servedBy string }{
		{"/apis/" + demoGroup + "/v1/workloads", "", servedByCache},
		{inPayments, "", servedByCache},
		{inPayments + "?limit=2", "", servedByCache},
		{inPayments + "?labelSelector=demo.crdcache.dev/team%3Dcheckout", "", servedByCache},
		{inPayments + "?fieldSelector=metadata.name%3Dapi", "", servedByCache},
		{inPayments, asTable, servedByCache},
		{inPayments, "application/vnd.kubernetes.protobuf,application/json", servedByCache},
		{inPayments, "application/yaml", servedByCache},
		{"/apis/" + demoGroup + "/v1/environments?fieldSelector=spec.stage%3Dproduction", "", servedByCache},
		{"/apis/" + demoGroup + "/v1/environments?fieldSelector=spec.nothing%3Da", "", servedByCache},
		{"/apis/" + demoGroup + "/v1/environments?resourceVersion=1", "", servedByCache},
		{"/apis/" + demoGroup + "/v1/environments?resourceVersion=x", "", servedByCache},
		{"/api/v1/namespaces", "", servedByCache},
		{"/api/v1/namespaces/payments?resourceVersion=0", "", servedByCache},
		{"/api/v1/namespaces/payments?resourceVersion=0", asPartial, servedByCache},
		{"/api/v1/namespaces/none?resourceVersion=0", "", servedByCache},
		{"/api/v1/namespaces/payments", "", servedByCluster},
		{"/api/v1/namespaces", asTable, servedByCluster},
		{"/api/v1/namespaces?fieldSelector=status.phase%3DActive", "", servedByCluster},
		{"/api/v1/namespaces/payments/status", "", servedByCluster},
		{"/api/v1/configmaps", "", servedByCluster},
		{"/apis/" + demoGroup + "/v1/routes", "", servedByCluster},
		{"/apis", "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io", servedByCluster},
		{"/openapi/v3", "", servedByCluster},
		{"/version", "", servedByCluster},
		{"/apis/nothing.example.com/v1/things", "", servedByCluster},
	} {
		t.Run(tt.path+" "+tt.accept, func(t *testing.T) {
			var headers []string
			if tt.accept != "" {
				headers = []string{"Accept", tt.accept}
			}
			want, got := get(t, s.cluster, tt.path, headers...), get(t, s.server, tt.path, headers...)
			if got.Code != want.Code ||
				got.Header().Get("Content-Type") != want.Header().Get("Content-Type") {
				t.Errorf("the response is %d of %s, the cluster's %d of %s", got.Code,
					got.Header().Get("Content-Type"), want.Code, want.Header().Get("Content-Type"))
			}
			if diff := cmp.Diff(decodeJSON(t, want.Body.String()), decodeJSON(t,
				got.Body.String())); diff != "" {
				t.Errorf("response (-cluster +server):\n%s", diff)
			}
			if by := got.Header().Get(ServedHeader); by != tt.servedBy {
				t.Errorf("answered by %q, want the %s", by, tt.servedBy)
			}
		})
	}
}

// TestNothingIsWritten verifies that requests with side effects are rejected.
func TestNothingIsWritten(t *testing.T) {
	s := newFixture(t, Options{})
	for _, r := range []struct{ method, path string }{
		{http.MethodPost, "/apis/" + demoGroup + "/v1/environments"},
		{http.MethodDelete, "/apis/" + demoGroup + "/v1/environments/nova"},
		{http.MethodPatch, "/api/v1/namespaces/payments"},
		{http.MethodPut, "/api/v1/namespaces/payments/finalize"},
		{http.MethodGet, "/api/v1/namespaces/payments/pods/a/exec?command=rm"},
		{http.MethodGet, "/api/v1/namespaces/payments/pods/a/portforward"},
		{http.MethodGet, "/api/v1/namespaces/payments/services/a/proxy/x/y"},
		{http.MethodGet, "/api/v1/nodes/a/proxy/run"},
		{http.MethodGet, "/api/v1/namespaces/a/proxy"},
		{http.MethodPost, "/query/apis/" + demoGroup + "/v1/environments"},
	} {
		w := httptest.NewRecorder()
		s.server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), r.method, r.path,
			strings.NewReader("{}")))
		if w.Code != http.StatusMethodNotAllowed {
			t.Errorf("%s %s = %d, want 405: %s", r.method, r.path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/api/v1/../v1/nodes/a/proxy", "/api/v1//nodes/a/proxy",
		"/api/v1/nodes/a/./proxy/x", "//api/v1/nodes", "//apis/" + demoGroup + "/v1"} {
		if w := get(t, s.server, path); w.Code != http.StatusNotFound || w.Header().Get(ServedHeader) != "" {
			t.Errorf("%s = %d by %q, want 404: %s", path, w.Code, w.Header().Get(ServedHeader), w.Body)
		}
	}
}

// TestListIsFresh verifies that a list contains all changes before it, regardless of other changes in the
// cluster.
func TestListIsFresh(t *testing.T) {
	s := newFixture(t, Options{})
	names := func() string {
		var list unstructured.UnstructuredList
		s.must(list.UnmarshalJSON(get(t, s.server,
			"/apis/"+demoGroup+"/v1/environments?labelSelector=!demo.crdcache.dev/continent").Body.Bytes()))
		var names []string
		for _, o := range list.Items {
			names = append(names, o.GetName())
		}
		return strings.Join(names, " ")
	}
	for i := range 5 { // each list waits for the type's watch
		name := fmt.Sprint("new-", i)
		s.writeEnvironment(name, "staging")
		s.must(s.cluster.Load(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name,
				"namespace": "payments"},
		}}))
		if got := names(); !strings.Contains(got+" ", name+" ") {
			t.Fatalf("%s is missing in a list that began after its creation: %s", name, got)
		}
		s.deleteEnvironment(name)
		if got := names(); strings.Contains(got+" ", name+" ") {
			t.Fatalf("%s is in a list that began after its deletion: %s", name, got)
		}
	}
}

// TestIndexesAreFieldSelectors verifies that an index can be used as a field selector of lists and watches.
func TestIndexesAreFieldSelectors(t *testing.T) {
	s := newFixture(t, Options{})
	for selector, want := range map[string]int{
		"port=8080": 0, "port!=8080": 0, "port=8080,metadata.namespace=payments": 0, "team=nobody": 0,
		"port=none": 0,
	} {
		list, err := s.client(workloads).List(t.Context(), metav1.ListOptions{FieldSelector: selector})
		s.must(err)
		all, err := s.cluster.Client().Resource(workloads).List(t.Context(), metav1.ListOptions{})
		s.must(err)
		for _, o := range all.Items {
			ports, _, _ := unstructured.NestedSlice(o.Object, "spec", "ports")
			hasPort := false
			for _, p := range ports {
				hasPort = hasPort || fmt.Sprint(p.(map[string]any)["port"]) == "8080"
			}
			team := o.GetLabels()["demo.crdcache.dev/team"]
			switch selector {
			case "port=8080":
				want += boolToInt(hasPort)
			case "port!=8080":
				want += boolToInt(!hasPort)
			case "port=8080,metadata.namespace=payments":
				want += boolToInt(hasPort && o.GetNamespace() == "payments")
			case "team=nobody":
				want += boolToInt(team == "" || team == "nobody")
			}
		}
		if len(list.Items) != want || selector == "port=8080" && want == 0 {
			t.Errorf("the field selector %s selects %d objects, want %d", selector, len(list.Items), want)
		}
	}
	if _, err := s.client(workloads).List(t.Context(),
		metav1.ListOptions{FieldSelector: "condition=a"}); err == nil {
		t.Error("List() by a composite index succeeded, want an error")
	}
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestPrunedHeader verifies that a header reports that the objects lack pruned fields.
func TestPrunedHeader(t *testing.T) {
	s := newFixture(t, Options{})
	handle, err := s.factory.Acquire(environments, dynamicinformer.ResourceOptions{
		Prune: dynamicinformer.Prune{Presets: []dynamicinformer.PrunePreset{
			dynamicinformer.PruneManagedFields}},
	})
	s.must(err)
	defer handle.Release()
	s.must(handle.WaitForSync(t.Context()))
	path := "/apis/" + demoGroup + "/v1/environments"
	if got := get(t, s.server, path).Header().Get(prunedHeader); got != "" {
		t.Errorf("the header is %q for complete objects, want none", got)
	}
	s.must(s.server.AddType(handle.Informer()))
	if got := get(t, s.server, path).Header().Get(prunedHeader); got != "true" {
		t.Errorf("the header is %q for pruned objects, want true", got)
	}
	s.server.RemoveType(environments.GroupResource())
	if got := get(t, s.server, path).Header().Get(ServedHeader); got != servedByCluster {
		t.Errorf("a request for a removed type is answered by %q, want the cluster", got)
	}
}

// TestPartialInformersAreRejected verifies that a server rejects informers that cache only some objects,
// store them in another form, or cannot order their versions.
func TestPartialInformersAreRejected(t *testing.T) {
	s := newFixture(t, Options{})
	for name, options := range map[string]dynamicinformer.ResourceOptions{
		"namespaces": {Namespaces: dynamicinformer.InNamespaces("payments", "media")},
		"metadata":   {Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}},
		"decoded":    {Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}},
		"transform":  {Transform: func(o any) (any, error) { return o, nil }},
		"shard":      {Shard: dynamicinformer.NewShard(sharding.ByUID, sharding.Split(2)[0])},
	} {
		handle, err := s.factory.Acquire(workloads, options)
		s.must(err)
		if err := s.server.AddType(handle.Informer()); err == nil ||
			!strings.Contains(err.Error(), "cannot keep a history") {
			t.Errorf("%s: AddType() = %v, want an error about the history", name, err)
		}
		handle.Release()
	}
}

// TestDefinitionsAreNotSharded verifies that all definitions are known even if the factory has only a shard
// of them.
func TestDefinitionsAreNotSharded(t *testing.T) {
	s := newFixture(t, Options{})
	options := dynamicinformer.Options{Config: s.cluster.Config()}
	options.Defaults.Shard = dynamicinformer.NewShard(sharding.ByUID)
	factory, err := dynamicinformer.New(options)
	s.must(err)
	server, err := New(Options{Factory: factory, Types: s.server.options.Types, Config: s.cluster.Config()})
	s.must(err)
	if server.definitions.Informer().Shard() != nil {
		t.Error("the informer of CustomResourceDefinitions is sharded")
	}
	server.Close()
	s.must(factory.Shutdown(t.Context()))
}

// TestOneNamespace verifies that requests for the cached namespace are answered, others are forwarded.
func TestOneNamespace(t *testing.T) {
	s := newFixture(t, Options{})
	handle, err := s.factory.Acquire(workloads,
		dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces("payments")})
	s.must(err)
	defer handle.Release()
	s.must(handle.WaitForSync(t.Context()))
	s.must(s.server.AddType(handle.Informer()))
	for path, by := range map[string]string{
		"/apis/" + demoGroup + "/v1/namespaces/payments/workloads": servedByCache,
		"/apis/" + demoGroup + "/v1/namespaces/media/workloads":    servedByCluster,
		"/apis/" + demoGroup + "/v1/workloads":                     servedByCluster,
	} {
		want, got := get(t, s.cluster, path), get(t, s.server, path)
		if diff := cmp.Diff(decodeJSON(t, want.Body.String()), decodeJSON(t, got.Body.String())); diff != "" ||
			got.Header().Get(ServedHeader) != by {
			t.Errorf("%s: answered by %q (-want +got):\n%s", path, got.Header().Get(ServedHeader), diff)
		}
	}
}
