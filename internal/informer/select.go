package informer

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/store"
)

// Select returns the objects that a selector matches, in no particular order. Only those are decoded.
func (i *Informer) Select(selector labels.Selector) []any {
	return i.matching(i.store.Snapshot().Items(), selector)
}

// SelectIn is Select for the objects of a namespace.
func (i *Informer) SelectIn(namespace string, selector labels.Selector) []any {
	now := i.store.Snapshot()
	items, err := now.ItemsByIndex(cache.NamespaceIndex, namespace)
	if err != nil { // there is no index by namespace
		items = now.Items()
		kept := items[:0]
		for _, item := range items {
			if m, err := meta.Accessor(item); err == nil && m.GetNamespace() == namespace {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	return i.matching(items, selector)
}

// matching decodes the items that match, in place.
func (i *Informer) matching(items []Item, selector labels.Selector) []any {
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

// Form tells how objects are kept.
func (i *Informer) Form() store.Form { return i.store.Form() }

// Stats tells what the cache occupies. It looks at every object.
func (i *Informer) Stats() store.Stats { return i.store.Stats() }

// Measure tells what the store occupies at a cost that does not grow with it.
func (i *Informer) Measure() store.Measure { return i.store.Measure() }

// Decodes counts the reads of packed objects that found a decoded copy in memory, and those that had to
// decode.
func (i *Informer) Decodes() (hits, misses int64) { return i.store.Decodes() }
