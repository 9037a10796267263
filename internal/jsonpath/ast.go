package jsonpath

import "slices"

// SelectorKind is the kind of a [Selector].
type SelectorKind uint8

const (
	// SelectName selects the member Name of a map.
	SelectName SelectorKind = iota
	// SelectIndex selects the element Index of a list; a negative index counts from the end. This and
	// SelectName select at most one value.
	SelectIndex
	// SelectSlice selects the elements of a list that Slice describes.
	SelectSlice
	// SelectElements, written [*], selects every element of a list, and nothing of a map.
	SelectElements
	// SelectMembers, written .*, selects every element of a list, or all values of a map by key.
	SelectMembers
	// SelectFilter selects the elements of a list, or the values of a map by key, that match Filter.
	SelectFilter
)

// Step is one step of a path. It is applied to each result of the previous step.
type Step struct {
	// Recursive is set for "..": the selectors apply to the value and all its descendants.
	Recursive bool
	// Selectors holds at least one selector; several form a union, with results in their order.
	Selectors []Selector
	// Offset and End are the bytes of the step in the expression; both are 0 for a path of [FromSegments].
	Offset, End int
}

// Selector selects values from a map or a list. Kind determines which other fields are used.
type Selector struct {
	Kind   SelectorKind
	Name   string  // SelectName
	Index  int     // SelectIndex
	Slice  Slice   // SelectSlice
	Filter *Filter // SelectFilter
	// Offset and End are the bytes of the selector in the expression.
	Offset, End int
}

// Slice is [start:end:step]. Bounds are clamped to the list, negative ones count from its end, and a negative
// step walks backwards.
type Slice struct {
	Start, End       int
	HasStart, HasEnd bool
	Step             int // never 0; default 1
}

// bounds returns the first index, the index to stop before, and a step that cannot overflow, for a list of n
// elements. With a negative step the walk goes down from first.
func (s Slice) bounds(n int) (first, stop, step int) {
	fromStart := func(v int) int {
		if v < 0 {
			return v + n
		}
		return v
	}
	// n+1 already leaves the list, and cannot overflow when it is added to an index
	step = min(max(s.Step, -n-1), n+1)
	if step > 0 {
		first, stop = 0, n
		if s.HasStart {
			first = min(max(fromStart(s.Start), 0), n)
		}
		if s.HasEnd {
			stop = min(max(fromStart(s.End), 0), n)
		}
		return first, stop, step
	}
	first, stop = n-1, -1
	if s.HasStart {
		first = min(max(fromStart(s.Start), -1), n-1)
	}
	if s.HasEnd {
		stop = min(max(fromStart(s.End), -1), n-1)
	}
	return first, stop, step
}

// singularSelector returns the selector of a step that has at most one result, otherwise nil.
func (s *Step) singularSelector() *Selector {
	if s.Recursive || len(s.Selectors) != 1 || s.Selectors[0].Kind > SelectIndex {
		return nil
	}
	return &s.Selectors[0]
}

// isSingular reports whether the steps have at most one result.
func isSingular(steps []Step) bool {
	return !slices.ContainsFunc(steps, func(s Step) bool { return s.singularSelector() == nil })
}

// condition returns the condition of a filter, otherwise nil.
func (s *Selector) condition() *condition {
	if s.Filter == nil {
		return nil
	}
	return s.Filter.cond
}

// cloneSteps copies the slices, so that callers cannot change a compiled path.
func cloneSteps(steps []Step) []Step {
	out := slices.Clone(steps)
	for i := range out {
		out[i].Selectors = slices.Clone(out[i].Selectors)
	}
	return out
}
