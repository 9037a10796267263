package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/indexers/jsonpath"
)

// What a schema is searched for, so that a type with a schema of thousands of fields gets a config that can
// be read.
const (
	deepestField   = 6  // names on the way, spec among them
	mostSuggestion = 40 // indexes and references of one resource, each
)

// schemaField is a field of a schema that a path leads to.
type schemaField struct {
	// path leads to the field, from the object on.
	path string
	// name is that of the field.
	name   string
	schema *crd.Schema
	// lists counts the lists on the way.
	lists int
}

// schemaFields gives the fields below spec and status, those nearer to the top first. Elements of lists are
// fields too.
func schemaFields(version crd.Version) []schemaField {
	var level, all []schemaField
	for _, name := range []string{"spec", "status"} {
		if s := version.Schema.Properties[name]; s != nil {
			level = append(level, schemaField{path: "." + name, name: name, schema: s})
		}
	}
	for range deepestField {
		var next []schemaField
		for _, f := range level {
			next = append(next, f.children()...)
		}
		all = append(all, next...)
		level = next
	}
	return all
}

// children gives the fields of an object, and those of the elements of a list.
func (f schemaField) children() []schemaField {
	var out []schemaField
	if podTemplate(f.schema) {
		return nil
	}
	for _, name := range slices.Sorted(maps.Keys(f.schema.Properties)) {
		out = append(out, schemaField{f.path + pathOfKey(name), name, f.schema.Properties[name], f.lists})
	}
	if items := f.schema.Items; items != nil && len(items.Properties) > 0 {
		element := schemaField{f.path + "[*]", f.name, items, f.lists + 1}
		out = append(out, element.children()...)
	}
	return out
}

// podTemplate recognises what describes a pod or parts of one, whose hundreds of fields say nothing of the
// type.
func podTemplate(s *crd.Schema) bool {
	return s.Properties["containers"] != nil || s.Properties["nodeAffinity"] != nil ||
		s.Properties["matchExpressions"] != nil ||
		s.EmbeddedResource || s.PreserveUnknown
}

// pathOfKey writes a key as the path language does.
func pathOfKey(name string) string { return jsonpath.FromSegments(name).String() }

// proposeFromSchema gives the indexes that a schema suggests: of words, times, lists of texts and conditions.
func proposeFromSchema(fields []schemaField) []suggestedIndex {
	var all []suggestedIndex
	for _, f := range fields {
		switch s := f.schema; {
		case f.lists > 1 || freeText(f.name):
		case isConditions(f):
			all = append(all, conditionIndex(f))
		case s.Items != nil && s.Items.Type == "string" && len(s.Items.Properties) == 0:
			all = append(all, suggestedIndex{Path: f.path + "[*]"})
		case withinConditions(f.path):
		case s.Type == "string" && s.Format == "date-time":
			all = append(all, suggestedIndex{Path: f.path, Type: "time", Order: "sorted"})
		case s.Type == "string" && len(s.Enum) > 1:
			all = append(all, suggestedIndex{Path: f.path})
		}
	}
	return all
}

// freeText recognises what people write for people.
func freeText(name string) bool {
	for _, word := range []string{"message", "description", "comment", "note", "detail", "text", "reason",
		"args", "command"} {
		if strings.Contains(strings.ToLower(name), word) {
			return true
		}
	}
	return false
}

// isConditions recognises a list of conditions: maps with a status that are told apart by their type.
func isConditions(f schemaField) bool {
	items := f.schema.Items
	if items == nil || items.Properties["status"] == nil {
		return false
	}
	return slices.Contains(f.schema.ListMapKeys, "type") || strings.EqualFold(f.name, "conditions") &&
		items.Properties["type"] != nil
}

func withinConditions(path string) bool {
	return strings.Contains(strings.ToLower(path), "conditions[*]")
}

// conditionIndex is over what tells conditions apart and their status.
func conditionIndex(f schemaField) suggestedIndex {
	keys := []string{"type"}
	if len(f.schema.ListMapKeys) > 0 {
		keys = f.schema.ListMapKeys
	}
	index := suggestedIndex{Each: f.path + "[*]", named: strings.TrimSuffix(f.name, "s")}
	for _, key := range append(slices.Clone(keys), "status") {
		index.Key = append(index.Key, suggestedKey{Name: camelCase(key), Path: pathOfKey(key)})
	}
	return index
}
