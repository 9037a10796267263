package indexers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// walk follows a path through the schema and reports steps that do not fit at any of the cursors. The result
// is empty after a report.
func (c *checker) walk(steps []jsonpath.Step, cursors []cursor) []cursor {
	for i, step := range steps {
		if len(cursors) == 0 {
			return nil
		}
		if step.Recursive {
			cursors = uniqueBySchema(slices.Concat(naming.Map(cursors, cursor.descendants)...))
		}
		var next []cursor
		for _, selector := range step.Selectors {
			next = append(next, c.applySelector(steps, i, selector, cursors)...)
		}
		cursors = uniqueBySchema(next)
	}
	return cursors
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
func (c *checker) applySelector(steps []jsonpath.Step, i int, selector jsonpath.Selector,
	cursors []cursor) []cursor {
	step := steps[i]
	out := slices.Concat(naming.Map(cursors, func(c cursor) []cursor { return apply(selector, c) })...)
	if len(out) == 0 {
		start, end := step.Offset, step.End
		if len(step.Selectors) > 1 {
			start, end = selector.Offset, selector.End
		}
		at := c.origin.position(c.file, start, end)
		if !c.reportDottedKey(at, steps, i, cursors[0]) {
			c.reportMismatch(at, step, selector, cursors)
		}
	}
	if selector.Kind == jsonpath.SelectFilter && len(out) > 0 {
		c.checkCondition(selector.Filter, out)
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
func (c *checker) reportMismatch(pos position, step jsonpath.Step, selector jsonpath.Selector,
	cursors []cursor) {
	for _, cur := range cursors {
		if cur.isOpen() {
			c.fail(codeOpenField, pos, fmt.Sprintf("%s does not define the fields below %s", c.typeName, cur.name()),
				"this part of the path is not checked")
			return
		}
	}
	cur := cursors[0]
	if step.Recursive {
		c.fail(codeNotInSchema, pos, fmt.Sprintf("nothing below %s fits in %s", cur.name(), c.typeName),
			"correct the name, or write the whole path")
		return
	}
	if selector.Kind == jsonpath.SelectName {
		c.reportUnknownName(pos, selector.Name, cursors)
		return
	}
	description := selectorText(selector)
	switch selector.Kind {
	case jsonpath.SelectSlice:
		description = "a slice"
	case jsonpath.SelectFilter:
		description = "a filter"
	case jsonpath.SelectMembers:
		description = ".*"
	}
	if cur.isMap() {
		c.fail(codeContainer, pos, fmt.Sprintf("%s on %s, which is a map", description, cur.name()), mapHint(cur))
	} else {
		c.fail(codeScalar, pos, fmt.Sprintf("%s on %s, which is %s", description, cur.name(), cur.kind()),
			"end the path before it")
	}
}

// reportDottedKey reports the most common mistake: the dots of a label or annotation name taken for fields.
// .metadata.labels.app.kubernetes.io/name selects below the text of label app.
func (c *checker) reportDottedKey(pos position, steps []jsonpath.Step, i int, parent cursor) bool {
	selectsMore := func(step jsonpath.Step) bool { return !selectsOnlyName(step, "") }
	if i < 2 || slices.ContainsFunc(steps[i-2:], selectsMore) {
		return false
	}
	field, ok := map[string]string{"labels": "label",
		"annotations": "annotation"}[steps[i-2].Selectors[0].Name]
	if !ok || parent.isMap() || parent.isList() || parent.isOpen() {
		return false
	}
	names := naming.Texts(steps[i-1:], func(s jsonpath.Step) string { return s.Selectors[0].Name })
	key, within := strings.Join(names, "."), strings.TrimSuffix(parent.path, keyText(names[0]))
	hint := fmt.Sprintf("for the %s %s write %s[%q]", field, key, within, key)
	c.fail(codeScalar, pos, fmt.Sprintf("%s on %s, which is %s", keyText(names[1]), parent.name(),
		parent.kind()), hint)
	return true
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
func (c *checker) reportUnknownName(pos position, name string, cursors []cursor) {
	parent := cursors[0]
	switch {
	case parent.isList():
		c.fail(codeContainer, pos, fmt.Sprintf("%s on %s, which is a list", keyText(name), parent.name()),
			listHint(parent, name))
		return
	case !parent.isMap():
		c.fail(codeScalar, pos, fmt.Sprintf("%s on %s, which is %s", keyText(name), parent.name(), parent.kind()),
			"end the path before it")
		return
	}
	fields := parent.schema.Fields()
	hint := "the schema has no fields there"
	if suggestion := nearestSpelling(name, fields); suggestion != "" {
		hint = fmt.Sprintf("did you mean %s?", parent.path+keyText(suggestion))
	} else if len(fields) > 0 {
		hint = "the fields there are " + strings.Join(fields, ", ")
	}
	c.fail(codeNotInSchema, pos, fmt.Sprintf("%s is not in %s", parent.path+keyText(name), c.typeName), hint)
}

// cursor is a position in a schema.
type cursor struct {
	schema *crd.Schema
	path   string // path that leads to it
}

func (c cursor) name() string {
	if c.path == "" {
		return "the object"
	}
	return c.path
}

func (c cursor) isList() bool { return c.schema.Items != nil || c.schema.Type == "array" }

func (c cursor) isMap() bool {
	s := c.schema
	return !c.isList() && !s.PreserveUnknown && (s.Type == "object" || s.Properties != nil ||
		s.AdditionalProperties != nil)
}

// isOpen reports whether the schema does not define the content.
func (c cursor) isOpen() bool {
	s := c.schema
	return s.PreserveUnknown || s.EmbeddedResource || s.Type == "" && !s.IntOrString &&
		!c.isList() && !c.isMap()
}

// kind describes the values for messages.
func (c cursor) kind() string {
	switch {
	case c.isList():
		return "a list"
	case c.isMap():
		return "a map"
	}
	return cmp.Or(kindDescriptions[c.scalarKind()], "a number")
}

func (c cursor) field(name string) (cursor, bool) {
	next := cmp.Or(c.schema.Properties[name], c.schema.AdditionalProperties)
	return cursor{next, c.path + keyText(name)}, next != nil
}

// keyText formats a key in the path language.
func keyText(name string) string { return jsonpath.FromSegments(name).String() }

func (c cursor) elements(selector string) (cursor, bool) {
	return cursor{c.schema.Items, c.path + selector}, c.schema.Items != nil
}

// children returns the cursors of all values of a map and all elements of a list.
func (c cursor) children() []cursor {
	var out []cursor
	if e, ok := c.elements("[*]"); ok {
		out = append(out, e)
	}
	for _, name := range c.schema.Fields() {
		f, _ := c.field(name)
		out = append(out, f)
	}
	if s := c.schema.AdditionalProperties; s != nil {
		out = append(out, cursor{s, c.path + ".*"})
	}
	return slices.DeleteFunc(out, func(m cursor) bool { return m.schema == nil })
}

// descendants returns the cursor and all its descendants, parents first.
func (c cursor) descendants() []cursor {
	return slices.Concat([]cursor{c}, slices.Concat(naming.Map(c.children(), cursor.descendants)...))
}

// metadataSchema is the schema of object metadata, which CRDs leave out.
var metadataSchema = func() *crd.Schema {
	text := &crd.Schema{Type: "string"}
	number := &crd.Schema{Type: "integer"}
	boolean := &crd.Schema{Type: "boolean"}
	texts := &crd.Schema{Type: "object", AdditionalProperties: text}
	list := func(of *crd.Schema) *crd.Schema { return &crd.Schema{Type: "array", Items: of} }
	object := func(p map[string]*crd.Schema) *crd.Schema { return &crd.Schema{Type: "object", Properties: p} }
	return object(map[string]*crd.Schema{
		"name": text, "generateName": text, "namespace": text, "selfLink": text, "uid": text,
		"resourceVersion": text, "generation": number, "creationTimestamp": text,
		"deletionTimestamp": text, "deletionGracePeriodSeconds": number,
		"labels": texts, "annotations": texts, "finalizers": list(text),
		"ownerReferences": list(object(map[string]*crd.Schema{
			"apiVersion": text, "kind": text, "name": text, "uid": text,
			"controller": boolean, "blockOwnerDeletion": boolean,
		})),
		"managedFields": list(object(map[string]*crd.Schema{
			"manager": text, "operation": text, "apiVersion": text, "time": text,
			"fieldsType": text, "subresource": text, "fieldsV1": {Type: "object", PreserveUnknown: true},
		})),
	})
}()

// ObjectSchema adds metadata, apiVersion and kind to the schema of a CRD.
func ObjectSchema(s *crd.Schema) *crd.Schema {
	extended := *s
	extended.Properties = map[string]*crd.Schema{}
	maps.Copy(extended.Properties, s.Properties)
	maps.Copy(extended.Properties, map[string]*crd.Schema{
		"metadata": metadataSchema, "apiVersion": {Type: "string"}, "kind": {Type: "string"},
	})
	return &extended
}
