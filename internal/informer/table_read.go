package informer

import (
	"maps"
	"slices"

	"k8s.io/client-go/tools/cache"
)

// Len implements Store.
func (t *table) Len() int {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return len(t.items)
}

// Get implements Store.
func (t *table) Get(key string) (Item, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if e := t.items[key]; e != nil {
		return e.item, true
	}
	return nil, false
}

// Items implements Store.
func (t *table) Items() []Item {
	t.mu.RLock()
	defer t.mu.RUnlock()
	list := make([]Item, 0, len(t.items))
	for _, e := range t.items {
		list = append(list, e.item)
	}
	return list
}

// Keys implements Store.
func (t *table) Keys() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.AppendSeq(make([]string, 0, len(t.items)), maps.Keys(t.items))
}

// ResourceVersion implements Store.
func (t *table) ResourceVersion() string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.rv
}

// Indexers implements Store.
func (t *table) Indexers() cache.Indexers {
	t.mu.RLock()
	defer t.mu.RUnlock()
	indexers := make(cache.Indexers, len(t.funcs))
	for _, f := range t.funcs {
		indexers[f.name] = f.fn
	}
	return indexers
}

// ItemsByIndex implements Store.
func (t *table) ItemsByIndex(name, value string) ([]Item, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	entries, err := t.bucketLocked(name, value)
	if err != nil {
		return nil, err
	}
	list := make([]Item, len(entries))
	for i, e := range entries {
		list[i] = e.item
	}
	return list, nil
}

// KeysByIndex implements Store. The keys are sorted.
func (t *table) KeysByIndex(name, value string) ([]string, error) {
	keys, err := t.keysByIndex(name, value)
	slices.Sort(keys)
	return keys, err
}

func (t *table) keysByIndex(name, value string) ([]string, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	entries, err := t.bucketLocked(name, value)
	if err != nil {
		return nil, err
	}
	keys := make([]string, len(entries))
	for i, e := range entries {
		keys[i] = e.key
	}
	return keys, nil
}

func (t *table) bucketLocked(name, value string) ([]*entry, error) {
	x := t.published[name]
	if x == nil {
		return nil, &IndexNotFoundError{Name: name}
	}
	if b := x.buckets[value]; b != nil {
		return b.entries, nil
	}
	return nil, nil
}

// ItemsByIndexOf implements Store. The index function runs before the lock is taken.
func (t *table) ItemsByIndexOf(name string, object any) ([]Item, error) {
	t.mu.RLock()
	fn := t.funcs.named(name)
	if t.published[name] == nil {
		fn = nil
	}
	t.mu.RUnlock()
	if fn == nil {
		return nil, &IndexNotFoundError{Name: name}
	}
	values, err := fn(object)
	if err != nil {
		return nil, err
	}
	if len(values) == 1 {
		return t.ItemsByIndex(name, values[0])
	}
	return t.itemsByAny(name, values)
}

// itemsByAny returns each item under any of the values, once.
func (t *table) itemsByAny(name string, values []string) ([]Item, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	seen := map[*entry]bool{}
	list := []Item{}
	for _, value := range values {
		entries, err := t.bucketLocked(name, value)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if !seen[e] {
				seen[e] = true
				list = append(list, e.item)
			}
		}
	}
	return list, nil
}

// IndexValues implements Store.
func (t *table) IndexValues(name string) []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	x := t.published[name]
	if x == nil {
		return []string{}
	}
	return slices.AppendSeq(make([]string, 0, len(x.buckets)), maps.Keys(x.buckets))
}
