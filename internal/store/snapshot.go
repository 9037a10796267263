package store

import (
	"slices"
	"strings"

	"k8s.io/client-go/tools/cache"
)

// Snapshot is the content of a Store at one moment, with its indexes. It is immutable and needs no lock. It
// retains its objects while it is referenced.
type Snapshot struct {
	rows trie[storedRow]
	// indexes are the complete indexes; functions also include indexes that are still being built.
	indexes   []index
	functions functions
	// version counts the changes of functions.
	version         int
	resourceVersion string
	// sizes are the totals of the rows.
	sizes objectSizes
}

// Len returns the number of objects.
func (s *Snapshot) Len() int { return s.rows.len }

// ResourceVersion returns the resource version of the last list, event or bookmark stored.
func (s *Snapshot) ResourceVersion() string { return s.resourceVersion }

func (s *Snapshot) Get(key string) (Item, bool) {
	if r := s.rows.find(key); r != nil {
		return r.item(), true
	}
	return nil, false
}

// OwnKey returns the snapshot's copy of a key, or key.
func (s *Snapshot) OwnKey(key string) string {
	if r := s.rows.find(key); r != nil {
		return keyOf(r)
	}
	return key
}

// All calls yield for each item with its key, in no particular order, until it returns false. The key may
// share the item's memory.
func (s *Snapshot) All(yield func(key string, item Item) bool) {
	for r := range s.rows.all {
		if !yield(keyOf(r), r.item()) {
			return
		}
	}
}

// Items returns all items, unordered.
func (s *Snapshot) Items() []Item {
	list := make([]Item, 0, s.rows.len)
	for r := range s.rows.all {
		list = append(list, r.item())
	}
	return list
}

// Keys returns all keys, unordered. The keys, like those of KeysByIndex, do not share the objects' memory.
func (s *Snapshot) Keys() []string {
	list := make([]string, 0, s.rows.len)
	for r := range s.rows.all {
		list = append(list, strings.Clone(keyOf(r)))
	}
	return list
}

// Indexers returns the index functions of the complete indexes.
func (s *Snapshot) Indexers() cache.Indexers {
	indexers := make(cache.Indexers, len(s.indexes))
	for i := range s.indexes {
		indexers[s.indexes[i].function.name] = s.indexes[i].function.fn
	}
	return indexers
}

func (s *Snapshot) index(name string) (*index, error) {
	for i := range s.indexes {
		if s.indexes[i].function.name == name {
			return &s.indexes[i], nil
		}
	}
	return nil, &IndexNotFoundError{Name: name}
}

// ItemsByIndex returns the items with a value of an index. It can return an *IndexNotFoundError.
func (s *Snapshot) ItemsByIndex(name, value string) ([]Item, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	p := x.posting(value)
	list := make([]Item, 0, p.len())
	for r := range p.all {
		list = append(list, r.item())
	}
	return list, nil
}

// KeysByIndex returns the sorted keys of the objects with a value of an index. It returns an
// *IndexNotFoundError if the index does not exist.
func (s *Snapshot) KeysByIndex(name, value string) ([]string, error) {
	x, err := s.index(name)
	if err != nil {
		return nil, err
	}
	p := x.posting(value)
	keys := make([]string, 0, p.len())
	for r := range p.all {
		keys = append(keys, strings.Clone(keyOf(r)))
	}
	slices.Sort(keys)
	return keys, nil
}

// ItemsByIndexOf returns the items that share at least one value of the index with object. It returns an
// *IndexNotFoundError if the index does not exist, or the error of the index function.
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
	values = withoutDuplicates(values)
	if len(values) == 1 {
		return s.ItemsByIndex(name, values[0])
	}
	visited := map[*storedRow]bool{}
	list := []Item{}
	for _, value := range values {
		for r := range x.posting(value).all {
			if !visited[r] {
				visited[r] = true
				list = append(list, r.item())
			}
		}
	}
	return list, nil
}

// IndexValues returns all values of an index; none if it does not exist.
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
