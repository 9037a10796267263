package jsonpath

// Comparison is a comparison of a path with a literal in a condition.
type Comparison struct {
	// Path is a copy of the path's steps, relative to the tested value.
	Path []Step
	// Op is one of == != < <= > >=, with the path on the left side.
	Op string
	// Literal is nil, a bool, an int64, a float64 or a string.
	Literal any
	// Offset and End are the bytes of the literal in the expression.
	Offset, End int
}

// Comparisons returns each comparison of a path with a literal in source order, for instance for a schema
// check. It leaves out the comparisons of filters within the paths.
func (f *Filter) Comparisons() []Comparison {
	return f.cond.comparisons(nil)
}

func (c *condition) comparisons(dst []Comparison) []Comparison {
	for _, a := range c.args {
		dst = a.comparisons(dst)
	}
	if c.kind != condCompare || c.left.isPath == c.right.isPath {
		return dst
	}
	path, literal, op := c.left, c.right, c.op
	if !path.isPath {
		path, literal, op = literal, path, swappedOperators[op]
	}
	return append(dst, Comparison{
		Path: cloneSteps(path.steps), Op: compareOps[op], Literal: literal.literal.value(),
		Offset: literal.offset,
		End:    literal.end,
	})
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
