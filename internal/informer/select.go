package informer

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Select returns the objects that a selector matches, in no particular order. It decodes only these.
func (i *Informer) Select(selector labels.Selector) []any {
	return i.selectedBy(i.store.Snapshot().Items(), selector)
}

// SelectIn is Select for the objects of a namespace.
func (i *Informer) SelectIn(namespace string, selector labels.Selector) []any {
	now := i.store.Snapshot()
	items, err := now.ItemsByIndex(cache.NamespaceIndex, namespace)
	if err != nil { // there is no index by namespace
		items = slices.DeleteFunc(now.Items(),
			func(item Item) bool { return namespaceOf(item) != namespace })
	}
	return i.selectedBy(items, selector)
}

func (i *Informer) selectedBy(items []Item, selector labels.Selector) []any {
	object := i.store.Form().Object
	matching := items[:0]
	everything := selector.Empty()
	for _, item := range items {
		if everything || matches(selector, item) {
			matching = append(matching, object(item))
		}
	}
	clear(items[len(matching):])
	return matching
}

func matches(selector labels.Selector, item Item) bool {
	if o, ok := item.(*packed.Object); ok {
		return selector.Matches(o.Labels())
	}
	m, err := meta.Accessor(item)
	return err == nil && selector.Matches(labels.Set(m.GetLabels()))
}

// Form returns the storage format.
func (i *Informer) Form() store.Form { return i.store.Form() }

// Stats returns the memory use of the cache, at a cost that does not depend on the number of objects.
func (i *Informer) Stats() store.Stats { return i.store.Stats() }

// Decodes returns the numbers of reads of packed objects with and without a decoded copy in memory.
func (i *Informer) Decodes() (hits, misses int64) { return i.store.Decodes() }
