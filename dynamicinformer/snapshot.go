package dynamicinformer

import (
	"strings"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Snapshot is the content of an informer's cache at one moment, with all its indexes. It never changes: it
// can be read for any length of time, by any number of goroutines, without a lock, and keeps what it shows in
// memory meanwhile.
//
// Objects are those that listers return: shared and read-only, *unstructured.Unstructured unless a transform
// has made something else of them, and decoded when they are read. Stats do not count that. JSON, AllJSON,
// Stored and AllStored decode nothing.
type Snapshot struct{ content *store.Snapshot }

// Snapshot returns the content of the cache at this moment. It takes no time, whatever the size.
func (i *Informer) Snapshot() *Snapshot { return &Snapshot{i.core.Snapshot()} }

// Len counts the objects.
func (s *Snapshot) Len() int { return s.content.Len() }

// ResourceVersion is that of the last list, event or bookmark that the snapshot shows.
func (s *Snapshot) ResourceVersion() string { return s.content.ResourceVersion() }

// Keys returns the keys of all objects in no particular order: "namespace/name", or the name alone. Keeping
// them keeps nothing else in memory.
func (s *Snapshot) Keys() []string { return s.content.Keys() }

// Get returns the object of a key, and whether there is one.
func (s *Snapshot) Get(key string) (object any, ok bool) {
	item, ok := s.content.Get(key)
	return decoded(item), ok
}

// All calls yield for each object with its key, in no particular order, until it returns false. Each is
// decoded just before.
func (s *Snapshot) All(yield func(key string, object any) bool) {
	s.content.All(func(key string, item store.Item) bool { return yield(strings.Clone(key), decoded(item)) })
}

// IndexNames lists the indexes. One that is still being filled is not among them.
func (s *Snapshot) IndexNames() []string { return s.content.IndexNames() }

// IndexValues returns all values of an index in no particular order; none when there is no such index.
func (s *Snapshot) IndexValues(index string) []string { return s.content.IndexValues(index) }

// KeysByIndex returns the sorted keys of the objects with a value of an index. It fails when there is no such
// index.
func (s *Snapshot) KeysByIndex(index, value string) ([]string, error) {
	return s.content.KeysByIndex(index, value)
}

// ByIndex returns the objects with a value of an index. It fails when there is no such index.
func (s *Snapshot) ByIndex(index, value string) ([]any, error) {
	items, err := s.content.ItemsByIndex(index, value)
	for k, item := range items {
		items[k] = decoded(item)
	}
	return items, err
}

// decoded returns what readers get of an item.
func decoded(item store.Item) any {
	if o, ok := item.(*packed.Object); ok {
		return o.Unstructured()
	}
	return item
}
