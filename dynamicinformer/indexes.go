package dynamicinformer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// IndexSet computes the values of several indexes in one pass over an object's JSON, so that the object is
// not decoded. It must be safe for concurrent use. Functions of package indexers implements it.
type IndexSet interface {
	// Names returns the names of the indexes, always in the same order.
	Names() []string
	// Ordered reports whether the values of index number i are kept sorted.
	Ordered(i int) bool
	// Indexers returns index functions by name, for decoded objects, with the values of KeysJSON.
	Indexers() cache.Indexers
	// KeysJSON appends the values of index number i to keys[i], after it has extended keys to the number of
	// indexes. The values must not share memory with json.
	KeysJSON(json []byte, keys [][]string) [][]string
}

// checkIndexes returns an error if two indexes have the same name.
func (o ResourceOptions) checkIndexes() error {
	if o.Indexes == nil {
		return nil
	}
	usedNames := sets.KeySet(o.Indexers).Insert(cache.NamespaceIndex)
	for _, name := range o.Indexes.Names() {
		if usedNames.Has(name) {
			return fmt.Errorf("duplicate index %q", name)
		}
		usedNames.Insert(name)
	}
	return nil
}

func (o ResourceOptions) extractors() []store.Extractor {
	if o.Indexes == nil {
		return nil
	}
	return []store.Extractor{o.Indexes}
}

// AddIndexes adds indexes, before or after the start. It indexes existing objects while readers continue.
// Then all new indexes appear, and the indexes named in replaced disappear, atomically; the index by
// namespace always stays. It returns an error if another name is taken or the informer has stopped. Fields
// that Prune or Keep drop cannot be indexed.
func (i *Informer) AddIndexes(indexes IndexSet, replaced ...string) error {
	replaced = slices.DeleteFunc(slices.Clone(replaced),
		func(name string) bool { return name == cache.NamespaceIndex })
	return i.core.AddExtractor(indexes, replaced...)
}

// RemoveIndexes removes all indexes with these names, except that by namespace.
func (i *Informer) RemoveIndexes(names ...string) {
	for _, name := range names {
		if name != cache.NamespaceIndex {
			i.core.RemoveIndexes(name)
		}
	}
}
