package jsonpath

import (
	"maps"
	"slices"
)

// condition is a node of a filter expression. The same nodes are the syntax tree and the compiled program.
type condition struct {
	kind condKind
	args []*condition // condOr, condAnd: two or more; condNot: one

	// For condExists, left is a path, and the others are unused. condCompare uses all three.
	op          compareOp
	left, right operand
}

type condKind uint8

const (
	condOr condKind = iota
	condAnd
	condNot
	condExists
	condCompare
)

// operand is one side of a comparison: a path relative to the tested value, or a literal.
type operand struct {
	isPath  bool
	steps   []Step
	literal scalar
	// byte range in the expression, for operands of comparisons only
	offset, end int
}

type compareOp uint8

const (
	opEqual compareOp = iota
	opNotEqual
	opLess
	opLessEqual
	opGreater
	opGreaterEqual
)

var compareOps = [...]string{
	opEqual:        "==",
	opNotEqual:     "!=",
	opLess:         "<",
	opLessEqual:    "<=",
	opGreater:      ">",
	opGreaterEqual: ">=",
}

// operands appends the paths of the condition in source order.
func (c *condition) operands(dst []operand) []operand {
	switch c.kind {
	case condExists:
		return append(dst, c.left)
	case condCompare:
		for _, o := range []operand{c.left, c.right} {
			if o.isPath {
				dst = append(dst, o)
			}
		}
	default:
		for _, a := range c.args {
			dst = a.operands(dst)
		}
	}
	return dst
}

// match reports whether n matches the condition. A comparison with a missing value is false for every
// operator. The result is undefined after the context has ended.
func (ev *evaluator) match(n node, c *condition) bool {
	switch c.kind {
	case condOr:
		return slices.ContainsFunc(c.args, func(a *condition) bool { return ev.match(n, a) })
	case condAnd:
		return !slices.ContainsFunc(c.args, func(a *condition) bool { return !ev.match(n, a) })
	case condNot:
		return !ev.match(n, c.args[0])
	case condExists:
		return ev.exists(n, c.left.steps)
	}
	return compareOperands(n, c)
}

// matchUnlessDone is match, but returns false after the context has ended.
func (ev *evaluator) matchUnlessDone(n node, c *condition) bool {
	return ev.match(n, c) && ev.err == nil
}

func (ev *evaluator) exists(n node, steps []Step) bool {
	n, steps, ok := runSingular(n, steps)
	if !ok || len(steps) == 0 {
		return ok
	}
	base := 0
	if ev.scratch != nil {
		base = len(ev.scratch.stack)
	}
	found := !ev.walk(n, steps, func(node) bool { return false })
	if ev.scratch != nil { // an aborted walk leaves children on the stack
		ev.scratch.popTo(base)
	}
	return found
}

func compareOperands(n node, c *condition) bool {
	if c.left.isPath && !c.right.isPath {
		m, _, ok := runSingular(n, c.left.steps)
		return ok && compareLiteral(m, c.op, &c.right.literal)
	}
	left, leftNode, ok := c.left.resolve(n)
	if !ok {
		return false
	}
	right, rightNode, ok := c.right.resolve(n)
	if !ok {
		return false
	}
	if left.kind == right.kind && (left.kind == KindObject || left.kind == KindArray) {
		// containers are only compared by two paths, so that both nodes are set
		return c.op.holds(0, equalValues(leftNode.decode(), rightNode.decode(), 0))
	}
	return c.op.holds(left.compare(&right))
}

func (o *operand) resolve(n node) (value scalar, pathNode node, ok bool) {
	if !o.isPath {
		return o.literal, node{}, true
	}
	pathNode, _, ok = runSingular(n, o.steps)
	if ok {
		value = pathNode.scalar()
	}
	return value, pathNode, ok
}

// compareLiteral compares n with a literal, with a shortcut for the most common comparison.
func compareLiteral(n node, op compareOp, lit *scalar) bool {
	if lit.kind == KindString && op <= opNotEqual {
		return n.equalsString(lit.text) == (op == opEqual)
	}
	s := n.scalar()
	return op.holds(s.compare(lit))
}

// equalValues compares decoded values deeply, numbers by value.
func equalValues(a, b any, depth int) bool {
	if depth > maxDocumentDepth {
		return false
	}
	equal := func(v, w any) bool { return equalValues(v, w, depth+1) }
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		return ok && maps.EqualFunc(a, b, equal)
	case []any:
		b, ok := b.([]any)
		return ok && slices.EqualFunc(a, b, equal)
	}
	x, y := scalarOf(a), scalarOf(b)
	result, ordered := x.compare(&y)
	return ordered && result == 0
}
