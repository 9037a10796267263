package jsonpath

import (
	"slices"
	"sync"
)

// evaluator holds what an evaluation needs beyond the stack: the scanned document and scratch space.
// It belongs to one call at a time.
type evaluator struct {
	tape  tape
	stack []node   // the children that the enclosing steps are visiting
	keys  []string // for sorting the keys of one decoded map
	order []int32  // for sorting the members of one scanned object
}

var evaluators = sync.Pool{New: func() any { return new(evaluator) }}

func newEvaluator() *evaluator { return evaluators.Get().(*evaluator) }

// The most scratch space that goes back to the pool, in entries: an evaluator that met a huge
// object should not keep its memory alive.
const keepScratch = 1 << 13

// release gives the evaluator back. It may be in any state, since a callback may have panicked.
func (ev *evaluator) release() {
	if cap(ev.tape.entries) > keepScratch || cap(ev.stack) > keepScratch || cap(ev.keys) > keepScratch || cap(ev.order) > keepScratch {
		return
	}
	ev.popTo(0)
	ev.order = ev.order[:0]
	ev.tape = tape{entries: ev.tape.entries[:0]}
	evaluators.Put(ev)
}

// follow runs the part of a program that leads to at most one value. It stops at the first
// instruction that may give more, which rest then is.
func follow(n node, o *op) (result node, rest *op, ok bool) {
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

// walk calls yield for each result of the program o on n, in order. It returns false as soon as
// yield does.
func (ev *evaluator) walk(n node, o *op, yield func(node) bool) bool {
	n, o, ok := follow(n, o)
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

func (ev *evaluator) pickAll(n node, o *op, yield func(node) bool) bool {
	for i := range o.sels {
		if !ev.pick(n, &o.sels[i], yield) {
			return false
		}
	}
	return true
}

// descend applies the selectors of o to n and to everything below it, parents before children.
func (ev *evaluator) descend(n node, o *op, depth int, yield func(node) bool) bool {
	if !ev.pickAll(n, o, yield) {
		return false
	}
	if depth == limitDocumentDepth { // only a Go value can be deeper, or even endless
		return true
	}
	base := ev.pushChildren(n)
	top := len(ev.stack)
	for i := base; i < top; i++ {
		if k := ev.stack[i].kind(); (k == KindObject || k == KindArray) && !ev.descend(ev.stack[i], o, depth+1, yield) {
			return false
		}
	}
	ev.popTo(base)
	return true
}

func (ev *evaluator) pick(n node, s *pick, yield func(node) bool) bool {
	switch s.kind {
	case SelectName:
		m, ok := n.field(s.name)
		return !ok || ev.walk(m, s.next, yield)
	case SelectIndex:
		m, ok := n.element(s.index)
		return !ok || ev.walk(m, s.next, yield)
	case SelectSlice:
		return ev.pickSlice(n, s, yield)
	case SelectPath:
		return ev.walk(n, s.next, yield)
	case SelectElements:
		return ev.pickElements(n, s, yield)
	}
	if n.kind() == KindArray {
		return ev.pickElements(n, s, yield)
	}
	base := ev.pushChildren(n)
	top := len(ev.stack)
	for i := base; i < top; i++ {
		m := ev.stack[i]
		if (s.cond == nil || ev.test(m, s.cond)) && !ev.walk(m, s.next, yield) {
			return false
		}
	}
	ev.popTo(base)
	return true
}

func (ev *evaluator) pickElements(n node, s *pick, yield func(node) bool) bool {
	for c := n.elements(); ; {
		m, ok := c.next()
		if !ok {
			return true
		}
		if (s.cond == nil || ev.test(m, s.cond)) && !ev.walk(m, s.next, yield) {
			return false
		}
	}
}

func (ev *evaluator) pickSlice(n node, s *pick, yield func(node) bool) bool {
	base := len(ev.stack)
	ev.pushElements(n)
	first, stop, step := s.slice.bounds(len(ev.stack) - base)
	for i := first; step > 0 && i < stop || step < 0 && i > stop; i += step {
		if !ev.walk(ev.stack[base+i], s.next, yield) {
			return false
		}
	}
	ev.popTo(base)
	return true
}

// pushChildren puts the elements of a list, or the values of a map in the order of their keys, on
// the stack and returns where they start. The caller cuts the stack back, unless the whole
// evaluation ends.
func (ev *evaluator) pushChildren(n node) (base int) {
	base = len(ev.stack)
	switch {
	case n.t != nil && n.kind() == KindObject:
		ev.order = n.t.sortedMembers(n.i, ev.order[:0])
		for _, c := range ev.order {
			ev.stack = append(ev.stack, node{t: n.t, i: c})
		}
	case n.kind() == KindObject:
		m := n.v.(map[string]any)
		ev.keys = ev.keys[:0]
		for k := range m {
			ev.keys = append(ev.keys, k)
		}
		slices.Sort(ev.keys)
		for _, k := range ev.keys {
			ev.stack = append(ev.stack, node{v: m[k]})
		}
		clear(ev.keys) // the pool must not keep user data alive
	default:
		ev.pushElements(n)
	}
	return base
}

func (ev *evaluator) pushElements(n node) {
	for c := n.elements(); ; {
		m, ok := c.next()
		if !ok {
			return
		}
		ev.stack = append(ev.stack, m)
	}
}

// popTo cuts the stack back and forgets what was there, so that the pool keeps no user data alive.
func (ev *evaluator) popTo(base int) {
	clear(ev.stack[base:])
	ev.stack = ev.stack[:base]
}
