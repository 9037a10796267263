package lifecycle_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// resourceOf returns version v1 of the type that harness.NewCRD defines.
func resourceOf(definition *unstructured.Unstructured) schema.GroupVersionResource {
	group, _, _ := unstructured.NestedString(definition.Object, "spec", "group")
	plural, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "plural")
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
}

// withSecondVersion returns a copy of a definition that also serves v2.
func withSecondVersion(definition *unstructured.Unstructured) *unstructured.Unstructured {
	definition = definition.DeepCopy()
	versions, _, _ := unstructured.NestedSlice(definition.Object, "spec", "versions")
	second := (&unstructured.Unstructured{Object: versions[0].(map[string]any)}).DeepCopy().Object
	second["name"], second["storage"] = "v2", false
	if err := unstructured.SetNestedSlice(definition.Object, append(versions, second), "spec",
		"versions"); err != nil {
		panic(err) // impossible with a definition of the harness
	}
	return definition
}

// uninstall deletes a definition without waiting. The server deletes its objects first.
func (s *fixture) uninstall(definition *unstructured.Unstructured) {
	s.Helper()
	if err := s.admin.Resource(crd.GVR).Delete(s.ctx, definition.GetName(),
		metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// reinstall creates a definition as soon as its name is free, without waiting for its establishment.
func (s *fixture) reinstall(definition *unstructured.Unstructured) {
	s.Helper()
	harness.Eventually(s, func(ctx context.Context) error {
		_, err := s.admin.Resource(crd.GVR).Create(ctx, definition, metav1.CreateOptions{})
		return err
	})
}

// create creates an object in the default namespace.
func (s *fixture) create(definition *unstructured.Unstructured, name string) {
	s.Helper()
	s.createIn(definition, resourceOf(definition).Version, metav1.NamespaceDefault, name)
}

// createIn creates an object of a version in a namespace.
func (s *fixture) createIn(definition *unstructured.Unstructured, version, namespace, name string) {
	s.Helper()
	kind, _, _ := unstructured.NestedString(definition.Object, "spec", "names", "kind")
	s.createObject(resourceOf(definition).GroupResource().WithVersion(version), kind, namespace, name)
}

// createObject creates an object and retries until the server accepts it.
func (s *fixture) createObject(gvr schema.GroupVersionResource, kind, namespace, name string) {
	s.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetGroupVersionKind(gvr.GroupVersion().WithKind(kind))
	object.SetName(name)
	harness.Eventually(s, func(ctx context.Context) error {
		_, err := s.admin.Resource(gvr).Namespace(namespace).Create(ctx, object, metav1.CreateOptions{})
		return err
	})
}

// patchDefinition changes a definition with a JSON patch.
func (s *fixture) patchDefinition(definition *unstructured.Unstructured, patch []byte) {
	s.Helper()
	if _, err := s.admin.Resource(crd.GVR).Patch(s.ctx, definition.GetName(), types.JSONPatchType, patch,
		metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

// touch updates an object.
func (s *fixture) touch(definition *unstructured.Unstructured, name string) {
	s.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"touched":%q}}}`, time.Now())
	if _, err := s.objects(definition).Patch(s.ctx, name, types.MergePatchType, patch,
		metav1.PatchOptions{}); err != nil {
		s.Fatal(err)
	}
}

func (s *fixture) delete(definition *unstructured.Unstructured, name string) {
	s.Helper()
	if err := s.objects(definition).Delete(s.ctx, name, metav1.DeleteOptions{}); err != nil {
		s.Fatal(err)
	}
}

// objects returns the client for the test's objects, which are in the default namespace.
func (s *fixture) objects(definition *unstructured.Unstructured) dynamic.ResourceInterface {
	return s.admin.Resource(resourceOf(definition)).Namespace(metav1.NamespaceDefault)
}

// TestAggregatedAPI follows a type of an aggregated API. While its server is down, the objects stay. When its
// APIService is deleted, the cache keeps them and is not synced.
func TestAggregatedAPI(t *testing.T) {
	t.Parallel()
	gadgets := schema.GroupVersionResource{Group: harness.Group(t), Version: "v1", Resource: "gadgets"}
	server := harness.NewTLSServer(t, newAggregatedHandler(t, gadgets))
	s := newFixture(t, dynamicinformer.Options{}, nil)
	registration := harness.RegisterAPIService(t, gadgets.GroupVersion(), server.Port)
	i, j := s.startInformer(gadgets)
	first := s.awaitSynced(i, 1)
	s.createObject(gadgets, "Gadget", metav1.NamespaceDefault, "a")
	j.expect("add a")

	server.Stop()
	current := s.awaitState(i, status.Synced, status.ReasonRequestFailed)
	if current.Incarnation != first.Incarnation || !i.HasSynced() {
		t.Errorf("the status is %+v, want the same incarnation", current)
	}
	s.expectKeys(i, "default/a")
	j.expectNothing()
	server.Restart(t)
	s.createObject(gadgets, "Gadget", metav1.NamespaceDefault, "b")
	// A list may deliver the object a again.
	j.awaitLive("b")
	s.awaitSynced(i, 1)
	j.expectNever("delete a", "add a")

	if err := s.admin.Resource(harness.APIServices).Delete(s.ctx, registration.GetName(),
		metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// Without the APIService, the objects still exist in their API server.
	if current := s.awaitState(i, status.Pending, status.ReasonNotInstalled); !current.Suspended ||
		i.HasSynced() {
		t.Errorf("HasSynced() = %t, status %+v; want false, suspended", i.HasSynced(), current)
	}
	s.expectKeys(i, "default/a", "default/b")

	harness.Apply(t, registration)
	s.awaitSynced(i, 2)
	j.expectNever("delete a", "delete b")
}

// newAggregatedHandler returns an API server with one type, which can be written.
func newAggregatedHandler(t testing.TB, gvr schema.GroupVersionResource) http.Handler {
	t.Helper()
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	err := storage.SetType(readapi.Type{
		Group: gvr.Group, Namespaced: true, Versions: []readapi.Version{{Name: gvr.Version}},
		Names: crd.Names{Plural: gvr.Resource, Kind: "Gadget"},
	})
	if err != nil {
		t.Fatal(err)
	}
	return readapi.NewHandler(storage.Writer(apiserver.WriterOptions{}), readapi.HandlerOptions{})
}
