package config

import (
	"slices"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/jsonpath"
)

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
	switch s := c.schema; {
	case c.isList():
		return "a list"
	case c.isMap():
		return "a map"
	case s.IntOrString:
		return "a number or text"
	case s.Type == "string" && s.Format == kindTime:
		return "a time"
	case s.Type == "string":
		return "text"
	case s.Type == "boolean":
		return "a boolean"
	}
	return "a number"
}

// field returns the cursor of a field or map key.
func (c cursor) field(name string) (cursor, bool) {
	next := c.schema.Properties[name]
	if next == nil {
		next = c.schema.AdditionalProperties
	}
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
	out := []cursor{c}
	for _, m := range c.children() {
		out = append(out, m.descendants()...)
	}
	return out
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

// withMetadata adds metadata, apiVersion and kind to the schema of a CRD.
func withMetadata(s *crd.Schema) *crd.Schema {
	extended := *s
	extended.Properties = map[string]*crd.Schema{}
	for name, p := range s.Properties {
		extended.Properties[name] = p
	}
	extended.Properties["metadata"] = metadataSchema
	for _, name := range []string{"apiVersion", "kind"} {
		extended.Properties[name] = &crd.Schema{Type: "string"}
	}
	return &extended
}
