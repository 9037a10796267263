package indexers

import (
	"fmt"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// walk follows the steps of a path through the schema and reports what does not fit. Where a path
// has several places at once, a step has to fit at one of them. The result is empty after a report.
func (k *checking) walk(steps []jsonpath.Step, from []cursor) []cursor {
	for i, step := range steps {
		if len(from) == 0 {
			return nil
		}
		if step.Recursive {
			from = allBelow(from)
		}
		var next []cursor
		for _, selector := range step.Selectors {
			next = append(next, k.selector(i, step, selector, from)...)
		}
		from = distinct(next)
	}
	return from
}

// allBelow gives the cursors and everything below them.
func allBelow(from []cursor) []cursor {
	var out []cursor
	for _, c := range from {
		out = append(out, c.below()...)
	}
	return distinct(out)
}

// distinct keeps the first cursor of each schema, which bounds the work for paths such as ..*..*.
func distinct(cursors []cursor) []cursor {
	seen := map[*crd.Schema]bool{}
	out := cursors[:0:0]
	for _, c := range cursors {
		if !seen[c.schema] {
			seen[c.schema] = true
			out = append(out, c)
		}
	}
	return out
}

// selector applies one selector to all cursors.
func (k *checking) selector(i int, step jsonpath.Step, s jsonpath.Selector, from []cursor) []cursor {
	if s.Kind == jsonpath.SelectPath {
		return k.walk(s.Path, from)
	}
	var out []cursor
	for _, c := range from {
		out = append(out, apply(s, c)...)
	}
	if len(out) == 0 {
		start, end := step.Offset, step.End
		if len(step.Selectors) > 1 {
			start, end = s.Offset, s.End
		}
		k.mismatch(k.at.place(k.resource.file, i, start, end), step, s, from)
	}
	if s.Kind == jsonpath.SelectFilter && len(out) > 0 {
		k.operands(s.Filter.Operands(), out)
	}
	return out
}

// operands checks the paths in a condition.
func (k *checking) operands(paths [][]jsonpath.Step, of []cursor) {
	for _, steps := range paths {
		k.walk(steps, of)
	}
}

// apply gives where a selector leads from one cursor.
func apply(s jsonpath.Selector, c cursor) []cursor {
	switch s.Kind {
	case jsonpath.SelectName:
		if next, ok := c.field(s.Name); ok {
			return []cursor{next}
		}
	case jsonpath.SelectMembers, jsonpath.SelectFilter:
		return c.members()
	default:
		if next, ok := c.elements(selectorText(s)); ok {
			return []cursor{next}
		}
	}
	return nil
}

func selectorText(s jsonpath.Selector) string {
	if s.Kind == jsonpath.SelectIndex {
		return fmt.Sprintf("[%d]", s.Index)
	}
	return "[*]"
}

// mismatch reports that a selector fits at none of the cursors.
func (k *checking) mismatch(at place, step jsonpath.Step, s jsonpath.Selector, from []cursor) {
	for _, c := range from {
		if c.isOpen() {
			k.fail(CodeOpenField, at, fmt.Sprintf("%s leaves open what is below %s", k.name, c.name()), "this part of the path is not checked")
			return
		}
	}
	c := from[0]
	if step.Recursive {
		k.fail(CodeNotInSchema, at, fmt.Sprintf("nothing below %s fits in %s", c.name(), k.name), "correct the name, or write the whole path")
		return
	}
	if s.Kind == jsonpath.SelectName {
		k.nameMismatch(at, s.Name, from)
		return
	}
	what := selectorText(s)
	switch s.Kind {
	case jsonpath.SelectSlice:
		what = "a slice"
	case jsonpath.SelectFilter:
		what = "a filter"
	case jsonpath.SelectMembers:
		what = ".*"
	}
	switch {
	case c.isMap():
		k.fail(CodeContainer, at, fmt.Sprintf("%s on %s, which is a map", what, c.name()), mapHint(c))
	default:
		k.fail(CodeScalar, at, fmt.Sprintf("%s on %s, which is %s", what, c.name(), c.kind()), "end the path before it")
	}
}

func mapHint(c cursor) string {
	if len(c.schema.Properties) == 0 && c.schema.AdditionalProperties == nil {
		return "the schema has no fields in it"
	}
	return "use .* for all values, or name a field"
}

// nameMismatch reports a name that does not exist, with the nearest that does.
func (k *checking) nameMismatch(at place, name string, from []cursor) {
	c := from[0]
	switch {
	case c.isList():
		k.fail(CodeContainer, at, fmt.Sprintf("%s on %s, which is a list", keyText(name), c.name()), "use [*] for all elements, or a filter [?(...)] for some")
		return
	case !c.isMap():
		k.fail(CodeScalar, at, fmt.Sprintf("%s on %s, which is %s", keyText(name), c.name(), c.kind()), "end the path before it")
		return
	}
	fields := c.schema.Fields()
	hint := "the schema has no fields there"
	if near := nearest(name, fields); near != "" {
		hint = fmt.Sprintf("did you mean %s?", c.path+keyText(near))
	} else if len(fields) > 0 {
		hint = "the fields there are " + strings.Join(fields, ", ")
	}
	k.fail(CodeNotInSchema, at, fmt.Sprintf("%s is not in %s", c.path+keyText(name), k.name), hint)
}
