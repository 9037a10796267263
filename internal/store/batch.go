package store

import (
	"strings"

	"github.com/crdcache/crdcache/internal/packed"
)

// Batch is a complete content with its indexes, prepared for Replace.
type Batch struct {
	// rows are in the order of the list. They include the hashes of their keys, to avoid cache misses.
	rows []hashedEntry[*storedRow]
	// arrivedItems are the objects of rows. It is nil if the rows store the objects.
	arrivedItems []Item
	snapshot     *Snapshot
	// conversions is Store.conversions when the sizes of snapshot were counted.
	conversions int
	// base is the content for which the batch was prepared. foundInBase is the number of its rows with keys
	// in the batch. unchanged reports for each row whether it is one of base; nil if unknown. changed is the
	// number of the others.
	base                 *Snapshot
	foundInBase, changed int
	unchanged            []bool
}

// Len returns the number of different keys.
func (b *Batch) Len() int { return len(b.rows) }

// Change is one difference made by a Replace. Old is nil for an added key, New is nil for a removed key.
type Change struct {
	Key      string
	Old, New Item
}

// PrepareAll prepares a complete content. The last of several objects with one key wins. Failures of an index
// function are reported once, and the objects are left out of that index. Rows of objects that are already
// stored with the same compression are reused, without running index functions.
func (s *Store) PrepareAll(objects []KeyedItem) *Batch {
	return s.PrepareList(len(objects), func(i int) KeyedItem { return objects[i] })
}

// PrepareList works like PrepareAll for objects that are produced on demand. objectAt may be called more than
// once for an object.
func (s *Store) PrepareList(count int, objectAt func(i int) KeyedItem) *Batch {
	for {
		current := s.current.Load()
		b := &Batch{base: current, rows: make([]hashedEntry[*storedRow], count),
			unchanged: make([]bool, count)}
		if !s.StoresObjects() {
			b.arrivedItems = make([]Item, count)
		}
		var failures Failures
		for i := range count {
			o := objectAt(i)
			if b.arrivedItems != nil {
				b.arrivedItems[i] = o.Item
			}
			hash := hashOf(o.Key)
			stored := current.rows.findHashed(hash, o.Key)
			if stored != nil {
				b.foundInBase++
			}
			r := stored
			isComplete := len(current.indexes) == len(current.functions) // no index is being built
			b.unchanged[i] = stored != nil && isComplete && s.format.Same(stored.item(), o.Item)
			if !b.unchanged[i] {
				b.changed++
				r = s.newRow(current, o, &failures)
			}
			b.rows[i] = hashedEntry[*storedRow]{hash, r}
		}
		if s.build(b, current) {
			failures.reportTo(s.report)
			return b
		}
	}
}

// newRow returns an unpublished row. Its key shares the memory of a packed object, unless the object's
// encoding can change later; then the key is copied.
func (s *Store) newRow(current *Snapshot, o KeyedItem, failures *Failures) *storedRow {
	if !s.StoresObjects() {
		return newIdentityRow(o)
	}
	r := &storedRow{key: o.Key}
	r.setItem(o.Item)
	r.setValues("", current.functions.evaluate(o.Key, o.Item, s.format.PeekObject, failures))
	if p, ok := o.Item.(*packed.Object); ok && (s.Adaptive() != nil || p.Block() != nil) {
		r.key = strings.Clone(r.key)
	} else if ok && p.Key() == r.key {
		r.key = p.Key()
	}
	return r
}

// sortRows returns the rows in trie order. The last of several rows with one key replaces the first.
func (b *Batch) sortRows(sorting *bucketSort[*storedRow]) []hashedEntry[*storedRow] {
	list := make([]hashedEntry[*storedRow], len(b.rows))
	sorting.sortInto(list, b.rows)
	for i := 1; i < len(list); i++ {
		if list[i].hash == list[i-1].hash {
			b.dropRepeatedKeys()
			list = list[:len(b.rows)]
			sorting.sortInto(list, b.rows)
			break
		}
	}
	return list
}

// dropRepeatedKeys keeps the last of several rows with one key.
func (b *Batch) dropRepeatedKeys() {
	at := make(map[string]int, len(b.rows))
	rows, arrived := b.rows, b.arrivedItems
	b.rows, b.arrivedItems, b.unchanged = make([]hashedEntry[*storedRow], 0, len(rows)), arrived[:0], nil
	for k, r := range rows {
		i, repeated := at[keyOf(r.entry)]
		if !repeated {
			i = len(b.rows)
			at[keyOf(r.entry)] = i
			b.rows = append(b.rows, r)
		}
		b.rows[i] = r
		if arrived == nil {
			continue
		}
		item := arrived[k]
		if !repeated {
			b.arrivedItems = append(b.arrivedItems, nil)
		}
		b.arrivedItems[i] = item
	}
}

// build builds the batch's snapshot. It returns false if indexers were added after current. It takes the
// lock because new rows may share values with stored ones.
func (s *Store) build(b *Batch, current *Snapshot) bool {
	s.write.Lock()
	defer s.write.Unlock()
	if s.current.Load().version != current.version {
		return false
	}
	if b.snapshot = b.patched(); b.snapshot != nil {
		b.conversions = s.conversions
		if s.current.Load() != current { // rows may have been converted since
			s.count(b, current)
		}
		return true
	}
	b.snapshot = &Snapshot{functions: current.functions, version: current.version}
	var scratch indexScratch
	sorted := b.sortRows(&scratch.sorting)
	b.snapshot.rows = buildTrie(sorted)
	s.count(b, current) // after sortRows has removed duplicates
	scratch.entries = sorted
	for i := range current.indexes {
		x := &current.indexes[i]
		b.snapshot.indexes = append(b.snapshot.indexes, buildIndex(x.function, b.rows, x, &scratch))
	}
	return true
}

// count computes the sizes of a batch. The caller holds s.write.
func (s *Store) count(b *Batch, current *Snapshot) {
	sizes := objectSizes{replaced: current.sizes.replaced}
	for _, r := range b.rows {
		sizes.addRow(r.entry, 1)
	}
	b.snapshot.sizes, b.conversions = sizes, s.conversions
}

// Replace replaces the whole content and returns the differences: first the removed keys, then the new
// content in the order of preparation. Like Put, it can return false. A batch can be used once.
func (s *Store) Replace(b *Batch, resourceVersion string) (d Differences, ok bool) {
	s.write.Lock()
	defer s.write.Unlock()
	current := s.current.Load()
	if current.version != b.snapshot.version {
		return Differences{}, false
	}
	b.snapshot.resourceVersion = resourceVersion
	if b.conversions != s.conversions { // reused rows may have been converted
		s.count(b, current)
	}
	s.publish(b.snapshot, "")
	if f := s.Adaptive(); f != nil {
		f.listedBytes.Store(0)
	}
	if onFill := s.onFill.Load(); onFill != nil {
		(*onFill)()
	}
	return newDifferences(current, b), true
}
