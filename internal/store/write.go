package store

import "slices"

// KeyedItem is an item with its key and its resource version, which can be empty.
type KeyedItem struct {
	Key, ResourceVersion string
	Item                 Item
}

// PreparedItem is an object prepared for Put. Its index functions have already run.
type PreparedItem struct {
	KeyedItem
	row     *storedRow
	version int
}

// Prepare prepares an object for Put. If an index function fails, Prepare reports that and leaves the object
// out of the index.
func (s *Store) Prepare(object KeyedItem) PreparedItem {
	current := s.current.Load()
	var failures Failures
	r := s.newRow(current, object, &failures)
	failures.reportTo(s.report)
	return PreparedItem{KeyedItem: object, row: r, version: current.version}
}

// Put stores a prepared object and returns the replaced item, nil for a new key. If both have the same
// identity in a store without objects, it may return the new item. It stores nothing and
// returns false if indexers were added since Prepare; the caller then prepares the object again.
func (s *Store) Put(p PreparedItem) (old Item, ok bool) {
	s.write.Lock()
	defer s.write.Unlock()
	current := s.current.Load()
	if p.version != current.version {
		return nil, false
	}
	stored := current.rows.find(p.Key)
	if stored != nil && p.ResourceVersion == "" && stored.isSameIdentity(p.row) {
		return p.Item, true
	}
	next := current.copy()
	if stored != nil {
		old = stored.item()
	}
	next.put(stored, p.row)
	if p.ResourceVersion != "" {
		next.resourceVersion = p.ResourceVersion
	}
	s.publish(next, p.Key)
	return old, true
}

// Remove deletes a key and returns the removed item, or nil. It sets the content's resource version if
// resourceVersion is not empty.
func (s *Store) Remove(key, resourceVersion string) (old Item) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	if resourceVersion != "" {
		next.resourceVersion = resourceVersion
	}
	if stored := next.rows.find(key); stored != nil {
		old = stored.item()
		next.remove(stored)
	}
	s.publish(next, key)
	return old
}

// SetResourceVersion sets the content's resource version.
func (s *Store) SetResourceVersion(resourceVersion string) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	next.resourceVersion = resourceVersion
	s.current.Store(next)
}

// copy returns a copy that can be changed until it is published.
func (s *Snapshot) copy() *Snapshot {
	next := *s
	next.indexes = slices.Clone(s.indexes)
	return &next
}

// reindex replaces a row in all indexes. Either row can be nil.
func (s *Snapshot) reindex(old, next *storedRow) {
	for i := range s.indexes {
		s.indexes[i].replace(old, next)
	}
}
