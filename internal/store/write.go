package store

import "slices"

// Keyed is an item with its storage key and its resource version, which may be empty.
type Keyed struct {
	Key, ResourceVersion string
	Item                 Item
}

// Prepared is one object made ready for Put: everything that runs foreign code has been done.
type Prepared struct {
	Keyed
	row     *row
	version int
}

// Prepare readies an object. An index function that fails is reported and the object is left out of that
// index.
func (s *Store) Prepare(object Keyed) Prepared {
	now := s.current.Load()
	var failures Failures
	r := s.newRow(now, object, &failures)
	failures.to(s.report)
	return Prepared{Keyed: object, row: r, version: now.version}
}

// Put stores a prepared object and returns what it replaces, nil when the key is new. It refuses (ok is
// false, nothing happened) when indexers were added since the object was prepared: prepare it again.
func (s *Store) Put(p Prepared) (old Item, ok bool) {
	s.write.Lock()
	defer s.write.Unlock()
	now := s.current.Load()
	if p.version != now.version {
		return nil, false
	}
	next := now.copy()
	had := findRow(&now.rows, p.Key)
	if had != nil {
		old = had.keptItem()
		if had.values() == p.row.values() {
			p.row.share(had)
		}
	}
	next.rows = withRow(&now.rows, p.row)
	next.reindex(had, p.row)
	s.blocks.replace(&next.sizes, had, p.row)
	if p.ResourceVersion != "" {
		next.resourceVersion = p.ResourceVersion
	}
	s.current.Store(next)
	return old, true
}

// Remove deletes a key and returns what was there, or nil. A resource version that is not empty is
// remembered.
func (s *Store) Remove(key, resourceVersion string) (old Item) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	if resourceVersion != "" {
		next.resourceVersion = resourceVersion
	}
	if had := findRow(&next.rows, key); had != nil {
		old = had.keptItem()
		next.rows = withoutRow(&next.rows, key)
		next.reindex(had, nil)
		s.blocks.replace(&next.sizes, had, nil)
	}
	s.current.Store(next)
	return old
}

// SetResourceVersion remembers the resource version that the content is known to be at.
func (s *Store) SetResourceVersion(resourceVersion string) {
	s.write.Lock()
	defer s.write.Unlock()
	next := s.current.Load().copy()
	next.resourceVersion = resourceVersion
	s.current.Store(next)
}

// copy returns a snapshot that can be changed until it is published.
func (s *Snapshot) copy() *Snapshot {
	next := *s
	next.indexes = slices.Clone(s.indexes)
	return &next
}

// reindex replaces a row in all indexes; either may be nil.
func (s *Snapshot) reindex(old, next *row) {
	for i := range s.indexes {
		s.indexes[i].replace(old, next)
	}
}
