package dynamicinformer

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// newStoredInformer returns an informer that does not run. It has the objects, and an index "a" with all of
// them.
func newStoredInformer(t testing.TB, storage Storage, objects ...*unstructured.Unstructured) *Informer {
	t.Helper()
	i, err := newInformer(factoryDependencies{dictionaries: &store.Dictionaries{}}, widgets,
		ResourceOptions{Storage: storage, Indexes: indexNames("a")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		if err := i.GetIndexer().Add(o); err != nil {
			t.Fatal(err)
		}
	}
	return i
}

// TestSnapshotJSON verifies that JSON is read without decoding, in every mode.
func TestSnapshotJSON(t *testing.T) {
	x, y := widgetWithColor("web", "x", "red"), widgetWithColor("web", "y", "blue")
	for _, storage := range wholeObjectModes {
		t.Run(storage.Mode.String(), func(t *testing.T) {
			i := newStoredInformer(t, storage, x, y)
			s := i.Snapshot()
			parsed := func(text []byte) any {
				var o any
				if err := json.Unmarshal(text, &o); err != nil {
					t.Errorf("the JSON %s is invalid: %v", text, err)
				}
				return o
			}
			text, ok, err := s.JSON("web/x")
			if diff := cmp.Diff(any(x.Object), parsed(text)); !ok || err != nil || diff != "" {
				t.Errorf("JSON() = %v, %v (-want +got):\n%s", ok, err, diff)
			}
			if text, ok, err := s.JSON("web/z"); text != nil || ok || err != nil {
				t.Errorf("JSON() of a missing object = %s, %v, %v, want false", text, ok, err)
			}
			all := map[string]any{}
			err = s.AllJSON(func(key string, text []byte) error {
				all[key] = parsed(text)
				return nil
			})
			if diff := cmp.Diff(map[string]any{"web/x": x.Object, "web/y": y.Object}, all); err != nil ||
				diff != "" {
				t.Errorf("AllJSON() = %v (-want +got):\n%s", err, diff)
			}
			calls, enough := 0, errors.New("enough")
			err = s.AllJSON(func(string, []byte) error {
				calls++
				return enough
			})
			if err != enough || calls != 1 {
				t.Errorf("AllJSON() = %[2]v after %[1]d calls, want the callback's error after 1", calls, err)
			}
			if stats := i.Stats(); stats.Misses != 0 {
				t.Errorf("%d objects were decoded, want 0", stats.Misses)
			}
		})
	}
}

// TestSnapshotIndex verifies that later writes do not change the index of a snapshot.
func TestSnapshotIndex(t *testing.T) {
	i := newStoredInformer(t, Storage{}, widgetWithColor("web", "x", "red"), widgetWithColor("db", "y", "red"))
	s := i.Snapshot()
	if err := i.GetIndexer().Replace(nil, "9"); err != nil {
		t.Fatal(err)
	}
	x, ok := s.Index("namespace")
	if !ok || x.Len() != 2 || x.Count("web") != 1 || !x.Has("web", "web/x") || x.Has("web", "db/y") {
		t.Errorf("Index() = %v with %d values, %d in web; want true, 2, 1", ok, x.Len(), x.Count("web"))
	}
	var keys, values []string
	for key, object := range x.Objects("db") {
		if _, ok := object.(PackedObject); !ok {
			t.Errorf("%s is a %T, want a PackedObject", key, object)
		}
		keys = append(keys, key)
	}
	for value := range x.Range("", "", true) {
		values = append(values, value)
	}
	if !slices.Equal(keys, []string{"db/y"}) || !slices.Equal(values, []string{"web", "db"}) {
		t.Errorf("keys = %v, values = %v, want db/y; web and db", keys, values)
	}
	if _, ordered := x.CountRange("", ""); ordered {
		t.Error("CountRange() of an unordered index succeeded, want false")
	}
	if _, ok := s.Index("none"); ok {
		t.Error("Index() of an unknown name = true, want false")
	}
}

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
