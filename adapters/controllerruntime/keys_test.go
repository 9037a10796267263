package controllerruntime

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer/typed"
)

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
			if err != nil {
				t.Fatal(err)
			}
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
