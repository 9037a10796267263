package readapi

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// snapshot is the objects of a collection at a version: those of a newer state, but for some. It is not put together
// before somebody reads it, so that nobody waits for that, and who reads a page pays for a page.
type snapshot struct {
	version uint64
	sorted  []*object
	// others are the objects that differ from sorted, by key, with nil for what was not there.
	others []keyed
}

// keyed is an object or nothing under a key.
type keyed struct {
	key string
	*object
}

func compareKey(o *object, key string) int { return strings.Compare(o.key, key) }
func compareKeyed(k keyed, key string) int { return strings.Compare(k.key, key) }

// newSnapshot returns sorted with changes applied: objects that are added or replace others, or nil for what goes.
func newSnapshot(version uint64, sorted []*object, changes map[string]*object) *snapshot {
	s := &snapshot{version: version, sorted: sorted}
	for _, key := range slices.Sorted(maps.Keys(changes)) {
		s.others = append(s.others, keyed{key, changes[key]})
	}
	return s
}

// ResourceVersion implements Snapshot.
func (s *snapshot) ResourceVersion() uint64 { return s.version }

// cut returns what is from one key up to another.
func (s *snapshot) cut(from, to string) (sorted []*object, others []keyed) {
	begin, _ := slices.BinarySearchFunc(s.sorted, from, compareKey)
	first, _ := slices.BinarySearchFunc(s.others, from, compareKeyed)
	end, last := len(s.sorted), len(s.others)
	if to != "" {
		end, _ = slices.BinarySearchFunc(s.sorted, to, compareKey)
		last, _ = slices.BinarySearchFunc(s.others, to, compareKeyed)
	}
	return s.sorted[begin:max(begin, end)], s.others[first:max(first, last)]
}

// Range implements Snapshot.
func (s *snapshot) Range(from, to string) iter.Seq[Object] {
	return func(yield func(Object) bool) {
		sorted, others := s.cut(from, to)
		for len(sorted) > 0 || len(others) > 0 {
			if len(others) == 0 || len(sorted) > 0 && sorted[0].key < others[0].key {
				if !yield(sorted[0]) {
					return
				}
				sorted = sorted[1:]
				continue
			}
			if len(sorted) > 0 && sorted[0].key == others[0].key {
				sorted = sorted[1:]
			}
			if o := others[0].object; o != nil && !yield(o) {
				return
			}
			others = others[1:]
		}
	}
}

// Count implements Snapshot.
func (s *snapshot) Count(from, to string) int {
	sorted, others := s.cut(from, to)
	n := len(sorted)
	for _, k := range others {
		if _, replaces := slices.BinarySearchFunc(sorted, k.key, compareKey); replaces {
			n--
		}
		if k.object != nil {
			n++
		}
	}
	return n
}

// all returns all objects.
func (s *snapshot) all() []*object {
	if len(s.others) == 0 {
		return s.sorted
	}
	out := make([]*object, 0, len(s.sorted)+len(s.others))
	for o := range s.Range("", "") {
		out = append(out, o.(*object))
	}
	return out
}
