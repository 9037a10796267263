package readapi_test

import (
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/integration/harness"
	"github.com/crdcache/crdcache/test/integration/internal/answers"
)

const (
	testdata = "../../../testdata/"
	group    = answers.Group
)

var plurals = []string{"environments", "releases", "routes", "workloads"}

// serverPair is a real API server and a readapi server with the same objects.
type serverPair struct {
	apiServer, crdcache *rest.Config
	storage             *apiserver.Storage
}

// loadManifests loads the manifests in testdata into the real API server. Its version must match the one of
// readapi.
func loadManifests(t *testing.T) {
	t.Helper()
	harness.Require(t, harness.WatchList, harness.SelectableFields, harness.ErrorWording)
	harness.InstallCRDs(t, harness.ReadManifests(t, testdata+"crds")...)
	harness.Apply(t, harness.ReadManifests(t, testdata+"objects")...)
}

// newPair loads the project's manifests into both servers.
func newPair(t *testing.T) *serverPair {
	t.Helper()
	loadManifests(t)
	p := &serverPair{apiServer: harness.Config(t), storage: apiserver.NewStorage(apiserver.StorageOptions{})}
	err := p.storage.SetType(readapi.Type{
		Names:    crd.Names{Plural: "namespaces", Kind: "Namespace", ShortNames: []string{"ns"}},
		Versions: []readapi.Version{{Name: "v1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.copyObjects(t, crd.GVR)
	p.copyObjects(t, schema.GroupVersionResource{Version: "v1", Resource: "namespaces"})
	for _, plural := range plurals {
		p.copyObjects(t, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural})
	}
	server := httptest.NewServer(readapi.NewHandler(p.storage, readapi.HandlerOptions{}))
	t.Cleanup(func() { server.CloseClientConnections(); server.Close() })
	p.crdcache = &rest.Config{Host: server.URL, QPS: -1}
	return p
}

// copyObjects copies all objects of a type to the readapi server.
func (p *serverPair) copyObjects(t *testing.T, gvr schema.GroupVersionResource) {
	t.Helper()
	client, err := dynamic.NewForConfig(p.apiServer)
	if err != nil {
		t.Fatal(err)
	}
	list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range list.Items {
		if _, err := p.storage.Restore(&list.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
}
