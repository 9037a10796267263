package jsonpath

import (
	"context"
	"slices"
	"sync"
)

// evaluator is the state of one evaluation. Scratch space is fetched on first use; most paths over decoded
// objects need none.
type evaluator struct {
	scratch   *evaluationMemory
	ctx       context.Context // nil if nextCheck is neverCheck
	visited   int             // number of visited values
	nextCheck int             // number of visited values at which ctx is checked next
	err       error           // cause of an early end
}

// evaluationMemory is the heap memory of one evaluation.
type evaluationMemory struct {
	tape  tape     // the scanned document
	stack []node   // children that the enclosing steps are visiting
	keys  []string // for sorting the keys of one decoded map
	order []int32  // for sorting the members of one scanned object
}

var scratches = sync.Pool{New: func() any { return new(evaluationMemory) }}

// maxPooledScratch is the maximum size of pooled scratch space in entries, so that one huge object does not
// pin memory.
const maxPooledScratch = 1 << 13

func (ev *evaluator) acquireScratch() *evaluationMemory {
	if ev.scratch == nil {
		ev.scratch = scratches.Get().(*evaluationMemory)
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
	scratches.Put(s)
}

// runSingular runs the leading instructions that have at most one result. rest is the first instruction that
// can have several results.
func runSingular(n node, o *instruction) (result node, rest *instruction, ok bool) {
	for ok = true; ok && o != nil; o = o.next {
		switch o.kind {
		case opName:
			n, ok = n.field(o.name)
		case opIndex:
			n, ok = n.element(o.index)
		default:
			return n, o, true
		}
	}
	return n, nil, ok
}

// walk calls yield for each result of program o on n, in order. It returns false if yield does, or when the
// context has ended. Its loops count the visited values.
func (ev *evaluator) walk(n node, o *instruction, yield func(node) bool) bool {
	n, o, ok := runSingular(n, o)
	switch {
	case !ok:
		return true
	case o == nil:
		return yield(n)
	case o.kind == opRecursive:
		return ev.descend(n, o, 0, yield)
	}
	return ev.pickAll(n, o, yield)
}

func (ev *evaluator) pickAll(n node, o *instruction, yield func(node) bool) bool {
	for i := range o.sels {
		if !ev.pick(n, &o.sels[i], yield) {
			return false
		}
	}
	return true
}

// descend applies the selectors of o to n and its descendants, parents before children.
func (ev *evaluator) descend(n node, o *instruction, depth int, yield func(node) bool) bool {
	if !ev.pickAll(n, o, yield) {
		return false
	}
	if depth == limitDocumentDepth { // JSON is never deeper; a Go value can be, or cyclic
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
			!ev.descend(s.stack[i], o, depth+1, yield) {
			return false
		}
	}
	s.popTo(base)
	return true
}

func (ev *evaluator) pick(n node, p *branchOp, yield func(node) bool) bool {
	switch p.kind {
	case SelectName:
		m, ok := n.field(p.name)
		return !ok || ev.walk(m, p.next, yield)
	case SelectIndex:
		m, ok := n.element(p.index)
		return !ok || ev.walk(m, p.next, yield)
	case SelectSlice:
		return ev.pickSlice(n, p, yield)
	case SelectElements:
		return ev.pickElements(n, p, yield)
	}
	switch n.kind() {
	case KindArray:
		return ev.pickElements(n, p, yield)
	case KindObject:
		return ev.pickMembers(n, p, yield)
	}
	return true
}

// pickMembers visits the values of a map in the order of their keys.
func (ev *evaluator) pickMembers(n node, p *branchOp, yield func(node) bool) bool {
	s := ev.acquireScratch()
	base := s.pushChildren(n)
	top := len(s.stack)
	for i := base; i < top; i++ {
		m := s.stack[i]
		if !ev.countVisited(1) {
			return false
		}
		if (p.cond == nil || ev.holds(m, p.cond)) && !ev.walk(m, p.next, yield) {
			return false
		}
	}
	s.popTo(base)
	return true
}

func (ev *evaluator) pickElements(n node, p *branchOp, yield func(node) bool) bool {
	for c := n.elements(); ; {
		m, ok := c.next()
		if !ok {
			return true
		}
		if !ev.countVisited(1) {
			return false
		}
		if (p.cond == nil || ev.holds(m, p.cond)) && !ev.walk(m, p.next, yield) {
			return false
		}
	}
}

func (ev *evaluator) pickSlice(n node, p *branchOp, yield func(node) bool) bool {
	s := ev.acquireScratch()
	base := len(s.stack)
	s.pushElements(n)
	if !ev.countVisited(len(s.stack) - base) {
		return false
	}
	first, stop, step := p.slice.bounds(len(s.stack) - base)
	for i := first; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if !ev.countVisited(1) || !ev.walk(s.stack[base+i], p.next, yield) {
			return false
		}
	}
	s.popTo(base)
	return true
}

// pushChildren pushes the elements of a list, or the values of a map in the order of their keys, and returns
// the previous height of the stack. The caller pops them unless the evaluation ends.
func (s *evaluationMemory) pushChildren(n node) (base int) {
	base = len(s.stack)
	switch {
	case n.t != nil && n.kind() == KindObject:
		s.order = n.t.sortedMembers(n.i, s.order[:0])
		for _, c := range s.order {
			s.stack = append(s.stack, node{t: n.t, i: c})
		}
	case n.kind() == KindObject:
		m := n.v.(map[string]any)
		s.keys = s.keys[:0]
		for k := range m {
			s.keys = append(s.keys, k)
		}
		slices.Sort(s.keys)
		for _, k := range s.keys {
			s.stack = append(s.stack, node{v: m[k]})
		}
		clear(s.keys) // the pool must not pin user data
	default:
		s.pushElements(n)
	}
	return base
}

func (s *evaluationMemory) pushElements(n node) {
	for c := n.elements(); ; {
		m, ok := c.next()
		if !ok {
			return
		}
		s.stack = append(s.stack, m)
	}
}

// popTo cuts the stack and clears the rest, so that the pool does not pin user data.
func (s *evaluationMemory) popTo(base int) {
	clear(s.stack[base:])
	s.stack = s.stack[:base]
}
