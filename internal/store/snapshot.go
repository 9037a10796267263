package store

import (
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// Snapshot is the content of a Store at one moment, with all its indexes. It never changes: it can be read
// for any length of time, by any number of goroutines, without a lock, and keeps what it shows in memory
// meanwhile.
type Snapshot struct {
	rows trie[row]
	// indexes are complete; functions are theirs, and those of indexes that are still being filled.
	indexes   []index
	functions functions
	// version counts the changes of functions.
	version         int
	resourceVersion string
	// sizes is what the rows' objects come to.
	sizes sizes
}

// Len counts the objects.
func (s *Snapshot) Len() int { return s.rows.len }

// ResourceVersion is that of the last list, event or bookmark stored.
func (s *Snapshot) ResourceVersion() string { return s.resourceVersion }

// Get returns the item of a key.
func (s *Snapshot) Get(key string) (Item, bool) {
	if r := findRow(&s.rows, key); r != nil {
		return r.keptItem(), true
	}
	return nil, false
}

// All calls yield for each item with its key, in no particular order, until it returns false. The key may be
// a part of the item.
func (s *Snapshot) All(yield func(key string, item Item) bool) {
	for r := range s.rows.all {
		if !yield(r.key, r.keptItem()) {
			return
		}
	}
}

// Items returns all items in no particular order.
func (s *Snapshot) Items() []Item {
	list := make([]Item, 0, s.rows.len)
	for r := range s.rows.all {
		list = append(list, r.keptItem())
	}
	return list
}

// Keys returns all keys in no particular order. Like those of KeysByIndex they have memory of their own: the
// keys of packed objects are parts of them, and whoever keeps a key must not keep the object.
func (s *Snapshot) Keys() []string {
	list := make([]string, 0, s.rows.len)
	for r := range s.rows.all {
		list = append(list, strings.Clone(r.key))
	}
	return list
}

// Indexers returns the index functions of the indexes that are complete.
func (s *Snapshot) Indexers() cache.Indexers {
	indexers := make(cache.Indexers, len(s.indexes))
	for i := range s.indexes {
		indexers[s.indexes[i].function.name] = s.indexes[i].function.fn
	}
	return indexers
}

// index returns the complete index of that name.
func (s *Snapshot) index(name string) (*index, error) {
	for i := range s.indexes {
		if s.indexes[i].function.name == name {
			return &s.indexes[i], nil
		}
	}
	return nil, &IndexNotFoundError{Name: name}
}

// ItemsByIndex returns the items under one value of an index. It fails with *IndexNotFoundError.
func (s *Snapshot) ItemsByIndex(name, value string) ([]Item, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	p := x.posting(value)
	list := make([]Item, 0, p.len())
	for r := range p.all {
		list = append(list, r.keptItem())
	}
	return list, nil
}

// KeysByIndex returns the sorted keys of the objects under one value of an index. It fails with
// *IndexNotFoundError.
func (s *Snapshot) KeysByIndex(name, value string) ([]string, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	p := x.posting(value)
	keys := make([]string, 0, p.len())
	for r := range p.all {
		keys = append(keys, strings.Clone(r.key))
	}
	slices.Sort(keys)
	return keys, nil
}

// ItemsByIndexOf returns the items that share at least one value of the index with an object. It fails with
// *IndexNotFoundError, and as the index function does.
func (s *Snapshot) ItemsByIndexOf(name string, object any) ([]Item, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	if x.function.fn == nil {
		return nil, &IndexNotFoundError{Name: name}
	}
	values, err := x.function.fn(object)
	if err != nil {
		return nil, err
	}
	values = distinct(values)
	if len(values) == 1 {
		return s.ItemsByIndex(name, values[0])
	}
	seen := map[*row]bool{}
	list := []Item{}
	for _, value := range values {
		for r := range x.posting(value).all {
			if !seen[r] {
				seen[r] = true
				list = append(list, r.keptItem())
			}
		}
	}
	return list, nil
}

// IndexValues returns all values of an index; none when it does not exist.
func (s *Snapshot) IndexValues(name string) []string {
	x, err := s.index(name)
	if err != nil {
		return []string{}
	}
	values := make([]string, 0, x.postings.len)
	for p := range x.postings.all {
		values = append(values, p.value)
	}
	return values
}
