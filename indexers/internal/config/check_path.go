package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

// walk follows a path through the schema and reports steps that do not fit at any of the cursors. The result
// is empty after a report.
func (k *checker) walk(steps []jsonpath.Step, from []cursor) []cursor {
	for i, step := range steps {
		if len(from) == 0 {
			return nil
		}
		if step.Recursive {
			from = withDescendants(from)
		}
		var next []cursor
		for _, selector := range step.Selectors {
			next = append(next, k.applySelector(steps, i, selector, from)...)
		}
		from = uniqueBySchema(next)
	}
	return from
}

// withDescendants returns the cursors and their descendants.
func withDescendants(from []cursor) []cursor {
	var out []cursor
	for _, c := range from {
		out = append(out, c.descendants()...)
	}
	return uniqueBySchema(out)
}

// uniqueBySchema keeps the first cursor of each schema, which bounds the work of paths such as ..*..*.
func uniqueBySchema(cursors []cursor) []cursor {
	visited := map[*crd.Schema]bool{}
	out := cursors[:0:0]
	for _, c := range cursors {
		if !visited[c.schema] {
			visited[c.schema] = true
			out = append(out, c)
		}
	}
	return out
}

// applySelector applies one selector of step i to all cursors.
func (k *checker) applySelector(steps []jsonpath.Step, i int, s jsonpath.Selector, from []cursor) []cursor {
	step := steps[i]
	var out []cursor
	for _, c := range from {
		out = append(out, apply(s, c)...)
	}
	if len(out) == 0 {
		start, end := step.Offset, step.End
		if len(step.Selectors) > 1 {
			start, end = s.Offset, s.End
		}
		at := k.origin.Position(k.file, i, start, end)
		if !k.reportDottedKey(at, steps, i, from[0]) {
			k.reportMismatch(at, step, s, from)
		}
	}
	if s.Kind == jsonpath.SelectFilter && len(out) > 0 {
		k.checkCondition(s.Filter, out)
	}
	return out
}

func apply(s jsonpath.Selector, c cursor) []cursor {
	switch s.Kind {
	case jsonpath.SelectName:
		if next, ok := c.field(s.Name); ok {
			return []cursor{next}
		}
	case jsonpath.SelectMembers, jsonpath.SelectFilter:
		return c.children()
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

// reportMismatch reports a selector that fits at none of the cursors.
func (k *checker) reportMismatch(at Position, step jsonpath.Step, s jsonpath.Selector, from []cursor) {
	for _, c := range from {
		if c.isOpen() {
			k.fail(CodeOpenField, at, fmt.Sprintf("%s does not define the fields below %s", k.name, c.name()),
				"this part of the path is not checked")
			return
		}
	}
	c := from[0]
	if step.Recursive {
		k.fail(CodeNotInSchema, at, fmt.Sprintf("nothing below %s fits in %s", c.name(), k.name),
			"correct the name, or write the whole path")
		return
	}
	if s.Kind == jsonpath.SelectName {
		k.reportUnknownName(at, s.Name, from)
		return
	}
	description := selectorText(s)
	switch s.Kind {
	case jsonpath.SelectSlice:
		description = "a slice"
	case jsonpath.SelectFilter:
		description = "a filter"
	case jsonpath.SelectMembers:
		description = ".*"
	}
	switch {
	case c.isMap():
		k.fail(CodeContainer, at, fmt.Sprintf("%s on %s, which is a map", description, c.name()), mapHint(c))
	default:
		k.fail(CodeScalar, at, fmt.Sprintf("%s on %s, which is %s", description, c.name(), c.kind()),
			"end the path before it")
	}
}

// reportDottedKey reports the most common mistake: the dots of a label or annotation name taken for fields.
// .metadata.labels.app.kubernetes.io/name selects below the text of label app.
func (k *checker) reportDottedKey(at Position, steps []jsonpath.Step, i int, on cursor) bool {
	if i < 2 || !hasOnlyNames(steps[i-2:]) {
		return false
	}
	field, ok := map[string]string{"labels": "label",
		"annotations": "annotation"}[steps[i-2].Selectors[0].Name]
	if !ok || on.isMap() || on.isList() || on.isOpen() {
		return false
	}
	var names []string
	for _, step := range steps[i-1:] {
		names = append(names, step.Selectors[0].Name)
	}
	key, within := strings.Join(names, "."), strings.TrimSuffix(on.path, keyText(names[0]))
	hint := fmt.Sprintf("for the %s %s write %s[%q]", field, key, within, key)
	if k.plainIndexPath && within == ".metadata."+field+"s" {
		hint = fmt.Sprintf("for the %s %s write %s: %s in place of the path", field, key, field, key)
	}
	k.fail(CodeScalar, at, fmt.Sprintf("%s on %s, which is %s", keyText(names[1]), on.name(),
		on.kind()), hint)
	return true
}

func hasOnlyNames(steps []jsonpath.Step) bool {
	return !slices.ContainsFunc(steps, func(step jsonpath.Step) bool { return !selectsOnlyName(step, "") })
}

func mapHint(c cursor) string {
	if len(c.schema.Properties) == 0 && c.schema.AdditionalProperties == nil {
		return "the schema has no fields in it"
	}
	return "use .* for all values, or name a field"
}

// listHint returns the hint for a name applied to a list; it may be the key of an element, such as the
// condition type Ready.
func listHint(c cursor, name string) string {
	if keys := c.schema.ListMapKeys; len(keys) == 1 && c.schema.Items != nil &&
		c.schema.Items.Properties[name] == nil {
		return fmt.Sprintf("for the element with that %s write [?(@.%s==%q)]", keys[0], keys[0], name)
	}
	return "use [*] for all elements, or a filter [?(...)] for some"
}

// reportUnknownName reports an unknown field and suggests the nearest one.
func (k *checker) reportUnknownName(at Position, name string, from []cursor) {
	c := from[0]
	switch {
	case c.isList():
		k.fail(CodeContainer, at, fmt.Sprintf("%s on %s, which is a list", keyText(name), c.name()),
			listHint(c, name))
		return
	case !c.isMap():
		k.fail(CodeScalar, at, fmt.Sprintf("%s on %s, which is %s", keyText(name), c.name(), c.kind()),
			"end the path before it")
		return
	}
	fields := c.schema.Fields()
	hint := "the schema has no fields there"
	if suggestion := NearestSpelling(name, fields); suggestion != "" {
		hint = fmt.Sprintf("did you mean %s?", c.path+keyText(suggestion))
	} else if len(fields) > 0 {
		hint = "the fields there are " + strings.Join(fields, ", ")
	}
	k.fail(CodeNotInSchema, at, fmt.Sprintf("%s is not in %s", c.path+keyText(name), k.name), hint)
}
