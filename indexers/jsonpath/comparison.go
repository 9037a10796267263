package jsonpath

// Comparison is a comparison of a path with a literal in a condition.
type Comparison struct {
	// Path holds the steps of the path, which starts at the value under test. It is a copy.
	Path []Step
	// Op is one of == != < <= > >=, as if the path stood on its left.
	Op string
	// Literal is nil, a bool, an int64, a float64 or a string.
	Literal any
	// Offset and End are the bytes of the whole expression that wrote the literal.
	Offset, End int
}

// Comparisons gives each comparison of a path with a literal, in the order in which they are written, for
// instance to check them against a schema. Those in filters within the paths are not among them: they are
// those of the filters.
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
		path, literal, op = literal, path, mirrored[op]
	}
	return append(dst, Comparison{
		Path: cloneSteps(path.steps), Op: compareOps[op], Literal: literal.lit.value(), Offset: literal.from,
		End: literal.to,
	})
}

// mirrored operators say the same with the sides exchanged.
var mirrored = [...]compareOp{
	opEqual: opEqual, opNotEqual: opNotEqual, opLess: opGreater, opLessEqual: opGreaterEqual,
	opGreater: opLess, opGreaterEqual: opLessEqual,
}

// value gives a literal as decoding JSON does.
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
