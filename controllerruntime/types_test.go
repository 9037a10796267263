package controllerruntime

import (
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/readapi"
)

func widgetDefinition() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "widgets.example.com"},
		"spec": map[string]any{
			"group": "example.com", "scope": "Namespaced",
			"names": map[string]any{"plural": "widgets", "singular": "widget", "kind": "Widget",
				"listKind": "WidgetList"},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object",
					"x-kubernetes-preserve-unknown-fields": true}},
			}},
		},
	}}
}

// TestRecreatedType verifies that when a type is removed, its objects are deleted, and reads do not
// wait. When it is recreated, its handlers and indexes work again.
func TestRecreatedType(t *testing.T) {
	storage := apiserver.NewStorage(apiserver.StorageOptions{})
	apply := func(u *unstructured.Unstructured) {
		t.Helper()
		if _, err := storage.Apply(u); err != nil {
			t.Fatal(err)
		}
	}
	apply(widgetDefinition())
	apply(object(widgetKind, "web", "a"))
	c := cacheOf(t, readapi.Config(readapi.NewHandler(storage, readapi.HandlerOptions{})))
	widget := object(widgetKind, "", "")
	if err := c.IndexField(t.Context(), widget, "name",
		func(o client.Object) []string { return []string{o.GetName()} }); err != nil {
		t.Fatal(err)
	}
	start(t, c)
	i, err := c.GetInformer(t.Context(), widget)
	if err != nil {
		t.Fatal(err)
	}
	calls := make(recorder, 10)
	if _, err := i.AddEventHandler(calls); err != nil {
		t.Fatal(err)
	}
	if got := <-calls; got.event != "add" {
		t.Fatalf("received %+v, want an addition", got)
	}
	if err := c.types.tracker.WaitForSync(t.Context()); err != nil {
		t.Fatal(err)
	}
	storage.Delete(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
		"", "widgets.example.com")
	if got := <-calls; got.event != "delete" {
		t.Fatalf("received %+v, want a deletion", got)
	}
	// The objects are deleted before their type.
	widgetInformer := c.Factory().Informers()[0]
	for widgetInformer.HasSynced() {
		_, changed := widgetInformer.StatusChange()
		if widgetInformer.HasSynced() {
			<-changed
		}
	}
	key := client.ObjectKey{Namespace: "web", Name: "a"}
	if err := c.Get(t.Context(), key, widget); !apierrors.IsNotFound(err) {
		t.Errorf("Get() of a removed type = %v, want NotFound", err)
	}
	apply(widgetDefinition())
	apply(object(widgetKind, "web", "b"))
	if got := <-calls; got.event != "add" || got.object.(client.Object).GetName() != "b" {
		t.Fatalf("received %+v, want the addition of b", got)
	}
	found := &unstructured.UnstructuredList{}
	found.SetGroupVersionKind(widgetKind.GroupVersion().WithKind("WidgetList"))
	if err := c.List(t.Context(), found, client.MatchingFields{"name": "b"}); err != nil ||
		len(found.Items) != 1 {
		t.Errorf("List() by field = %d objects, %v, want 1", len(found.Items), err)
	}
}

// cacheOf returns a cache for the server of a config.
func cacheOf(t *testing.T, config *rest.Config) *Cache {
	t.Helper()
	c, err := New(config, cache.Options{Mapper: newMapper()}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestTrackerRunsWhenNeeded verifies that CRDs are not watched while only built-in types are used: the watch
// costs more than a small cache.
func TestTrackerRunsWhenNeeded(t *testing.T) {
	server := newServer(t)
	for name, use := range map[string]func(c *Cache) error{
		"a custom type": func(c *Cache) error {
			_, err := c.GetInformer(t.Context(), object(widgetKind, "", ""), cache.BlockUntilSynced(false))
			return err
		},
		"an informer of another user": func(c *Cache) error {
			_, err := c.Factory().ForResource(widgets)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCache(t, server, cache.Options{}, Options{})
			start(t, c)
			if err := c.List(t.Context(), lists()["typed"]); err != nil {
				t.Fatal(err)
			}
			select {
			case <-c.types.trackerNeeded:
				t.Error("the tracker runs for a built-in type")
			default:
			}
			if err := use(c); err != nil {
				t.Fatal(err)
			}
			if err := c.types.tracker.WaitForSync(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}
