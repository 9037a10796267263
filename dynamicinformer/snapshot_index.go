package dynamicinformer

import "github.com/crdcache/crdcache/internal/store"

// SnapshotIndex is one index of a Snapshot. Like that it never changes, and reading it takes no lock.
type SnapshotIndex struct{ view store.IndexView }

// Index returns the index of that name, and whether there is one. One that is still being filled is not
// there.
func (s *Snapshot) Index(name string) (SnapshotIndex, bool) {
	view, ok := s.content.Index(name)
	return SnapshotIndex{view}, ok
}

// IndexSet returns what computes the values, or nil for an index of a plain function.
func (x SnapshotIndex) IndexSet() IndexSet {
	set, _ := x.view.Extractor().(IndexSet)
	return set
}

// Each calls yield for each value with the number of objects that have it, in no particular order, until it
// returns false.
func (x SnapshotIndex) Each(yield func(value string, count int) bool) { x.view.Each(yield) }

// Len counts the different values.
func (x SnapshotIndex) Len() int { return x.view.Len() }

// Count counts the objects with a value.
func (x SnapshotIndex) Count(value string) int { return x.view.Count(value) }

// Has reports whether the object of a key has a value.
func (x SnapshotIndex) Has(value, key string) bool { return x.view.Has(value, key) }

// AppendValues appends the values of the object of a key to a list, in no particular order, and reports
// whether they are known: not where there is no such object, or where the index has been removed since the
// Snapshot was taken. They are what the index holds, and nothing is computed. The texts are parts of the
// memory of all index values of the object: clone what you keep.
func (x SnapshotIndex) AppendValues(to []string, key string) (values []string, known bool) {
	return x.view.AppendValues(to, key)
}

// Objects calls yield for each object with a value, in no particular order, until it returns false. Objects
// and keys are as in Snapshot.AllStored: nothing is decoded.
func (x SnapshotIndex) Objects(value string, yield func(key string, object any) bool) {
	x.view.Objects(value, yield)
}

// Keys calls yield for each value from one on and before another (empty: no bound), in their order or the
// opposite, with the number of objects that have it, until it returns false. An index that is not kept in
// order (see IndexSet.Ordered) is sorted for that, which takes all its values.
func (x SnapshotIndex) Keys(from, to string, descending bool, yield func(value string, count int) bool) {
	x.view.Keys(from, to, descending, yield)
}

// CountKeys counts the values from one on and before another (empty: no bound), without looking at each. It
// is false for an index that is not kept in order.
func (x SnapshotIndex) CountKeys(from, to string) (count int, ok bool) {
	return x.view.CountKeys(from, to)
}
