package jsonpath

// test tells whether the condition holds for n. It is total: a comparison with a value that is not
// there is false, whatever the operator, because there is nothing to compare.
func (ev *evaluator) test(n node, c *condition) bool {
	switch c.kind {
	case condOr:
		for _, a := range c.args {
			if ev.test(n, a) {
				return true
			}
		}
		return false
	case condAnd:
		for _, a := range c.args {
			if !ev.test(n, a) {
				return false
			}
		}
		return true
	case condNot:
		return !ev.test(n, c.args[0])
	case condExists:
		return ev.exists(n, c.left.prog)
	}
	return compareOperands(n, c)
}

func (ev *evaluator) exists(n node, o *op) bool {
	n, o, ok := follow(n, o)
	if !ok || o == nil {
		return ok
	}
	// The walk stops at the first value and leaves its children on the stack.
	base := len(ev.stack)
	found := !ev.walk(n, o, func(node) bool { return false })
	ev.popTo(base)
	return found
}

func compareOperands(n node, c *condition) bool {
	left, right := c.left.lit, c.right.lit
	var ln, rn node
	if c.left.isPath {
		var ok bool
		if ln, _, ok = follow(n, c.left.prog); !ok {
			return false
		}
		left = ln.scalar()
	}
	if c.right.isPath {
		var ok bool
		if rn, _, ok = follow(n, c.right.prog); !ok {
			return false
		}
		right = rn.scalar()
	}
	if left.kind == right.kind && (left.kind == KindObject || left.kind == KindArray) {
		// Containers have no order; only two paths can meet here, so both nodes are set.
		return c.op.holds(0, equalValues(ln.decode(), rn.decode(), 0))
	}
	return c.op.holds(left.compare(&right))
}

// equalValues compares decoded values in depth, numbers as numbers.
func equalValues(a, b any, depth int) bool {
	if depth > limitDocumentDepth {
		return false
	}
	switch a := a.(type) {
	case map[string]any:
		b, ok := b.(map[string]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for k, v := range a {
			if w, ok := b[k]; !ok || !equalValues(v, w, depth+1) {
				return false
			}
		}
		return true
	case []any:
		b, ok := b.([]any)
		if !ok || len(a) != len(b) {
			return false
		}
		for i := range a {
			if !equalValues(a[i], b[i], depth+1) {
				return false
			}
		}
		return true
	}
	x, y := scalarOf(a), scalarOf(b)
	result, ordered := x.compare(&y)
	return ordered && result == 0
}
