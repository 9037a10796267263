package cli

import (
	"maps"
	"slices"
	"strings"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/jsonpath"
	"github.com/crdcache/crdcache/internal/naming"
)

// These limits keep the config of a type with thousands of fields readable.
const (
	maxFieldDepth     = 6 // names in the path of an index, including spec
	maxReferenceDepth = 10
	maxIndexes        = 12 // of one resource
	maxReferences     = 60
)

type schemaField struct {
	path   string
	name   string
	schema *crd.Schema
	// lists counts the lists in the path.
	lists int
}

// schemaFields returns the fields below spec and status, including fields of list elements. The fields are
// sorted by depth.
func schemaFields(version crd.Version, depth int) []schemaField {
	var level, fields []schemaField
	for _, name := range []string{"spec", "status"} {
		if s := version.Schema.Properties[name]; s != nil {
			level = append(level, schemaField{path: "." + name, name: name, schema: s})
		}
	}
	for range depth {
		level = slices.Concat(naming.Map(level, schemaField.children)...)
		fields = append(fields, level...)
	}
	return fields
}

// children returns the fields of an object and of the elements of a list.
func (f schemaField) children() []schemaField {
	var out []schemaField
	if isOpaque(f.schema) {
		return nil
	}
	part, isPart := podParts[f.name]
	if f.schema.Properties["containers"] != nil {
		part, isPart = podParts["spec"], true // of any name, such as template
	}
	isPart = isPart && f.schema.Properties[part[0]] != nil
	for _, name := range slices.Sorted(maps.Keys(f.schema.Properties)) {
		if isPart && !slices.Contains(part, name) {
			continue
		}
		out = append(out, schemaField{f.path + keyPath(name), name, f.schema.Properties[name], f.lists})
	}
	if items := f.schema.Items; items != nil && len(items.Properties) > 0 {
		element := schemaField{f.path + "[*]", f.name, items, f.lists + 1}
		out = append(out, element.children()...)
	}
	return out
}

// podParts are the fields of the parts of a pod that refer to other objects, by the name of the part. Only
// such a part has the first field. The hundreds of other fields of a pod are not specific to the type.
var podParts = map[string][]string{
	"spec": {"containers", "imagePullSecrets", "initContainers", "priorityClassName", "runtimeClassName",
		"serviceAccountName", "volumes"},
	"containers":     {"envFrom", "env"},
	"initContainers": {"envFrom", "env"},
	"volumes":        {"persistentVolumeClaim", "configMap", "projected", "secret"},
}

// isOpaque reports whether the fields of a schema are not specific to the type, or not known.
func isOpaque(s *crd.Schema) bool {
	return s.Properties["nodeAffinity"] != nil || s.Properties["matchExpressions"] != nil ||
		s.EmbeddedResource || s.PreserveUnknown
}

func keyPath(name string) string { return jsonpath.FromSegments(name).String() }

// proposeFromSchema returns indexes of conditions, enums, times and string lists, ranked in this order. Each
// rank is sorted by depth.
func proposeFromSchema(fields []schemaField) []suggestedIndex {
	const conditions, enums, times, lists = 0, 1, 2, 3
	var ranks [4][]suggestedIndex
	propose := func(rank int, index suggestedIndex) { ranks[rank] = append(ranks[rank], index) }
	for _, f := range fields {
		switch s := f.schema; {
		case f.lists > 1 || isFreeText(f.name):
		case isConditions(f):
			propose(conditions, conditionIndex(f))
		case s.Items != nil && s.Items.Type == "string" && len(s.Items.Properties) == 0:
			propose(lists, suggestedIndex{Path: f.path + "[*]"})
		case isInConditions(f.path):
		case s.Type == "string" && s.Format == "date-time":
			propose(times, suggestedIndex{Path: f.path, Type: "Time", Order: "Sorted"})
		case s.Type == "string" && len(s.Enum) > 1:
			propose(enums, suggestedIndex{Path: f.path})
		}
	}
	return slices.Concat(ranks[:]...)
}

// isFreeText reports whether a field's name suggests a text for people.
func isFreeText(name string) bool {
	words := []string{"message", "description", "comment", "note", "detail", "text", "reason", "args", "command"}
	return slices.ContainsFunc(words,
		func(word string) bool { return strings.Contains(strings.ToLower(name), word) })
}

// isConditions reports whether a field is a list of conditions: maps with a type and a status.
func isConditions(f schemaField) bool {
	items := f.schema.Items
	if items == nil || items.Properties["status"] == nil {
		return false
	}
	return slices.Contains(f.schema.ListMapKeys, "type") || strings.EqualFold(f.name, "conditions") &&
		items.Properties["type"] != nil
}

func isInConditions(path string) bool {
	return strings.Contains(strings.ToLower(path), "conditions[*]")
}

func conditionIndex(f schemaField) suggestedIndex {
	keys := []string{"type"}
	if len(f.schema.ListMapKeys) > 0 {
		keys = f.schema.ListMapKeys
	}
	return suggestedIndex{Each: f.path + "[*]", preferredName: strings.TrimSuffix(f.name, "s"),
		Key: naming.Map(append(slices.Clone(keys), "status"), func(key string) suggestedKey {
			return suggestedKey{Name: camelCase(key), Path: keyPath(key)}
		})}
}
