package jsonpath

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
	prog    *instruction // compiled steps; nil is the tested value itself
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
