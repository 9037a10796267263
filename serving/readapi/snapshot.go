package readapi

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// snapshot is a sorted list of objects with some objects replaced. The two are merged while reading, so that
// reading a page costs only the page.
type snapshot[T comparableObject] struct {
	version uint64
	sorted  []T
	// changes are sorted by key. The zero value means that there is no object.
	changes []keyedObject[T]
}

// comparableObject is an Object. Its zero value means no object.
type comparableObject interface {
	comparable
	Object
}

type keyedObject[T comparableObject] struct {
	key    string
	object T
}

func compareKey[T comparableObject](o T, key string) int { return strings.Compare(o.Key(), key) }
func compareKeyed[T comparableObject](k keyedObject[T], key string) int {
	return strings.Compare(k.key, key)
}

// NewSnapshot returns a snapshot of sorted with changes applied. A change adds or replaces an object, or
// removes it if the value is the zero value of T. sorted is sorted by key. The caller does not modify the
// arguments afterwards.
func NewSnapshot[T comparableObject](version uint64, sorted []T, changes map[string]T) Snapshot {
	s := &snapshot[T]{version: version, sorted: sorted}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		s.changes = append(s.changes, keyedObject[T]{key, changes[key]})
	}
	return s
}

func (s *snapshot[T]) ResourceVersion() uint64 { return s.version }

// between returns the objects with from <= key < to.
func (s *snapshot[T]) between(from, to string) (sorted []T, changes []keyedObject[T]) {
	begin, _ := slices.BinarySearchFunc(s.sorted, from, compareKey[T])
	first, _ := slices.BinarySearchFunc(s.changes, from, compareKeyed[T])
	end, last := len(s.sorted), len(s.changes)
	if to != "" {
		end, _ = slices.BinarySearchFunc(s.sorted, to, compareKey[T])
		last, _ = slices.BinarySearchFunc(s.changes, to, compareKeyed[T])
	}
	return s.sorted[begin:max(begin, end)], s.changes[first:max(first, last)]
}

func (s *snapshot[T]) Range(from, to string) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		var zero T
		sorted, changes := s.between(from, to)
		for len(sorted) > 0 || len(changes) > 0 {
			if len(changes) == 0 || len(sorted) > 0 && sorted[0].Key() < changes[0].key {
				if !yield(sorted[0]) {
					return
				}
				sorted = sorted[1:]
				continue
			}
			if len(sorted) > 0 && sorted[0].Key() == changes[0].key {
				sorted = sorted[1:]
			}
			if o := changes[0].object; o != zero && !yield(o) {
				return
			}
			changes = changes[1:]
		}
	}
}

func (s *snapshot[T]) Count(from, to string) int {
	sorted, changes := s.between(from, to)
	var none T
	n := len(sorted)
	for _, k := range changes {
		if _, replaces := slices.BinarySearchFunc(sorted, k.key, compareKey[T]); replaces {
			n--
		}
		if k.object != none {
			n++
		}
	}
	return n
}
