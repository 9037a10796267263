package controllerruntime

import (
	"context"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// These are the types of the tests. Core types have Go types, widgets do not.
var (
	configMapKind = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}
	configMaps    = apitest.ConfigMaps.GVR
	namespaceKind = schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}
	namespaces    = apitest.Namespaces.GVR
	widgetKind    = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}
	widgets       = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}
	allTypes      = []apitest.Type{apitest.ConfigMaps, apitest.Namespaces,
		{GVR: widgets, Kind: "Widget", Namespaced: true}}
)

// must ends the test if there is an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func newServer(t testing.TB) *apitest.Server { return apitest.New(t, allTypes...) }

// newFactory returns a factory for a server. The test's cleanup shuts it down.
func newFactory(t testing.TB, server *apitest.Server) *dynamicinformer.Factory {
	t.Helper()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: server.Config()})
	must(t, err)
	t.Cleanup(func() { _ = factory.Shutdown(context.Background()) })
	return factory
}

// newCache returns a cache for a server. The cache is not started. Its RESTMapper sends no requests.
func newCache(t testing.TB, server *apitest.Server, options cache.Options, cacheOptions Options) *Cache {
	t.Helper()
	options.Mapper = newMapper()
	c, err := New(server.Config(), options, cacheOptions)
	must(t, err)
	return c
}

func newMapper() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper(nil)
	for _, t := range allTypes {
		scope := meta.RESTScopeRoot
		if t.Namespaced {
			scope = meta.RESTScopeNamespace
		}
		mapper.Add(t.GVR.GroupVersion().WithKind(t.Kind), scope)
		// controller-runtime's mapper also has list kinds
		mapper.Add(t.GVR.GroupVersion().WithKind(t.Kind+"List"), scope)
	}
	return mapper
}

// start runs a cache until the end of the test.
func start(t testing.TB, c cache.Cache) {
	t.Helper()
	testkit.RunUntilEnd(t, c.Start)
	if !c.WaitForCacheSync(t.Context()) {
		t.Fatal("the cache has not synced")
	}
}

// configMap returns an unstructured ConfigMap.
func configMap(namespace, name string, pairs ...string) *unstructured.Unstructured {
	u := object(configMapKind, namespace, name)
	data := map[string]any{}
	for k := 0; k+1 < len(pairs); k += 2 {
		data[pairs[k]] = pairs[k+1]
	}
	u.Object["data"] = data
	return u
}

func object(gvk schema.GroupVersionKind, namespace, name string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{}}
	u.SetGroupVersionKind(gvk)
	u.SetNamespace(namespace)
	u.SetName(name)
	return u
}

func labelled(u *unstructured.Unstructured, labels map[string]string) *unstructured.Unstructured {
	u.SetLabels(labels)
	return u
}

// emptyForms returns an empty ConfigMap in each form.
func emptyForms() map[string]client.Object {
	partial := &metav1.PartialObjectMetadata{}
	partial.SetGroupVersionKind(configMapKind)
	dynamic := &unstructured.Unstructured{}
	dynamic.SetGroupVersionKind(configMapKind)
	return map[string]client.Object{"typed": &corev1.ConfigMap{}, "unstructured": dynamic,
		"metadata": partial}
}

// lists returns an empty list of ConfigMaps in each form.
func lists() map[string]client.ObjectList {
	list := configMapKind.GroupVersion().WithKind("ConfigMapList")
	partial := &metav1.PartialObjectMetadataList{}
	partial.SetGroupVersionKind(list)
	dynamic := &unstructured.UnstructuredList{}
	dynamic.SetGroupVersionKind(list)
	return map[string]client.ObjectList{"typed": &corev1.ConfigMapList{}, "unstructured": dynamic,
		"metadata": partial}
}

// objectNames returns the set of "namespace/name" of the items of a list.
func objectNames(t testing.TB, list client.ObjectList) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := meta.EachListItem(list, func(item runtime.Object) error {
		m, ok := item.(client.Object)
		if !ok {
			return errors.New("not a client.Object")
		}
		names[client.ObjectKeyFromObject(m).String()] = true
		return nil
	})
	must(t, err)
	return names
}

// fixedTypes is a type source that sends no requests.
type fixedTypes []apitest.Type

func (f fixedTypes) Subscribe(l typesource.Listener) (stop func()) {
	for _, t := range f {
		l.SetType(typesource.Type{GroupResource: t.GVR.GroupResource(), Kind: t.Kind,
			Namespaced: t.Namespaced, Versions: []string{t.GVR.Version}, Established: true})
	}
	l.SetComplete()
	return func() {}
}

func unansweredRequests(path string) apitest.Fault { return apitest.Fault{Path: path} }
