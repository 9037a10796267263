package dynamicinformer

import (
	"maps"
	"slices"
	"testing"

	"github.com/crdcache/crdcache/internal/store"
	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"
)

// TestSnapshot verifies that later writes do not change a snapshot.
func TestSnapshot(t *testing.T) {
	for _, mode := range []StorageMode{StoragePacked, StorageObject} {
		t.Run(mode.String(), func(t *testing.T) {
			i, err := newInformer(factoryDependencies{dictionaries: &store.Dictionaries{}}, widgets,
				ResourceOptions{Storage: Storage{Mode: mode},
					Indexes: indexNames("a")}, nil)
			if err != nil {
				t.Fatal(err)
			}
			object := func(name string) *unstructured.Unstructured {
				return &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "example.com/v1", "kind": "Widget", "metadata": map[string]any{"name": name,
						"namespace": "ns", "resourceVersion": "7"},
				}}
			}
			for _, name := range []string{"x", "y"} {
				if err := i.GetIndexer().Add(object(name)); err != nil {
					t.Fatal(err)
				}
			}
			s := i.Snapshot()
			if err := i.GetIndexer().Replace([]any{object("z")}, "9"); err != nil {
				t.Fatal(err)
			}
			i.RemoveIndexes("a")

			if s.Len() != 2 || s.ResourceVersion() == "9" {
				t.Errorf("%d objects at version %s, want the 2 earlier ones", s.Len(), s.ResourceVersion())
			}
			keys := s.Keys()
			slices.Sort(keys)
			byIndex, err := s.KeysByIndex("a", "a")
			want := []string{"ns/x", "ns/y"}
			if diff := cmp.Diff(want, keys) + cmp.Diff(want, byIndex) +
				cmp.Diff(want, slices.Sorted(maps.Keys(maps.Collect(s.All())))); diff != "" || err != nil {
				t.Errorf("%v, keys (-want +got):\n%s", err, diff)
			}
			if diff := cmp.Diff([]string{cache.NamespaceIndex, "a"}, s.IndexNames()) + cmp.Diff([]string{"a"},
				s.IndexValues("a")); diff != "" {
				t.Errorf("indexes (-want +got):\n%s", diff)
			}
			if got, ok := s.Get("ns/x"); !ok || !cmp.Equal(any(got), any(object("x"))) {
				t.Errorf("Get(ns/x) = %v, want the earlier object", got)
			}
			if got, ok := s.Get("ns/z"); ok || got != nil {
				t.Errorf("the snapshot has a later object: %v", got)
			}
			objects, err := s.ByIndex("a", "a")
			if err != nil || len(objects) != 2 {
				t.Errorf("ByIndex() = %v, %v, want 2 objects", objects, err)
			}
			for _, o := range objects {
				if _, ok := o.(*unstructured.Unstructured); !ok {
					t.Errorf("an object is a %T, want *unstructured.Unstructured", o)
				}
			}
			if _, err := s.ByIndex("none", ""); err == nil {
				t.Error("ByIndex() of an unknown index succeeded, want an error")
			}
		})
	}
}
