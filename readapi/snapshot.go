package readapi

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// snapshot is the objects of a collection at a version: those of a newer state, but for some. It is not put
// together before somebody reads it, so that nobody waits for that, and who reads a page pays for a page.
type snapshot[T comparableObject] struct {
	version uint64
	sorted  []T
	// others are the objects that differ from sorted, by key, with the zero value for what was not there.
	others []keyed[T]
}

// comparableObject is an Object whose zero value stands for none.
type comparableObject interface {
	comparable
	Object
}

// keyed is an object or nothing under a key.
type keyed[T comparableObject] struct {
	key    string
	object T
}

func compareKey[T comparableObject](o T, key string) int          { return strings.Compare(o.Key(), key) }
func compareKeyed[T comparableObject](k keyed[T], key string) int { return strings.Compare(k.key, key) }

// NewSnapshot returns sorted with changes applied: objects that are added or replace others, or the zero
// value of T for what goes. sorted is by key. Both must not be changed any more.
func NewSnapshot[T comparableObject](version uint64, sorted []T, changes map[string]T) Snapshot {
	return newSnapshot(version, sorted, changes)
}

func newSnapshot[T comparableObject](version uint64, sorted []T, changes map[string]T) *snapshot[T] {
	s := &snapshot[T]{version: version, sorted: sorted}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		s.others = append(s.others, keyed[T]{key, changes[key]})
	}
	return s
}

// ResourceVersion implements Snapshot.
func (s *snapshot[T]) ResourceVersion() uint64 { return s.version }

// cut returns what is from one key up to another.
func (s *snapshot[T]) cut(from, to string) (sorted []T, others []keyed[T]) {
	begin, _ := slices.BinarySearchFunc(s.sorted, from, compareKey[T])
	first, _ := slices.BinarySearchFunc(s.others, from, compareKeyed[T])
	end, last := len(s.sorted), len(s.others)
	if to != "" {
		end, _ = slices.BinarySearchFunc(s.sorted, to, compareKey[T])
		last, _ = slices.BinarySearchFunc(s.others, to, compareKeyed[T])
	}
	return s.sorted[begin:max(begin, end)], s.others[first:max(first, last)]
}

// Range implements Snapshot.
func (s *snapshot[T]) Range(from, to string) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		var none T
		sorted, others := s.cut(from, to)
		for len(sorted) > 0 || len(others) > 0 {
			if len(others) == 0 || len(sorted) > 0 && sorted[0].Key() < others[0].key {
				if !yield(sorted[0]) {
					return
				}
				sorted = sorted[1:]
				continue
			}
			if len(sorted) > 0 && sorted[0].Key() == others[0].key {
				sorted = sorted[1:]
			}
			if o := others[0].object; o != none && !yield(o) {
				return
			}
			others = others[1:]
		}
	}
}

// Count implements Snapshot.
func (s *snapshot[T]) Count(from, to string) int {
	sorted, others := s.cut(from, to)
	var none T
	n := len(sorted)
	for _, k := range others {
		if _, replaces := slices.BinarySearchFunc(sorted, k.key, compareKey[T]); replaces {
			n--
		}
		if k.object != none {
			n++
		}
	}
	return n
}

// all returns all objects.
func (s *snapshot[T]) all() []T {
	if len(s.others) == 0 {
		return s.sorted
	}
	out := make([]T, 0, len(s.sorted)+len(s.others))
	for o := range s.Range("", "") {
		out = append(out, o.(T))
	}
	return out
}
