package controllerruntime

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/apiserver"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/serving/readapi"
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

// widgetVersions returns the definition with the versions v1, which may be served, and v2, which is stored.
func widgetVersions(v1Served bool) *unstructured.Unstructured {
	definition := widgetDefinition()
	v1 := definition.Object["spec"].(map[string]any)["versions"].([]any)[0].(map[string]any)
	v2 := maps.Clone(v1)
	v2["name"], v1["served"], v1["storage"] = "v2", v1Served, false
	definition.Object["spec"].(map[string]any)["versions"] = []any{v1, v2}
	return definition
}

// TestUnservedVersion verifies that objects of a version that is no longer served are not deleted: reads fail
// until the version is served again, and handlers receive the difference. If the CRD is deleted instead, its
// objects are deleted.
func TestUnservedVersion(t *testing.T) {
	for _, options := range []Options{{}, {RejectMissingTypes: true}} {
		t.Run(fmt.Sprintf("reject missing types %t", options.RejectMissingTypes), func(t *testing.T) {
			storage := apiserver.NewStorage(apiserver.StorageOptions{})
			apply := func(u *unstructured.Unstructured) {
				t.Helper()
				if _, err := storage.Apply(u); err != nil {
					t.Fatal(err)
				}
			}
			serve := func(served bool) { apply(widgetVersions(served)) }
			serve(true)
			for _, name := range []string{"a", "b"} {
				apply(object(widgetKind, "web", name))
			}
			c := cacheOf(t, storage, options)
			start(t, c)
			calls, i := addRecorder(t, c, object(widgetKind, "", ""))
			expect := func(events ...string) {
				t.Helper()
				for _, want := range events {
					if got := <-calls; got.event != want {
						t.Fatalf("received %+v, want %q", got, want)
					}
				}
			}
			read := func() (int, error) {
				list := &unstructured.UnstructuredList{}
				list.SetGroupVersionKind(widgetKind)
				err := c.List(t.Context(), list)
				get := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "b"}, object(widgetKind, "", ""))
				if meta.IsNoMatchError(err) != meta.IsNoMatchError(get) {
					return 0, fmt.Errorf("List() = %w, but Get() = %w", err, get)
				}
				return len(list.Items), err
			}
			expect("add", "add")
			serve(false)
			eventually(t, "rejection", func() bool {
				_, err := read()
				return meta.IsNoMatchError(err)
			})
			if _, err := c.GetInformer(t.Context(), object(widgetKind, "", "")); !meta.IsNoMatchError(err) {
				t.Errorf("GetInformer() = %v, want NoMatch", err)
			}
			if i.HasSynced() {
				t.Error("HasSynced() = true, want false while the version is not served")
			}
			storage.Delete(schema.GroupResource{Group: "example.com", Resource: "widgets"}, "web", "a")
			serve(true)
			expect("delete", "update")
			eventually(t, "object", func() bool {
				n, err := read()
				return n == 1 && err == nil
			})
			serve(false)
			eventually(t, "rejection", func() bool {
				_, err := read()
				return meta.IsNoMatchError(err)
			})
			storage.Delete(schema.GroupResource{Group: "apiextensions.k8s.io", Resource: "customresourcedefinitions"},
				"", "widgets.example.com")
			expect("delete")
		})
	}
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
	c := cacheOf(t, storage, Options{})
	widget := object(widgetKind, "", "")
	if err := c.IndexField(t.Context(), widget, "name",
		func(o client.Object) []string { return []string{o.GetName()} }); err != nil {
		t.Fatal(err)
	}
	start(t, c)
	calls, _ := addRecorder(t, c, widget)
	if got := <-calls; got.event != "add" {
		t.Fatalf("received %+v, want an addition", got)
	}
	eventually(t, "the CRD", func() bool {
		found, _ := c.types.tracker.Snapshot().Lookup(widgets.GroupResource())
		return found.Source == discovery.FromCRD
	})
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

// cacheOf returns a cache for a server with a storage.
func cacheOf(t *testing.T, storage *apiserver.Storage, options Options) *Cache {
	t.Helper()
	config := readapi.Config(readapi.NewHandler(storage, readapi.HandlerOptions{}))
	c, err := New(config, cache.Options{Mapper: newMapper()}, options)
	must(t, err)
	return c
}

// TestTrackerRunsWhenNeeded verifies that CRDs are not watched before anything suggests that a type has
// changed: the watch costs more than a small cache.
func TestTrackerRunsWhenNeeded(t *testing.T) {
	for name, use := range map[string]func(c *Cache, server *apitest.Server) error{
		"a type that is gone": func(c *Cache, server *apitest.Server) error {
			server.AddFaults(apitest.Fault{Path: "/api/v1/namespaces", Status: 404})
			_, err := c.GetInformer(t.Context(), &corev1.Namespace{}, cache.BlockUntilSynced(false))
			return err
		},
		"an expired watch": func(_ *Cache, server *apitest.Server) error {
			server.AddFaults(apitest.Fault{Path: "/apis/example.com/v1/widgets", Verb: "watch", Status: 410})
			server.CloseClientConnections()
			return nil
		},
		"an informer of another user": func(c *Cache, _ *apitest.Server) error {
			_, err := c.Factory().ForResource(widgetKind.GroupVersion().WithResource("gadgets"))
			return err
		},
		"a subscription": func(c *Cache, _ *apitest.Server) error {
			_, err := c.Factory().Subscribe(dynamicinformer.Selection{Group: "*", Resource: "*",
				Match: func(typesource.Type) bool { return false }}, dynamicinformer.Subscriber{})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer(t)
			c := newCache(t, server, cache.Options{}, Options{})
			start(t, c)
			custom := &unstructured.UnstructuredList{}
			custom.SetGroupVersionKind(widgetKind)
			for _, list := range []client.ObjectList{&corev1.ConfigMapList{}, custom} {
				must(t, c.List(t.Context(), list))
			}
			for _, r := range server.Requests() {
				if strings.Contains(r, "/customresourcedefinitions") && !strings.Contains(r, "metadata.name") {
					t.Errorf("the request %s reads all CRDs while nothing changes", r)
				}
			}
			eventually(t, "readiness", func() bool {
				return c.Factory().Condition(status.ConditionReady).Status == metav1.ConditionTrue
			})
			must(t, use(c, server))
			if err := c.types.tracker.WaitForSync(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestStartNeedsNoTypes verifies that informers of types that the RESTMapper has found start immediately,
// even without permission for discovery.
func TestStartNeedsNoTypes(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"))
	for _, path := range []string{"/api", "/apis", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
		"/apis/apiregistration.k8s.io/v1/apiservices"} {
		server.AddFaults(unansweredRequests(path))
	}
	c := newCache(t, server, cache.Options{}, Options{})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Start(ctx) }() // ended by cancel
	<-c.started
	for name, list := range lists() {
		if err := c.List(t.Context(), list); err != nil || len(objectNames(t, list)) != 1 {
			t.Errorf("%s: List() = %v, want 1 object", name, err)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
