package jsonpath

import (
	"context"
	"slices"
	"sync"
)

// evaluator is the state of one evaluation. Scratch space is fetched on first use; most paths need none.
type evaluator struct {
	scratch   *scratchMemory
	ctx       context.Context // nil if nextCheck is neverCheck
	visited   int             // number of visited values
	nextCheck int             // number of visited values at which ctx is checked next
	err       error           // cause of an early end
}

// scratchMemory is the heap memory of one evaluation.
type scratchMemory struct {
	tape  tape     // the scanned document
	stack []node   // children that the enclosing steps are visiting
	keys  []string // for sorting the keys of one decoded map
	order []int32  // for sorting the members of one scanned object
}

var scratchPool = sync.Pool{New: func() any { return new(scratchMemory) }}

// maxPooledScratch is the maximum size of pooled scratch space in entries: huge objects pin no memory.
const maxPooledScratch = 1 << 13

func (ev *evaluator) acquireScratch() *scratchMemory {
	if ev.scratch == nil {
		ev.scratch = scratchPool.Get().(*scratchMemory)
	}
	return ev.scratch
}

// release returns the scratch space to the pool. It can be in any state after a panic of a callback.
func (ev *evaluator) release() {
	s := ev.scratch
	if s == nil || cap(s.tape.entries) > maxPooledScratch || cap(s.stack) > maxPooledScratch ||
		cap(s.keys) > maxPooledScratch || cap(s.order) > maxPooledScratch {
		return
	}
	s.popTo(0)
	s.order = s.order[:0]
	s.tape = tape{entries: s.tape.entries[:0]}
	scratchPool.Put(s)
}

// runSingular follows the leading steps that have at most one result. rest begins with the first step that
// can have several results.
func runSingular(n node, steps []Step) (result node, rest []Step, ok bool) {
	for i := range steps {
		s := steps[i].singularSelector()
		if s == nil {
			return n, steps[i:], true
		}
		if s.Kind == SelectName {
			n, ok = n.field(s.Name)
		} else {
			n, ok = n.element(s.Index)
		}
		if !ok {
			return n, nil, false
		}
	}
	return n, nil, true
}

// walk calls yield for each result of the steps on n, in order. It returns false if yield does, or when the
// context has ended. Its loops count the visited values.
func (ev *evaluator) walk(n node, steps []Step, yield func(node) bool) bool {
	n, steps, ok := runSingular(n, steps)
	switch {
	case !ok:
		return true
	case len(steps) == 0:
		return yield(n)
	case steps[0].Recursive:
		return ev.walkRecursive(n, steps, 0, yield)
	}
	return ev.walkSelectors(n, steps, yield)
}

func (ev *evaluator) walkSelectors(n node, steps []Step, yield func(node) bool) bool {
	selectors := steps[0].Selectors
	for i := range selectors {
		if !ev.walkSelector(n, &selectors[i], steps[1:], yield) {
			return false
		}
	}
	return true
}

// walkRecursive applies the first step to n and its descendants, parents before children.
func (ev *evaluator) walkRecursive(n node, steps []Step, depth int, yield func(node) bool) bool {
	if !ev.walkSelectors(n, steps, yield) {
		return false
	}
	if depth == maxDocumentDepth { // JSON is never deeper; a Go value can be, or cyclic
		return true
	}
	s := ev.acquireScratch()
	base := s.pushChildren(n)
	top := len(s.stack)
	if !ev.countVisited(top - base) {
		return false
	}
	for i := base; i < top; i++ {
		if k := s.stack[i].kind(); (k == KindObject || k == KindArray) &&
			!ev.walkRecursive(s.stack[i], steps, depth+1, yield) {
			return false
		}
	}
	s.popTo(base)
	return true
}

// walkSelector walks the rest of the steps from each value that the selector selects.
func (ev *evaluator) walkSelector(n node, s *Selector, rest []Step, yield func(node) bool) bool {
	switch s.Kind {
	case SelectName:
		m, ok := n.field(s.Name)
		return !ok || ev.walk(m, rest, yield)
	case SelectIndex:
		m, ok := n.element(s.Index)
		return !ok || ev.walk(m, rest, yield)
	case SelectSlice:
		return ev.walkSlice(n, s.Slice, rest, yield)
	case SelectElements:
		return ev.walkElements(n, nil, rest, yield)
	}
	switch n.kind() {
	case KindArray:
		return ev.walkElements(n, s.condition(), rest, yield)
	case KindObject:
		return ev.walkMembers(n, s.condition(), rest, yield)
	}
	return true
}

// walkMembers visits the values of a map in the order of their keys. A nil condition matches every value.
func (ev *evaluator) walkMembers(n node, c *condition, rest []Step, yield func(node) bool) bool {
	s := ev.acquireScratch()
	base := s.pushChildren(n)
	top := len(s.stack)
	for i := base; i < top; i++ {
		m := s.stack[i]
		if !ev.countVisited(1) || (c == nil || ev.matchUnlessDone(m, c)) && !ev.walk(m, rest, yield) {
			return false
		}
	}
	s.popTo(base)
	return true
}

func (ev *evaluator) walkElements(n node, c *condition, rest []Step, yield func(node) bool) bool {
	for elements := n.elements(); ; {
		m, ok := elements.next()
		if !ok {
			return true
		}
		if !ev.countVisited(1) || (c == nil || ev.matchUnlessDone(m, c)) && !ev.walk(m, rest, yield) {
			return false
		}
	}
}

func (ev *evaluator) walkSlice(n node, slice Slice, rest []Step, yield func(node) bool) bool {
	s := ev.acquireScratch()
	base := len(s.stack)
	s.pushElements(n)
	if !ev.countVisited(len(s.stack) - base) {
		return false
	}
	first, stop, step := slice.bounds(len(s.stack) - base)
	for i := first; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if !ev.countVisited(1) || !ev.walk(s.stack[base+i], rest, yield) {
			return false
		}
	}
	s.popTo(base)
	return true
}

// pushChildren pushes the elements of a list, or the values of a map in the order of their keys, and returns
// the previous height of the stack. The caller pops them unless the evaluation ends.
func (s *scratchMemory) pushChildren(n node) (base int) {
	base = len(s.stack)
	switch {
	case n.tape != nil && n.kind() == KindObject:
		s.order = n.tape.sortedMembers(n.index, s.order[:0])
		for _, c := range s.order {
			s.stack = append(s.stack, node{tape: n.tape, index: c})
		}
	case n.kind() == KindObject:
		m := n.value.(map[string]any)
		s.keys = s.keys[:0]
		for k := range m {
			s.keys = append(s.keys, k)
		}
		slices.Sort(s.keys)
		for _, k := range s.keys {
			s.stack = append(s.stack, node{value: m[k]})
		}
		clear(s.keys) // the pool must not pin user data
	default:
		s.pushElements(n)
	}
	return base
}

func (s *scratchMemory) pushElements(n node) {
	for c := n.elements(); ; {
		m, ok := c.next()
		if !ok {
			return
		}
		s.stack = append(s.stack, m)
	}
}

// popTo cuts the stack and clears the rest, so that the pool does not pin user data.
func (s *scratchMemory) popTo(base int) {
	clear(s.stack[base:])
	s.stack = s.stack[:base]
}
