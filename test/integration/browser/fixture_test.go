package browser_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/serving/web"
	"github.com/crdcache/crdcache/test/testcluster"
)

const testdata = "../../../testdata"

var (
	workloads = schema.GroupVersionResource{Group: "demo.crdcache.dev", Version: "v1", Resource: "workloads"}
	secrets   = schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
)

// fixture is the page of a cluster.
type fixture struct {
	factory *dynamicinformer.Factory
	handler *web.Handler
	server  *httptest.Server
}

// servePage serves a page for a server with the indexes of a config and additional types.
func servePage(t *testing.T, config *rest.Config, indexes indexers.Source,
	types ...schema.GroupVersionResource) *fixture {
	t.Helper()
	return servePageWith(t, web.Options{}, config, indexes, types...)
}

// servePageWith is servePage with options.
func servePageWith(t *testing.T, options web.Options, config *rest.Config, indexes indexers.Source,
	types ...schema.GroupVersionResource) *fixture {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	declared, err := indexers.Parse(indexes)
	if err != nil {
		t.Fatal(err)
	}
	client, err := discovery.NewClient(config, discovery.Options{})
	if err != nil {
		t.Fatal(err)
	}
	catalog, err := client.Catalog(ctx)
	if err != nil {
		t.Fatal(err)
	}
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = factory.Shutdown(context.Background()) })
	binding, err := bind.New(factory, declared, bind.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(binding.Close)
	if err := binding.Resolve(catalog); err != nil {
		t.Fatal(err)
	}
	for _, gvr := range types {
		if _, err := factory.ForResource(gvr); err != nil {
			t.Fatal(err)
		}
	}
	if err := factory.Start(ctx); err != nil {
		t.Fatal(err)
	}
	waiting, cancelWaiting := context.WithTimeout(ctx, patience)
	defer cancelWaiting()
	_ = factory.WaitForSync(waiting) // the page shows types that are not synced
	admin, err := dynamicinformer.NewClient(config, nil)
	if err != nil {
		t.Fatal(err)
	}
	definitions, err := bind.Definitions(waiting, admin, nil)
	if err != nil {
		t.Fatal(err)
	}
	byName := map[schema.GroupResource]*crd.Definition{}
	for _, d := range definitions {
		byName[d.GroupResource()] = d
	}
	handler, err := web.NewHandler(web.Source{Title: "sandbox", Factory: factory, Binding: binding,
		Definition: func(gvr schema.GroupVersionResource) *crd.Definition {
			return byName[gvr.GroupResource()]
		}}, options)
	if err != nil {
		t.Fatal(err)
	}
	s := &fixture{factory: factory, handler: handler, server: httptest.NewServer(handler)}
	t.Cleanup(s.server.Close)
	t.Cleanup(handler.Close)
	return s
}

func (s *fixture) loginLink() string { return s.server.URL + s.handler.Login() }

// platformConfig returns the config of testdata.
func platformConfig(t *testing.T) indexers.Source {
	t.Helper()
	source, err := indexers.ReadSource(testdata + "/indexes/platform.yaml")
	if err != nil {
		t.Fatal(err)
	}
	return source
}

// manyNamespaces is the number of namespaces of further workloads.
const manyNamespaces = 16

// newCluster returns a cluster with the objects of testdata, a Secret, and a workload with a dangling
// reference. It adds the given number of further workloads, and types without objects.
func newCluster(t *testing.T, more int, types ...readapi.Type) *testcluster.Cluster {
	t.Helper()
	cluster, err := testcluster.New(t.Context(),
		testcluster.Options{Paths: []string{testdata + "/crds", testdata + "/objects"}, Types: types})
	if err != nil {
		t.Fatal(err)
	}
	loadObject(t, cluster, map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "vault",
			"namespace": "default"},
		"data": map[string]any{"password": "Y29ycmVjdC1ob3JzZS1iYXR0ZXJ5"},
	})
	loadObject(t, cluster, workload("lost", "nowhere", 1))
	for i := range min(more, manyNamespaces) {
		loadObject(t, cluster, map[string]any{"apiVersion": "v1", "kind": "Namespace",
			"metadata": map[string]any{"name": fmt.Sprintf("team-%02d", i)}})
	}
	for i := range more {
		object := workload(fmt.Sprintf("many-%05d", i), "production-eu", i%7)
		object["metadata"].(map[string]any)["namespace"] = fmt.Sprintf("team-%02d", i%manyNamespaces)
		loadObject(t, cluster, object)
	}
	return cluster
}

// emptyTypes returns types without objects, and their resources.
func emptyTypes(n int) (types []readapi.Type, all []schema.GroupVersionResource) {
	for i := range n {
		gvr := schema.GroupVersionResource{Group: "many.example.com", Version: "v1",
			Resource: fmt.Sprintf("kind%04ds", i)}
		all = append(all, gvr)
		types = append(types, readapi.Type{Group: gvr.Group, Names: crd.Names{Plural: gvr.Resource,
			Kind: fmt.Sprintf("Kind%04d", i)}, Namespaced: true, Versions: []readapi.Version{{Name: "v1"}}})
	}
	return types, all
}

func loadObject(t *testing.T, cluster *testcluster.Cluster, object map[string]any) {
	t.Helper()
	if err := cluster.Load(t.Context(), &unstructured.Unstructured{Object: object}); err != nil {
		t.Fatal(err)
	}
}

func workload(name, environment string, replicas int) map[string]any {
	return map[string]any{
		"apiVersion": "demo.crdcache.dev/v1", "kind": "Workload",
		"metadata": map[string]any{"name": name, "namespace": "payments",
			"labels": map[string]any{"demo.crdcache.dev/team": fmt.Sprint("team-", replicas)}},
		"spec": map[string]any{"environment": environment, "image": "registry.example.com/x:1",
			"replicas": int64(replicas), "tier": "standard"},
	}
}
