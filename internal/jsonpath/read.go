package jsonpath

import (
	"slices"
	"strings"
)

// Read is a path whose results an expression reads.
type Read struct {
	Steps []Step
	// Whole means that all descendants of the results are read as well.
	Whole bool
	// Offset and End are the byte offsets at which the path begins and ends in the expression, without "@".
	Offset, End int
}

// Reads returns the path, and the paths that its filters read.
func (p *Path) Reads() []Read { return appendReads(nil, nil, p.steps, false) }

// Reads returns the paths in the condition, and the paths that their filters read.
func (f *Filter) Reads() []Read { return f.cond.reads(nil, nil) }

func (c *condition) reads(dst []Read, base []Step) []Read {
	for _, a := range c.args {
		dst = a.reads(dst, base)
	}
	if len(c.args) == 0 {
		for _, o := range c.operands(nil) {
			dst = appendReads(dst, base, o.steps, c.left.isPath && c.right.isPath)
		}
	}
	return dst
}

func appendReads(dst []Read, base, steps []Step, whole bool) []Read {
	read := Read{Steps: slices.Concat(base, steps), Whole: whole}
	if len(steps) > 0 {
		read.Offset, read.End = steps[0].Offset, steps[len(steps)-1].End
	}
	dst = append(dst, read)
	for i, step := range steps {
		for _, s := range step.Selectors {
			if s.Kind == SelectFilter {
				dst = s.Filter.cond.reads(dst, slices.Concat(base, steps[:i+1]))
			}
		}
	}
	return dst
}

// maxFields limits the results of Fields. Unions multiply them.
const maxFields = 64

// Fields returns the fields that are read, in a simple form: .key or ["key"], [*] for elements of a list, .*
// for values of a list or map, and .. at the end for everything below. They can include others.
func (r Read) Fields() []string {
	fields := fieldsOf(r.Steps)
	for i := range fields {
		if r.Whole && !strings.HasSuffix(fields[i], "..") {
			fields[i] += ".."
		}
	}
	return fields
}

// fieldOf returns .key, or ["key"] if a character needs quotes.
func fieldOf(key string) string {
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r > 127 || !isNameByte(byte(r)) }) {
		var quoted strings.Builder
		formatString(&quoted, key)
		return "[" + quoted.String() + "]"
	}
	return "." + key
}

func fieldsOf(steps []Step) []string {
	fields := []string{""}
	for _, step := range steps {
		var next []string
		for _, s := range step.Selectors {
			suffix := ".*"
			switch s.Kind {
			case SelectName:
				suffix = fieldOf(s.Name)
			case SelectIndex, SelectSlice, SelectElements:
				suffix = "[*]"
			}
			for _, field := range fields {
				next = append(next, field+suffix)
			}
		}
		if step.Recursive || len(next) > maxFields {
			for i := range fields {
				fields[i] += ".."
			}
			return fields
		}
		fields = next
	}
	return fields
}

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
	// Offset and End are the byte offsets at which the literal begins and ends in the expression.
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
		return a.boolean
	case a.kind == KindNumber && a.isInt:
		return a.integer
	case a.kind == KindNumber:
		return a.float
	case a.kind == KindString:
		return a.text
	}
	return nil
}
