package dynamicinformer

import (
	"fmt"
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// IndexSet computes the values of several indexes of an object in one pass over its JSON, so that it need not
// be decoded. It must be safe for concurrent use. The Functions of package indexers are one.
type IndexSet interface {
	// Names are the names of the indexes, always in the same order.
	Names() []string
	// Ordered reports whether index number i is to be kept in the order of its values.
	Ordered(i int) bool
	// Indexers are the index functions by name, for objects that are decoded. They have to agree with
	// KeysJSON.
	Indexers() cache.Indexers
	// KeysJSON appends the values of index number i to keys[i], and makes keys as long as there are indexes.
	// The values do not refer to the JSON.
	KeysJSON(json []byte, keys [][]string) [][]string
}

// checkIndexes returns an error when a name is taken twice.
func (o ResourceOptions) checkIndexes() error {
	if o.Indexes == nil {
		return nil
	}
	taken := map[string]bool{cache.NamespaceIndex: true}
	for name := range o.Indexers {
		taken[name] = true
	}
	for _, name := range o.Indexes.Names() {
		if taken[name] {
			return fmt.Errorf("there is more than one index %q", name)
		}
		taken[name] = true
	}
	return nil
}

func (o ResourceOptions) extractors() []store.Extractor {
	if o.Indexes == nil {
		return nil
	}
	return []store.Extractor{o.Indexes}
}

// AddIndexes adds indexes, before or after the start. Objects that are there already are indexed while
// readers go on; then all new indexes appear at once, and those whose names are among replaced disappear,
// except for the index by namespace. It fails when another name is taken or the informer has stopped. What
// Prune leaves out of objects cannot be indexed.
func (i *Informer) AddIndexes(indexes IndexSet, replaced ...string) error {
	replaced = slices.DeleteFunc(slices.Clone(replaced),
		func(name string) bool { return name == cache.NamespaceIndex })
	return i.core.AddExtractor(indexes, replaced...)
}

// RemoveIndexes removes indexes by name, whoever added them; names that there are none of do nothing. The
// index by namespace stays.
func (i *Informer) RemoveIndexes(names ...string) {
	for _, name := range names {
		if name != cache.NamespaceIndex {
			i.core.RemoveIndexes(name)
		}
	}
}
