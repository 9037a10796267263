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
	return i.matching(i.store.Snapshot().Items(), selector)
}

// SelectIn works like Select for the objects of a namespace.
func (i *Informer) SelectIn(namespace string, selector labels.Selector) []any {
	snapshot := i.store.Snapshot()
	items, err := snapshot.ItemsByIndex(cache.NamespaceIndex, namespace)
	if err != nil { // there is no index by namespace
		items = slices.DeleteFunc(snapshot.Items(),
			func(item Item) bool { return store.NamespaceOf(item) != namespace })
	}
	return i.matching(items, selector)
}

func (i *Informer) matching(items []Item, selector labels.Selector) []any {
	object := i.store.Format().Object
	selected := items[:0]
	everything := selector.Empty()
	for _, item := range items {
		if everything || matches(selector, item) {
			selected = append(selected, object(item))
		}
	}
	clear(items[len(selected):])
	return selected
}

func matches(selector labels.Selector, item Item) bool {
	if o, ok := item.(*packed.Object); ok {
		return selector.Matches(o.Labels())
	}
	m, err := meta.Accessor(item)
	return err == nil && selector.Matches(labels.Set(m.GetLabels()))
}
