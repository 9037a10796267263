package store

import "slices"

// IndexView reads one index of a Snapshot. Like that it never changes.
type IndexView struct {
	index    *index
	snapshot *Snapshot
}

// Index returns the index of that name, once it is complete.
func (s *Snapshot) Index(name string) (IndexView, bool) {
	x, err := s.index(name)
	return IndexView{x, s}, err == nil
}

// IndexNames lists the indexes that are complete.
func (s *Snapshot) IndexNames() []string {
	names := make([]string, len(s.indexes))
	for i := range s.indexes {
		names[i] = s.indexes[i].function.name
	}
	return names
}

// Extractor returns what computes the values; nil for a plain index function.
func (v IndexView) Extractor() Extractor { return v.index.function.extractor }

// Len counts the different values.
func (v IndexView) Len() int { return v.index.postings.len }

// Count counts the objects with a value.
func (v IndexView) Count(value string) int { return v.index.posting(value).len() }

// Has reports whether the object of a key has a value.
func (v IndexView) Has(value, key string) bool {
	p := v.index.posting(value)
	switch {
	case p == nil:
		return false
	case p.one != nil:
		return p.one.key == key
	default:
		return findRow(p.many(), key) != nil
	}
}

// AppendValues appends the values of the object of a key, in no particular order. It is false when they are
// not known any more: the index has been removed since the snapshot was taken, or there is no such object.
// The values keep all those of the object in memory.
func (v IndexView) AppendValues(to []string, key string) ([]string, bool) {
	r := findRow(&v.snapshot.rows, key)
	if r == nil {
		return to, false
	}
	f := v.index.function
	for c := f.valuesOf(r); c.next(); {
		to = append(to, c.value)
	}
	return to, !f.gone.Load()
}

// Objects calls yield for each object with a value, in no particular order, until it returns false.
func (v IndexView) Objects(value string, yield func(key string, item Item) bool) {
	for r := range v.index.posting(value).all {
		if !yield(r.key, r.keptItem()) {
			return
		}
	}
}

// CountKeys counts the values from one on and before another (empty: no bound), without looking at each. It
// is false for an index that keeps no order.
func (v IndexView) CountKeys(from, to string) (int, bool) {
	return v.index.order.count(from, to), v.index.function.sorted
}

// Each calls yield for each value with the number of objects that have it, in no particular order, until it
// returns false.
func (v IndexView) Each(yield func(value string, count int) bool) {
	v.index.postings.all(func(p *posting) bool { return yield(p.value, p.len()) })
}

// Keys calls yield for each value from one on and before another (empty: no bound), in their order or the
// opposite, with the number of objects that have it, until it returns false. An index that keeps no order is
// sorted for that, which takes all its values.
func (v IndexView) Keys(from, to string, descending bool, yield func(value string, count int) bool) {
	o := v.index.order
	if !v.index.function.sorted {
		values := make([]string, 0, v.index.postings.len)
		for p := range v.index.postings.all {
			if p.value >= from && (to == "" || p.value < to) {
				values = append(values, p.value)
			}
		}
		slices.Sort(values)
		o = buildOrder(values)
	}
	walk := o.ascend
	if descending {
		walk = o.descend
	}
	walk(from, to, func(value string) bool { return yield(value, v.Count(value)) })
}
