package dynamicinformer

import (
	"strings"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Snapshot is the content of an informer's cache at one moment, with all its indexes. It is immutable: any
// number of goroutines can read it without a lock, for any length of time. It keeps its objects in memory.
//
// Objects are the same as from listers: shared and read-only *unstructured.Unstructured, unless a transform
// returned another type. They are decoded when they are read; Stats does not count these reads. JSON,
// AllJSON, Stored and AllStored decode nothing.
type Snapshot struct{ content *store.Snapshot }

// Snapshot returns the current content of the cache, in constant time.
func (i *Informer) Snapshot() *Snapshot { return &Snapshot{i.core.Snapshot()} }

// Len returns the number of objects.
func (s *Snapshot) Len() int { return s.content.Len() }

// ResourceVersion returns the version of the last list, event or bookmark in the snapshot.
func (s *Snapshot) ResourceVersion() string { return s.content.ResourceVersion() }

// Keys returns the keys of all objects, "namespace/name" or the name, in no particular order. The caller owns
// the keys: they do not pin the objects.
func (s *Snapshot) Keys() []string { return s.content.Keys() }

// Get returns the object with the key, and whether it exists.
func (s *Snapshot) Get(key string) (object any, ok bool) {
	item, ok := s.content.Get(key)
	return decoded(item), ok
}

// All calls yield for each object with its key, in no particular order, until yield returns false. It decodes
// one object at a time.
func (s *Snapshot) All(yield func(key string, object any) bool) {
	s.content.All(func(key string, item store.Item) bool { return yield(strings.Clone(key), decoded(item)) })
}

// IndexNames returns the names of the complete indexes.
func (s *Snapshot) IndexNames() []string { return s.content.IndexNames() }

// IndexValues returns all values of an index, in no particular order, or nil if the index does not exist.
func (s *Snapshot) IndexValues(index string) []string { return s.content.IndexValues(index) }

// KeysByIndex returns the sorted keys of the objects with the value in the index. It returns an error if the
// index does not exist.
func (s *Snapshot) KeysByIndex(index, value string) ([]string, error) {
	return s.content.KeysByIndex(index, value)
}

// ByIndex returns the objects with the value in the index. It returns an error if the index does not exist.
func (s *Snapshot) ByIndex(index, value string) ([]any, error) {
	items, err := s.content.ItemsByIndex(index, value)
	for k, item := range items {
		items[k] = decoded(item)
	}
	return items, err
}

// decoded returns the object that readers receive for an item.
func decoded(item store.Item) any {
	if o, ok := item.(*packed.Object); ok {
		return o.Unstructured()
	}
	return item
}
