package store

import "slices"

// IndexView reads one index of a Snapshot, as dynamicinformer.SnapshotIndex describes. It is immutable.
type IndexView struct {
	index    *index
	snapshot *Snapshot
}

// Index returns the complete index with that name.
func (s *Snapshot) Index(name string) (IndexView, bool) {
	x, err := s.index(name)
	return IndexView{x, s}, err == nil
}

// IndexNames returns the names of the complete indexes.
func (s *Snapshot) IndexNames() []string {
	names := make([]string, len(s.indexes))
	for i := range s.indexes {
		names[i] = s.indexes[i].function.name
	}
	return names
}

// Extractor returns the Extractor that computes the values, or nil for an index function.
func (v IndexView) Extractor() Extractor { return v.index.function.extractor }

func (v IndexView) Len() int { return v.index.postings.len }

func (v IndexView) Count(value string) int { return v.index.posting(value).len() }

func (v IndexView) Has(value, key string) bool {
	p := v.index.posting(value)
	switch {
	case p == nil:
		return false
	case p.singleRow != nil:
		return p.singleRow.key == key
	default:
		return p.rowSet().find(key) != nil
	}
}

func (v IndexView) AppendValues(to []string, key string) ([]string, bool) {
	r := v.snapshot.rows.find(key)
	if r == nil {
		return to, false
	}
	f := v.index.function
	for c := f.valuesOf(r); c.next(); {
		to = append(to, c.value)
	}
	return to, !f.removed.Load()
}

func (v IndexView) Objects(value string, yield func(key string, item Item) bool) {
	for r := range v.index.posting(value).all {
		if !yield(keyOf(r), r.item()) {
			return
		}
	}
}

// CountKeys is SnapshotIndex.CountRange.
func (v IndexView) CountKeys(from, to string) (int, bool) {
	return v.index.sortedValues.count(from, to), v.index.function.sorted
}

// Each is SnapshotIndex.All.
func (v IndexView) Each(yield func(value string, count int) bool) {
	v.index.postings.all(func(p *posting) bool { return yield(p.value, p.len()) })
}

// Keys is SnapshotIndex.Range.
func (v IndexView) Keys(from, to string, descending bool, yield func(value string, count int) bool) {
	o := v.index.sortedValues
	if !v.index.function.sorted {
		values := make([]string, 0, v.index.postings.len)
		for p := range v.index.postings.all {
			if p.value >= from && (to == "" || p.value < to) {
				values = append(values, p.value)
			}
		}
		slices.Sort(values)
		o = buildSortedValues(values)
	}
	walk := o.ascend
	if descending {
		walk = o.descend
	}
	walk(from, to, func(value string) bool { return yield(value, v.Count(value)) })
}
