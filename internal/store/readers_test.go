package store

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/storage/s2"
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

// TestSnapshotsAreImmutable checks that snapshots do not change while writers replace all objects, one by one
// and all together, and add indexes.
func TestSnapshotsAreImmutable(t *testing.T) {
	for name, format := range formats(t) {
		t.Run(name, func(t *testing.T) {
			const objects = 120
			s := New(Options{Format: format, Indexers: byNamespace()})
			replaceAll(t, s, objects, 1)
			stop := make(chan struct{})
			var writers, readers sync.WaitGroup
			writers.Go(func() {
				for round := range 3 {
					for n := range objects {
						for p := keyedCertificate(t, format, n, 10*round); ; {
							if _, ok := s.Put(s.Prepare(p)); ok {
								break
							}
						}
					}
					for !tryReplaceAll(t, s, objects/2, 10*round+5) {
					}
				}
			})
			writers.Go(func() {
				for n := range 5 {
					if err := s.AddIndexers(cache.Indexers{fmt.Sprint("uid", n): byUID}); err != nil {
						t.Error(err)
					}
				}
			})
			for range 2 {
				readers.Go(func() { // ended by stop
					for {
						now := s.Snapshot()
						before := describeVersions(now, format)
						if after := describeVersions(now, format); !cmp.Equal(before, after) {
							t.Errorf("the snapshot has changed (-before +after):\n%s", cmp.Diff(before,
								after))
						}
						select {
						case <-stop:
							return
						default:
						}
					}
				})
			}
			writers.Wait()
			close(stop)
			readers.Wait()
			for n := range 5 {
				uids := s.Snapshot().IndexValues(fmt.Sprint("uid", n))
				if len(uids) != objects/2 {
					t.Errorf("index %d has %d values, want %d", n, len(uids), objects/2)
				}
			}
		})
	}
}

// describeVersions returns the resource versions of all objects, after checking that all read methods return
// them.
func describeVersions(now *Snapshot, format Format) map[string]string {
	versions := map[string]string{}
	addVersion := func(way string, item Item) {
		u := format.Object(item).(*unstructured.Unstructured)
		versions[way+" "+u.GetName()] = u.GetResourceVersion()
	}
	for _, item := range now.Items() {
		addVersion("item", item)
	}
	for _, namespace := range now.IndexValues(cache.NamespaceIndex) {
		items, _ := now.ItemsByIndex(cache.NamespaceIndex, namespace)
		for _, item := range items {
			addVersion("index", item)
		}
	}
	for _, key := range now.Keys() {
		if item, found := now.Get(key); found {
			addVersion("key", item)
		}
	}
	return versions
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
