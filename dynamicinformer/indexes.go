package dynamicinformer

import (
	"fmt"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// IndexSet computes the values of several indexes of an object in one pass over its JSON. The Functions of package
// indexers are one.
type IndexSet = store.Extractor

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

// AddIndexes adds indexes, before or after the start. Objects that are there already are indexed while readers go
// on; then all new indexes appear at once. It fails when a name is taken or the informer has stopped. What Prune
// has left out of objects that are there already cannot be indexed any more.
func (i *Informer) AddIndexes(indexes IndexSet) error { return i.core.AddExtractor(indexes) }

// RemoveIndexes removes indexes by name, whoever added them; names that there are none of do nothing. The index by
// namespace stays.
func (i *Informer) RemoveIndexes(names ...string) {
	for _, name := range names {
		if name != cache.NamespaceIndex {
			i.core.RemoveIndexes(name)
		}
	}
}

// Snapshot returns the content of the cache at this moment, with all its indexes. It never changes, and is what
// package indexers/query answers from.
func (i *Informer) Snapshot() *store.Snapshot { return i.core.Snapshot() }
