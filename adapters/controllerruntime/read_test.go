package controllerruntime

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/typed"
)

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
			calls, _ := addRecorder(t, c, form)
			if got := <-calls; reflect.TypeOf(got.object) != reflect.TypeOf(form) {
				t.Errorf("the handler received a %T, want its form", got.object)
			}
		})
	}
	if n := len(c.Factory().Informers()); n != 1 {
		t.Errorf("%d informers, want 1", n)
	}
}

// TestKeysEqualStockCache verifies that both caches return equal results for every pair of a namespace and a
// name, with one exception. For {"", "db/admin"}, the stock cache returns an object of another namespace,
// ours NotFound.
func TestKeysEqualStockCache(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a"), configMap("db", "admin"), configMap("db", "a"))
	server.Create(t, namespaces, object(namespaceKind, "", "web"), object(namespaceKind, "", "a"))
	parts := []string{"", "web", "db", "a", "admin", "db/admin", "web/a", "/", "/a", "a/", "web/", "..",
		"../db/admin", ".", " ", " a", "a ", "db%2Fadmin", "none"}
	for name, options := range map[string]cache.Options{
		"all namespaces": {},
		"one namespace":  {DefaultNamespaces: map[string]cache.Config{"web": {}}},
		"two namespaces": {DefaultNamespaces: map[string]cache.Config{"web": {}, "db": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			ours := newCache(t, server, options, Options{})
			options.Mapper = newMapper()
			stock, err := cache.New(server.Config(), options)
			must(t, err)
			start(t, ours)
			start(t, stock)
			for _, form := range []client.Object{&corev1.ConfigMap{}, &corev1.Namespace{}} {
				for _, namespace := range parts {
					for _, name := range parts {
						compareGet(t, ours, stock, client.ObjectKey{Namespace: namespace, Name: name}, form)
					}
				}
			}
		})
	}
}

func compareGet(t *testing.T, ours, stock client.Reader, key client.ObjectKey, form client.Object) {
	t.Helper()
	got, want := form.DeepCopyObject().(client.Object), form.DeepCopyObject().(client.Object)
	err, stockErr := ours.Get(t.Context(), key, got), stock.Get(t.Context(), key, want)
	if stockErr == nil && key.Namespace == "" && strings.Contains(key.Name, "/") {
		if !apierrors.IsNotFound(err) {
			t.Errorf("%T: Get(%q) = %v with the key %s, want NotFound", form, key, err,
				client.ObjectKeyFromObject(got))
		}
		return
	}
	if (err == nil) != (stockErr == nil) || apierrors.IsNotFound(err) != apierrors.IsNotFound(stockErr) ||
		client.ObjectKeyFromObject(got) != client.ObjectKeyFromObject(want) {
		t.Errorf("%T %q: %v, %s; the stock cache: %v, %s", form, key, err, client.ObjectKeyFromObject(got),
			stockErr, client.ObjectKeyFromObject(want))
	}
}

// TestNamesWithSlashes verifies that names with slashes match no object, whichever method reads them.
func TestNamesWithSlashes(t *testing.T) {
	server := newServer(t)
	server.Create(t, configMaps, configMap("db", "admin"))
	c := newCache(t, server, cache.Options{}, Options{})
	start(t, c)
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: "db", Name: "admin"},
		&corev1.ConfigMap{}); err != nil {
		t.Fatal(err)
	}
	informer := c.Factory().Informers()[0]
	typed := typed.As[corev1.ConfigMap](informer)
	for _, namespace := range []string{"", "web", "db", "db/admin"} {
		for _, name := range []string{"db/admin", "", "/admin", "admin/"} {
			if _, err := typed.Get(namespace, name); !apierrors.IsNotFound(err) {
				t.Errorf("Typed.Get(%q, %q) = %v, want NotFound", namespace, name, err)
			}
			if _, err := informer.Lister().ByNamespace(namespace).Get(name); !apierrors.IsNotFound(err) {
				t.Errorf("ByNamespace(%q).Get(%q) = %v, want NotFound", namespace, name, err)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name},
				&corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				t.Errorf("Get(%q, %q) = %v, want NotFound", namespace, name, err)
			}
		}
	}
}

func TestStorage(t *testing.T) {
	config := configOf(t, "storage: {mode: Compressed}")
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "key", "value"))
	for name, test := range map[string]struct {
		options Options
		shared  bool // the factory is shared
		want    dynamicinformer.StorageMode
	}{
		"default": {Options{}, false, dynamicinformer.StorageAdaptive},
		"packed": {Options{Storage: dynamicinformer.Storage{Mode: dynamicinformer.StoragePacked}},
			false, dynamicinformer.StoragePacked},
		"compression alone": {Options{Storage: dynamicinformer.Storage{Compression: s2.New()}},
			false, dynamicinformer.StorageAdaptive},
		"config":             {Options{Indexes: config}, false, dynamicinformer.StorageCompressed},
		"of the factory":     {Options{}, true, dynamicinformer.StoragePacked},
		"not of the factory": {Options{Indexes: config}, true, dynamicinformer.StorageCompressed},
	} {
		t.Run(name, func(t *testing.T) {
			if test.shared {
				factory := newFactory(t, server)
				test.options.Factory = factory
			}
			c := newCache(t, server, cache.Options{}, test.options)
			start(t, c)
			object := emptyForms()["unstructured"]
			must(t, c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, object))
			if got := c.Factory().Stats()[0].Storage; got != test.want.String() {
				t.Errorf("storage mode %s, want %s", got, test.want)
			}
		})
	}
}

// TestMetadataByConfiguredIndex verifies that a list of metadata by an index over spec fields returns the
// matching objects, also before complete objects were read.
func TestMetadataByConfiguredIndex(t *testing.T) {
	config := configOf(t, "indexes: [{name: color, path: .data.color}]")
	server := newServer(t)
	server.Create(t, configMaps, configMap("web", "a", "color", "red"),
		configMap("web", "b", "color", "blue"))
	c := newCache(t, server, cache.Options{}, Options{Indexes: config})
	start(t, c)
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(configMapKind.GroupVersion().WithKind("ConfigMapList"))
	must(t, c.List(t.Context(), list, client.MatchingFields{"color": "red"}))
	if diff := cmp.Diff(map[string]bool{"web/a": true}, objectNames(t, list)); diff != "" {
		t.Errorf("objects found by the index (-want +got):\n%s", diff)
	}
}
