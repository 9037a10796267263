package controllerruntime

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/dynamicinformer"
)

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
		"compression alone": {Options{Storage: dynamicinformer.Storage{Compression: s2.New(s2.Options{})}},
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
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: "web", Name: "a"}, object); err != nil {
				t.Fatal(err)
			}
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
	if err := c.List(t.Context(), list, client.MatchingFields{"color": "red"}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]bool{"web/a": true}, objectNames(t, list)); diff != "" {
		t.Errorf("objects found by the index (-want +got):\n%s", diff)
	}
}
