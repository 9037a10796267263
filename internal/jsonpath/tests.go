package jsonpath

// Test is the test of a path in a condition: whether it exists, or a comparison.
type Test struct {
	// Path is a copy of the path's steps, relative to the tested value.
	Path []Step
	// Op is one of == != < <= > >=, with the path on the left side. It is empty for an existence test; a path
	// exists even if its value is null or false.
	Op string
	// HasLiteral is set for a comparison with a literal: nil, a bool, an int64, a float64 or a string.
	HasLiteral bool
	Literal    any
	// Offset and End are the bytes of the literal in the expression.
	Offset, End int
}

// Tests returns the test of each path of the condition in source order, for instance for a schema check. It
// leaves out the tests of filters within the paths.
func (f *Filter) Tests() []Test { return f.cond.tests(nil) }

func (c *condition) tests(dst []Test) []Test {
	switch c.kind {
	case condExists:
		return append(dst, Test{Path: cloneSteps(c.left.steps)})
	case condCompare:
		return c.right.appendTest(c.left.appendTest(dst, c.op, &c.right), swappedOperators[c.op], &c.left)
	}
	for _, a := range c.args {
		dst = a.tests(dst)
	}
	return dst
}

// appendTest appends the comparison of a path with another operand.
func (o *operand) appendTest(dst []Test, op compareOp, other *operand) []Test {
	if !o.isPath {
		return dst
	}
	t := Test{Path: cloneSteps(o.steps), Op: compareOps[op], HasLiteral: !other.isPath}
	if t.HasLiteral {
		t.Literal, t.Offset, t.End = other.literal.value(), other.offset, other.end
	}
	return append(dst, t)
}

// swappedOperators maps an operator to the equivalent one with exchanged sides.
var swappedOperators = [...]compareOp{
	opEqual: opEqual, opNotEqual: opNotEqual, opLess: opGreater, opLessEqual: opGreaterEqual,
	opGreater: opLess, opGreaterEqual: opLessEqual,
}

// value returns a literal as JSON decoding does.
func (a *scalar) value() any {
	switch {
	case a.kind == KindBool:
		return a.b
	case a.kind == KindNumber && a.isInt:
		return a.i
	case a.kind == KindNumber:
		return a.f
	case a.kind == KindString:
		return a.s
	}
	return nil
}
