package jsonpath

import (
	"slices"
	"strconv"
	"strings"
)

// Read is a path whose results an expression reads.
type Read struct {
	Steps []Step
	// Whole means that everything below the results is read as well.
	Whole bool
	// Offset and End are the bytes of the path in the expression, without "@".
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
// for values of a list or map, and .. at the end for everything below. They can include fields that are not
// read.
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
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r > 127 || !nameByte(byte(r)) }) {
		return "[" + strconv.Quote(key) + "]"
	}
	return "." + key
}

func fieldsOf(steps []Step) []string {
	fields := []string{""}
	for _, step := range steps {
		var next []string
		for _, s := range step.Selectors {
			end := ".*"
			switch s.Kind {
			case SelectName:
				end = fieldOf(s.Name)
			case SelectIndex, SelectSlice, SelectElements:
				end = "[*]"
			}
			for _, field := range fields {
				next = append(next, field+end)
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
