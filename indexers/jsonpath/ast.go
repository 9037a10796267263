package jsonpath

import "slices"

// SelectorKind says what a [Selector] picks from the value it is applied to.
type SelectorKind uint8

const (
	// SelectName picks the member Name of a map.
	SelectName SelectorKind = iota
	// SelectIndex picks the element Index of a list; a negative index counts from the end.
	SelectIndex
	// SelectSlice picks the elements of a list that Slice describes.
	SelectSlice
	// SelectElements, written [*], picks every element of a list, and nothing of a map.
	SelectElements
	// SelectMembers, written .*, picks every element of a list or every value of a map, the latter
	// in the order of their keys.
	SelectMembers
	// SelectFilter picks the elements of a list, or the values of a map in the order of their keys,
	// for which Filter holds.
	SelectFilter
	// SelectPath picks what the steps in Path lead to. Only a union in the kubectl dialect has it,
	// such as ['metadata.name','kind'].
	SelectPath
)

// Step is one step of a path: what is picked from each value that the steps before it gave.
type Step struct {
	// Recursive is set for "..": the selectors apply to the value and to everything below it.
	Recursive bool
	// Selectors holds at least one selector; more than one is a union, whose results come in the
	// order of the selectors.
	Selectors []Selector
	// Offset and End are the bytes of the expression that wrote this step; both 0 for a path that
	// was built by [FromSegments].
	Offset, End int
}

// Selector picks values from a map or a list. Kind says which of the other fields are used.
type Selector struct {
	Kind   SelectorKind
	Name   string  // SelectName
	Index  int     // SelectIndex
	Slice  Slice   // SelectSlice
	Filter *Filter // SelectFilter
	Path   []Step  // SelectPath
	// Offset and End are the bytes of the expression that wrote this selector.
	Offset, End int
}

// Slice describes [start:end:step]. Bounds are clamped to the list, negative ones count from its
// end, and a negative step walks backwards.
type Slice struct {
	Start, End       int
	HasStart, HasEnd bool
	Step             int // never 0; 1 when it was left out
}

// bounds gives the first index, the index to stop before, and a step that cannot overflow, for a
// list of n elements. With a negative step the walk goes down from first and stops before stop.
func (s Slice) bounds(n int) (first, stop, step int) {
	norm := func(v int) int {
		if v < 0 {
			return v + n
		}
		return v
	}
	// More than n elements at once leaves the list anyway.
	step = min(max(s.Step, -n-1), n+1)
	if step > 0 {
		first, stop = 0, n
		if s.HasStart {
			first = min(max(norm(s.Start), 0), n)
		}
		if s.HasEnd {
			stop = min(max(norm(s.End), 0), n)
		}
		return first, stop, step
	}
	first, stop = n-1, -1
	if s.HasStart {
		first = min(max(norm(s.Start), -1), n-1)
	}
	if s.HasEnd {
		stop = min(max(norm(s.End), -1), n-1)
	}
	return first, stop, step
}

// singular tells whether the steps lead to at most one value.
func singular(steps []Step) bool {
	for _, s := range steps {
		if s.Recursive || len(s.Selectors) != 1 {
			return false
		}
		switch s.Selectors[0].Kind {
		case SelectName, SelectIndex:
		default:
			return false
		}
	}
	return true
}

// cloneSteps copies the slices, so that a caller cannot change a compiled path through them.
func cloneSteps(steps []Step) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Selectors = slices.Clone(out[i].Selectors)
		for j := range out[i].Selectors {
			if p := out[i].Selectors[j].Path; p != nil {
				out[i].Selectors[j].Path = cloneSteps(p)
			}
		}
	}
	return out
}
