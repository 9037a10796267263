package store

import (
	"slices"
	"strings"

	"github.com/crdcache/crdcache/internal/packed"
)

// Batch is a whole content made ready for Replace, with its indexes.
type Batch struct {
	// rows are in the order of the list, with the hashes of their keys: reading these once more is waiting for memory.
	rows []hashed[*row]
	next *Snapshot
	// changes is Store.changes when next was made.
	changes int
}

// Change is one difference that a Replace made: Old is nil for a new key, New is nil for a key that went.
type Change struct {
	Key      string
	Old, New Item
}

// PrepareAll readies a whole content. Of several objects with one key the last counts. An index function that
// fails is reported once, and the objects are left out of that index. What the store holds already in the same
// form stays as it is, and no index function runs for it.
func (s *Store) PrepareAll(objects []Keyed) *Batch {
	for {
		now := s.current.Load()
		b := &Batch{rows: make([]hashed[*row], len(objects))}
		var failures Failures
		for i, o := range objects {
			hash := hashOf(o.Key)
			r := s.kept(now, hash, o)
			if r == nil {
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

// kept returns the row that the store has for an object, if it can stay.
func (s *Store) kept(now *Snapshot, hash uint64, o Keyed) *row {
	had := findHashed(&now.rows, hash, o.Key)
	if had == nil || !now.filled() || !s.form.Same(had.keptItem(), o.Item) {
		return nil
	}
	return had
}

// newRow returns a row without a place. The key of a packed object is made a part of the object, of which there
// may have been another form before, or has memory of its own where there may be others later.
func (s *Store) newRow(now *Snapshot, o Keyed, failures *Failures) *row {
	r := &row{key: o.Key}
	r.setItem(o.Item)
	r.keep("", now.functions.evaluate(o.Key, o.Item, s.form.Shown, failures))
	if p, ok := o.Item.(*packed.Object); ok && (s.Adaptive() != nil || p.InBlock()) {
		r.key = strings.Clone(r.key)
	} else if ok && p.Key() == r.key {
		r.key = p.Key()
	}
	return r
}

// filled reports whether no index is being filled.
func (s *Snapshot) filled() bool { return len(s.indexes) == len(s.functions) }

// sorted returns the rows in the order of a trie. Of several with one key the last stays, where the first was.
func (b *Batch) sorted() []hashed[*row] {
	list := slices.Clone(b.rows)
	sortHashed(list)
	for i := 1; i < len(list); i++ {
		if list[i].hash == list[i-1].hash {
			b.rows = lastOfEach(b.rows)
			list = slices.Clone(b.rows)
			sortHashed(list)
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
	b.next.rows = buildTrie(b.sorted())
	b.next.sizes, b.changes = b.sizes(now), s.changes // of the rows that sorted has left
	for i := range now.indexes {
		b.next.indexes = append(b.next.indexes, buildIndex(now.indexes[i].function, b.rows))
	}
	return true
}

// sizes adds up the rows.
func (b *Batch) sizes(now *Snapshot) sizes {
	all := sizes{replaced: now.sizes.replaced}
	for _, r := range b.rows {
		all.replace(nil, r.entry)
	}
	return all
}

// Replace swaps the whole content at once and returns the differences: first what went, then the new content in
// the order in which it was prepared. It refuses as Put does. A batch can be used once.
func (s *Store) Replace(b *Batch, resourceVersion string) (changes []Change, ok bool) {
	s.write.Lock()
	defer s.write.Unlock()
	now := s.current.Load()
	if !s.swap(now, b, resourceVersion) {
		return nil, false
	}
	return differences(now, b), true
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
		b.next.sizes = b.sizes(now)
	}
	s.current.Store(b.next)
	if f := s.Adaptive(); f != nil {
		f.listEnds()
	}
	if filled := s.filled.Load(); filled != nil {
		(*filled)()
	}
	return true
}

func differences(old *Snapshot, b *Batch) []Change {
	changes := make([]Change, 0, len(b.rows))
	for r := range old.rows.all {
		if findRow(&b.next.rows, r.key) == nil {
			changes = append(changes, Change{Key: r.key, Old: r.keptItem()})
		}
	}
	for _, h := range b.rows {
		r := h.entry
		change := Change{Key: r.key, New: r.keptItem()}
		if had := findHashed(&old.rows, h.hash, r.key); had != nil {
			change.Old = had.keptItem()
		}
		changes = append(changes, change)
	}
	return changes
}
