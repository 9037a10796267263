package controllerruntime

import (
	"errors"
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// TestCallersOwnCopies verifies that a caller's changes are visible to others only with
// UnsafeDisableDeepCopy.
func TestCallersOwnCopies(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, labelled(configMap("web", "a"), map[string]string{"color": "red"}))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	key := client.ObjectKey{Namespace: "web", Name: "a"}
	for name, one := range emptyForms() {
		t.Run(name, func(t *testing.T) {
			other := one.DeepCopyObject().(client.Object)
			if err := errors.Join(c.Get(t.Context(), key, one), c.Get(t.Context(), key, other)); err != nil {
				t.Fatal(err)
			}
			one.GetLabels()["color"] = "blue"
			one.SetName("b")
			if other.GetLabels()["color"] != "red" || other.GetName() != "a" {
				t.Error("a reader's change is visible to another reader")
			}
			if err := c.Get(t.Context(), key, other); err != nil || other.GetLabels()["color"] != "red" {
				t.Errorf("a reader's change is visible in the cache: %v, %v", err, other.GetLabels())
			}
		})
	}
	var one, other corev1.ConfigMap
	if err := errors.Join(c.Get(t.Context(), key, &one, client.UnsafeDisableDeepCopy),
		c.Get(t.Context(), key, &other, client.UnsafeDisableDeepCopy)); err != nil {
		t.Fatal(err)
	}
	if reflect.ValueOf(one.Labels).UnsafePointer() != reflect.ValueOf(other.Labels).UnsafePointer() {
		t.Error("with UnsafeDisableDeepCopy, two readers got different objects")
	}
}

// TestReadingBeforeStart checks that reads before Start and reads without an informer return different
// errors.
func TestReadingBeforeStart(t *testing.T) {
	server := newServer(t)
	c := newCache(t, server, cache.Options{}, Options{})
	var notStarted *cache.ErrCacheNotStarted
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, &corev1.Namespace{}); !errors.As(err,
		&notStarted) {
		t.Errorf("Get() before Start = %v, want ErrCacheNotStarted", err)
	}
	if err := c.List(t.Context(), &corev1.NamespaceList{}); !errors.As(err, &notStarted) {
		t.Errorf("List() before Start = %v, want ErrCacheNotStarted", err)
	}
	c = newCache(t, server, cache.Options{ReaderFailOnMissingInformer: true}, Options{})
	start(t, c)
	var notCached *cache.ErrResourceNotCached
	if err := c.List(t.Context(), &corev1.ConfigMapList{}); !errors.As(err, &notCached) ||
		notCached.GVK != configMapKind {
		t.Errorf("List() without an informer = %v, want ErrResourceNotCached", err)
	}
	if _, err := c.GetInformer(t.Context(), &corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	if err := c.List(t.Context(), &corev1.ConfigMapList{}); err != nil {
		t.Errorf("List() with an informer = %v", err)
	}
}

// TestObjectsKeptDecoded verifies that each form reads, indexes and handles objects that are stored decoded.
func TestObjectsKeptDecoded(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, labelled(configMap("web", "a", "key", "value"),
		map[string]string{"color": "red"}), configMap("web", "b"))
	c := newCache(t, server, cache.Options{},
		Options{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StorageObject}})
	// complete objects first, so that all forms share them
	for _, name := range []string{"typed", "unstructured", "metadata"} {
		form := emptyForms()[name]
		if err := c.IndexField(t.Context(), form, "color",
			func(o client.Object) []string { return []string{o.GetLabels()["color"]} }); err != nil {
			t.Fatal(err)
		}
	}
	start(t, c)
	for name, form := range emptyForms() {
		t.Run(name, func(t *testing.T) {
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, form); err != nil ||
				form.GetLabels()["color"] != "red" ||
				form.GetObjectKind().GroupVersionKind() != configMapKind {
				t.Errorf("Get() = %v: %+v", err, form)
			}
			form.GetLabels()["color"] = "blue"
			list := lists()[name]
			if err := c.List(t.Context(), list, client.MatchingFields{"color": "red"},
				client.MatchingLabels{"color": "red"}); err != nil || !objectNames(t, list)["web/a"] ||
				len(objectNames(t, list)) != 1 {
				t.Errorf("List() = %v, %v, want web/a", objectNames(t, list), err)
			}
			i, err := c.GetInformer(t.Context(), form)
			if err != nil {
				t.Fatal(err)
			}
			calls := make(recorder, 10)
			if _, err := i.AddEventHandler(calls); err != nil {
				t.Fatal(err)
			}
			if got := <-calls; reflect.TypeOf(got.object) != reflect.TypeOf(form) {
				t.Errorf("the handler received a %T, want its form", got.object)
			}
		})
	}
	if n := len(c.Factory().Informers()); n != 1 {
		t.Errorf("%d informers, want 1", n)
	}
}
