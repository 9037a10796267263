package dynamicinformer

import "github.com/crdcache/crdcache/internal/store"

// SnapshotIndex is one index of a Snapshot. It is immutable and reads take no lock.
type SnapshotIndex struct{ view store.IndexView }

// Index returns the index with the name, and whether it exists and is complete.
func (s *Snapshot) Index(name string) (SnapshotIndex, bool) {
	view, ok := s.content.Index(name)
	return SnapshotIndex{view}, ok
}

// IndexSet returns the set that computes the values, or nil for an index function.
func (x SnapshotIndex) IndexSet() IndexSet {
	set, _ := x.view.Extractor().(IndexSet)
	return set
}

// Each calls yield for each value with its number of objects, in no particular order, until yield returns
// false.
func (x SnapshotIndex) Each(yield func(value string, count int) bool) { x.view.Each(yield) }

// Len returns the number of different values.
func (x SnapshotIndex) Len() int { return x.view.Len() }

// Count returns the number of objects with the value.
func (x SnapshotIndex) Count(value string) int { return x.view.Count(value) }

// Has reports whether the object with the key has the value.
func (x SnapshotIndex) Has(value, key string) bool { return x.view.Has(value, key) }

// AppendValues appends the values of the object with the key to a list, in no particular order. known is
// false if there is no such object, or if the index was removed after the Snapshot. It reads the index and
// computes nothing. The strings share memory with all index values of the object: clone strings that you
// keep.
func (x SnapshotIndex) AppendValues(to []string, key string) (values []string, known bool) {
	return x.view.AppendValues(to, key)
}

// Objects calls yield for each object with the value, in no particular order, until yield returns false.
// Objects and keys are as in Snapshot.AllStored: not decoded.
func (x SnapshotIndex) Objects(value string, yield func(key string, object any) bool) {
	x.view.Objects(value, yield)
}

// Keys calls yield for each value in the range from (inclusive) to to (exclusive), with its number of
// objects, until yield returns false. An empty bound is open. The order is ascending or descending. An
// unsorted index (see IndexSet.Ordered) is sorted for each call.
func (x SnapshotIndex) Keys(from, to string, descending bool, yield func(value string, count int) bool) {
	x.view.Keys(from, to, descending, yield)
}

// CountKeys returns the number of values in the range from (inclusive) to to (exclusive) without iterating.
// An empty bound is open. ok is false for an unsorted index.
func (x SnapshotIndex) CountKeys(from, to string) (count int, ok bool) {
	return x.view.CountKeys(from, to)
}
