package store

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/internal/packed"
)

// formats returns the formats that store complete objects.
func formats(t testing.TB) map[string]Format {
	return map[string]Format{
		"object":     Objects(managedFieldsPruner(t)),
		"packed":     NewPacked(managedFieldsPruner(t), nil),
		"compressed": NewPacked(managedFieldsPruner(t), s2.New(s2.Options{})),
	}
}

// TestReadersDoNotWait calls every read method while a writer holds its lock, as during the building of an
// index.
func TestReadersDoNotWait(t *testing.T) {
	s := New(Options{Format: NewPacked(nil, nil), Indexers: byNamespace()})
	replaceAll(t, s, 10, 1)
	s.write.Lock()
	defer s.write.Unlock()
	now := s.Snapshot()
	item, found := now.Get("tenant-3/certificate-3")
	if !found || now.Len() != 10 || len(now.Items()) != 10 || len(now.Keys()) != 10 ||
		now.ResourceVersion() != "1" || now.Indexers()[cache.NamespaceIndex] == nil {
		t.Errorf("the read methods disagree: Len() = %d, want 10 objects from each", now.Len())
	}
	object := s.Format().Object(item)
	for operation, read := range map[string]func() (int, error){
		"items": func() (int, error) {
			items, err := now.ItemsByIndex(cache.NamespaceIndex, "tenant-3")
			return len(items), err
		},
		"keys": func() (int, error) {
			keys, err := now.KeysByIndex(cache.NamespaceIndex, "tenant-3")
			return len(keys), err
		},
		"like": func() (int, error) {
			items, err := now.ItemsByIndexOf(cache.NamespaceIndex, object)
			return len(items), err
		},
		"values": func() (int, error) { return len(now.IndexValues(cache.NamespaceIndex)) - 9, nil },
	} {
		if n, err := read(); n != 1 || err != nil {
			t.Errorf("%s: %d results, %v, want 1", operation, n, err)
		}
	}
}

// TestFormats stores an object in each format and reads it back.
func TestFormats(t *testing.T) {
	for name, format := range formats(t) {
		t.Run(name, func(t *testing.T) {
			for n := range 2 * samplesToTrain { // to have compressed objects
				keyed := keyedCertificate(t, format, n, 1)
				want, err := packed.NewPacker(managedFieldsPruner(t)).Pack(certificate(n, 1))
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(want.Unstructured(), format.Object(keyed.Item)); diff != "" {
					t.Fatalf("object %d (-want +got):\n%s", n, diff)
				}
				if n == 2*samplesToTrain-1 && keyed.Item == format.Item(want.Unstructured()) &&
					name != "object" {
					t.Error("two calls of Item returned the same item")
				}
			}
			for _, odd := range []any{"text", 7, (*unstructured.Unstructured)(nil), struct{}{}} {
				if got := format.Object(format.Item(odd)); got != odd {
					t.Errorf("Object(Item(%v)) = %v, want the argument", odd, got)
				}
			}
		})
	}
}
