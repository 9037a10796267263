package store

import (
	"strings"

	"github.com/crdcache/crdcache/internal/packed"
)

// Batch is a whole content made ready for Replace, with its indexes.
type Batch struct {
	// rows are in the order of the list, with the hashes of their keys: reading these once more is waiting
	// for memory.
	rows []hashed[*row]
	next *Snapshot
	// blocks are those of next, and changes is Store.changes when they were counted.
	blocks  blocks
	changes int
	// beside is the content beside which the batch was prepared. Of its rows found have their keys in the
	// batch, and stays says which of the batch's are among them; nil: that is not known.
	beside *Snapshot
	found  int
	stays  []bool
}

// Change is one difference that a Replace made: Old is nil for a new key, New is nil for a key that went.
type Change struct {
	Key      string
	Old, New Item
}

// PrepareAll readies a whole content. Of several objects with one key the last counts. An index function that
// fails is reported once, and the objects are left out of that index. What the store holds already in the
// same form stays as it is, and no index function runs for it.
func (s *Store) PrepareAll(objects []Keyed) *Batch {
	return s.PrepareList(len(objects), func(i int) Keyed { return objects[i] })
}

// PrepareList is PrepareAll for objects that need not be in memory with their keys all at once. at may be
// called more than once for each.
func (s *Store) PrepareList(count int, at func(i int) Keyed) *Batch {
	for {
		now := s.current.Load()
		b := &Batch{rows: make([]hashed[*row], count), beside: now, stays: make([]bool, count)}
		var failures Failures
		for i := range count {
			o := at(i)
			hash := hashOf(o.Key)
			had := findHashed(&now.rows, hash, o.Key)
			if had != nil {
				b.found++
			}
			r := had
			if b.stays[i] = s.stays(now, had, o); !b.stays[i] {
				r = s.newRow(now, o, &failures)
			}
			b.rows[i] = hashed[*row]{hash, r}
		}
		if s.build(b, now) {
			failures.to(s.report)
			return b
		}
	}
}

// stays reports whether the row that the store has for an object, if there is one, can stay.
func (s *Store) stays(now *Snapshot, had *row, o Keyed) bool {
	return had != nil && now.filled() && s.form.Same(had.keptItem(), o.Item)
}

// newRow returns a row without a place. The key of a packed object is made a part of the object, of which
// there may have been another form before, or has memory of its own where there may be others later.
func (s *Store) newRow(now *Snapshot, o Keyed, failures *Failures) *row {
	r := &row{key: o.Key}
	r.setItem(o.Item)
	r.keep("", now.functions.evaluate(o.Key, o.Item, s.form.Shown, failures))
	if p, ok := o.Item.(*packed.Object); ok && (s.Adaptive() != nil || p.Block() != nil) {
		r.key = strings.Clone(r.key)
	} else if ok && p.Key() == r.key {
		r.key = p.Key()
	}
	return r
}

// filled reports whether no index is being filled.
func (s *Snapshot) filled() bool { return len(s.indexes) == len(s.functions) }

// sorted returns the rows in the order of a trie. Of several with one key the last stays, where the first
// was.
func (b *Batch) sorted(sorting *buckets[*row]) []hashed[*row] {
	list := make([]hashed[*row], len(b.rows))
	sorting.sortInto(list, b.rows)
	for i := 1; i < len(list); i++ {
		if list[i].hash == list[i-1].hash {
			b.rows, b.stays = lastOfEach(b.rows), nil
			list = list[:len(b.rows)]
			sorting.sortInto(list, b.rows)
			break
		}
	}
	return list
}

func lastOfEach(rows []hashed[*row]) []hashed[*row] {
	at := make(map[string]int, len(rows))
	distinct := make([]hashed[*row], 0, len(rows))
	for _, r := range rows {
		if i, twice := at[r.entry.key]; twice {
			distinct[i] = r
			continue
		}
		at[r.entry.key] = len(distinct)
		distinct = append(distinct, r)
	}
	return distinct
}

// build makes the snapshot of a batch. It returns false when indexers were added since now. It holds the lock
// for the rows that the store has already, whose values it may share.
func (s *Store) build(b *Batch, now *Snapshot) bool {
	s.write.Lock()
	defer s.write.Unlock()
	if s.current.Load().version != now.version {
		return false
	}
	b.next = &Snapshot{functions: now.functions, version: now.version}
	var room indexRoom
	sorted := b.sorted(&room.sorting)
	b.next.rows = buildTrie(sorted)
	s.count(b, now) // the rows that sorted has left
	room.entries = sorted
	for i := range now.indexes {
		x := &now.indexes[i]
		b.next.indexes = append(b.next.indexes, buildIndex(x.function, b.rows, x, &room))
	}
	return true
}

// count adds up the rows of a batch. It is called by those who hold s.write.
func (s *Store) count(b *Batch, now *Snapshot) {
	b.next.sizes, b.blocks, b.changes = sizes{replaced: now.sizes.replaced}, blocks{}, s.changes
	b.blocks.countAll(&b.next.sizes, b.rows)
}

// Replace swaps the whole content at once and returns the differences: first what went, then the new content
// in the order in which it was prepared. It refuses as Put does. A batch can be used once.
func (s *Store) Replace(b *Batch, resourceVersion string) (changes []Change, ok bool) {
	d, ok := s.ReplaceList(b, resourceVersion)
	if !ok {
		return nil, false
	}
	changes = make([]Change, 0, d.Len())
	for i := range d.Len() {
		changes = append(changes, d.At(i))
	}
	return changes, true
}

// ReplaceList is Replace for contents whose differences should not be in memory all at once.
func (s *Store) ReplaceList(b *Batch, resourceVersion string) (d Differences, ok bool) {
	s.write.Lock()
	defer s.write.Unlock()
	now := s.current.Load()
	if !s.swap(now, b, resourceVersion) {
		return Differences{}, false
	}
	return newDifferences(now, b), true
}

// Restore is Replace for a content whose differences nobody is told of.
func (s *Store) Restore(b *Batch, resourceVersion string) bool {
	s.write.Lock()
	defer s.write.Unlock()
	return s.swap(s.current.Load(), b, resourceVersion)
}

// swap makes a batch the content, in place of now. It is called by those who hold s.write.
func (s *Store) swap(now *Snapshot, b *Batch, resourceVersion string) bool {
	if now.version != b.next.version {
		return false
	}
	b.next.resourceVersion = resourceVersion
	if b.changes != s.changes { // and rows that stay may be among those
		s.count(b, now)
	}
	s.blocks = b.blocks
	s.current.Store(b.next)
	if f := s.Adaptive(); f != nil {
		f.listEnds()
	}
	if filled := s.filled.Load(); filled != nil {
		(*filled)()
	}
	return true
}
