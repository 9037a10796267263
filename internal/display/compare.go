package display

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
)

// Comparison compares two states of an object.
type Comparison struct {
	// IdentityFields are the names of fields that can identify list elements, in order of preference.
	IdentityFields []string
	// Ignore reports whether the comparison leaves out a field.
	Ignore func(path []Step) bool
}

// Step is one step of a path: a key or a list element.
type Step struct {
	Key   string
	Index int // of an element; -1 for a key
	// Element is the list element after the change or, if it was removed, before it.
	Element any
	// IdentityField is the name of the field that identifies the element; empty if none does.
	IdentityField string
}

// Change is a changed field. HasOld is false for an added field, HasNew for a removed one.
type Change struct {
	Path           []Step
	Old, New       any
	HasOld, HasNew bool
}

// maxComparedDepth limits the depth of a comparison. A value at this depth is one change.
const maxComparedDepth = 60

// Changes returns the fields that differ, ordered by keys and identities. It compares list elements by
// identity if all have a unique one, and otherwise by position.
func (c Comparison) Changes(before, after map[string]any) []Change {
	d := &differ{Comparison: c}
	d.compareMaps(nil, before, after)
	return d.changes
}

type differ struct {
	Comparison
	changes []Change
}

// compareValues compares two optional values. Nil pointers are missing values.
func (d *differ) compareValues(path []Step, s Step, before, after *any) {
	if before != nil && after != nil && reflect.DeepEqual(*before, *after) {
		return
	}
	path = append(slices.Clip(path), s)
	if d.Ignore(path) {
		return
	}
	change := Change{Path: path, HasOld: before != nil, HasNew: after != nil}
	if before != nil {
		change.Old = *before
	}
	if after != nil {
		change.New = *after
	}
	if len(path) < maxComparedDepth {
		switch old := change.Old.(type) {
		case map[string]any:
			if value, ok := change.New.(map[string]any); ok {
				d.compareMaps(path, old, value)
				return
			}
		case []any:
			if value, ok := change.New.([]any); ok {
				d.compareLists(path, old, value)
				return
			}
		}
	}
	d.changes = append(d.changes, change)
}

func (d *differ) compareMaps(path []Step, before, after map[string]any) {
	for _, key := range sortedUnion(before, after) {
		d.compareValues(path, Step{Key: key, Index: -1}, fieldPointer(before, key), fieldPointer(after, key))
	}
}

func fieldPointer(values map[string]any, key string) *any {
	value, ok := values[key]
	if !ok {
		return nil
	}
	return &value
}

func sortedUnion[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func (d *differ) compareLists(path []Step, before, after []any) {
	for _, field := range d.IdentityFields {
		oldIndexes, inBefore := byIdentity(before, field)
		newIndexes, inAfter := byIdentity(after, field)
		if !inBefore || !inAfter {
			continue
		}
		for _, id := range sortedUnion(oldIndexes, newIndexes) {
			d.compareElements(path, field, before, after, indexOf(oldIndexes, id), indexOf(newIndexes, id))
		}
		return
	}
	for _, gap := range DifferingRanges(before, after) {
		for i := range max(gap.BeforeEnd-gap.Before, gap.AfterEnd-gap.After) {
			beforeIndex, afterIndex := gap.Before+i, gap.After+i
			if beforeIndex >= gap.BeforeEnd {
				beforeIndex = -1
			}
			if afterIndex >= gap.AfterEnd {
				afterIndex = -1
			}
			d.compareElements(path, "", before, after, beforeIndex, afterIndex)
		}
	}
}

// compareElements compares two list elements. The index of a missing element is -1.
func (d *differ) compareElements(path []Step, identityField string, before, after []any, i, j int) {
	var old, updated *any
	s := Step{IdentityField: identityField}
	if i >= 0 {
		old, s.Index, s.Element = &before[i], i, before[i]
	}
	if j >= 0 {
		updated, s.Index, s.Element = &after[j], j, after[j]
	}
	d.compareValues(path, s, old, updated)
}

// byIdentity returns the index of each element by the value of its field. It returns false unless the field
// of every element is a string or an integer, and unique.
func byIdentity(list []any, field string) (map[string]int, bool) {
	indexes := make(map[string]int, len(list))
	for i, element := range list {
		object, _ := element.(map[string]any)
		switch object[field].(type) {
		case string, int64:
		default:
			return nil, false
		}
		id := fmt.Sprint(object[field])
		if _, isDuplicate := indexes[id]; isDuplicate {
			return nil, false
		}
		indexes[id] = i
	}
	return indexes, true
}

func indexOf(indexes map[string]int, id string) int {
	if i, ok := indexes[id]; ok {
		return i
	}
	return -1
}

// DifferingRange is a range of two lists in which they differ.
type DifferingRange struct{ Before, BeforeEnd, After, AfterEnd int }

// maxSubsequenceCells is the maximum size of lcsLengths in DifferingRanges. If lists need more, everything
// between the first and the last difference is one gap.
const maxSubsequenceCells = 1 << 18

// DifferingRanges returns the ranges outside the longest common subsequence of two lists.
func DifferingRanges[T any](before, after []T) []DifferingRange {
	equal := func(i, j int) bool { return reflect.DeepEqual(before[i], after[j]) }
	begin := 0
	for begin < min(len(before), len(after)) && equal(begin, begin) {
		begin++
	}
	beforeEnd, afterEnd := len(before), len(after)
	for beforeEnd > begin && afterEnd > begin && equal(beforeEnd-1, afterEnd-1) {
		beforeEnd, afterEnd = beforeEnd-1, afterEnd-1
	}
	if beforeEnd == begin && afterEnd == begin {
		return nil
	}
	if (beforeEnd-begin)*(afterEnd-begin) > maxSubsequenceCells {
		return []DifferingRange{{begin, beforeEnd, begin, afterEnd}}
	}
	// lcsLengths[i][j] is the length of the longest common subsequence of before[i:] and after[j:],
	// counted from begin.
	lcsLengths := make([][]int, beforeEnd-begin+1)
	for i := range lcsLengths {
		lcsLengths[i] = make([]int, afterEnd-begin+1)
	}
	for i := beforeEnd - begin - 1; i >= 0; i-- {
		for j := afterEnd - begin - 1; j >= 0; j-- {
			if equal(begin+i, begin+j) {
				lcsLengths[i][j] = lcsLengths[i+1][j+1] + 1
			} else {
				lcsLengths[i][j] = max(lcsLengths[i+1][j], lcsLengths[i][j+1])
			}
		}
	}
	var gaps []DifferingRange
	current := DifferingRange{begin, begin, begin, begin}
	for i, j := begin, begin; ; {
		isMatch := i < beforeEnd && j < afterEnd && equal(i, j)
		if isMatch || i == beforeEnd && j == afterEnd {
			if current.BeforeEnd, current.AfterEnd = i, j; current.Before < i || current.After < j {
				gaps = append(gaps, current)
			}
			if !isMatch {
				return gaps
			}
			i, j = i+1, j+1
			current = DifferingRange{i, i, j, j}
			continue
		}
		if j == afterEnd ||
			i < beforeEnd && lcsLengths[i-begin+1][j-begin] >= lcsLengths[i-begin][j-begin+1] {
			i++
		} else {
			j++
		}
	}
}
