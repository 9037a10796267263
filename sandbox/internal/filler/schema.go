package filler

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// schemaGenerator generates content from a CRD's schema: all required fields, and optional fields near the
// top. All objects of a type have the same fields.
type schemaGenerator struct {
	size   Size
	fields map[string]map[string]any // top-level fields to generate
	// optionalDepth is the depth to which optional fields are generated, counted from spec or status.
	optionalDepth int
}

// richDepth gives objects a realistic number of fields. Schemas that allow only one of several optional
// fields reject such objects; depth 0 omits all optional fields.
const richDepth = 2

func newSchemaGenerator(openAPI map[string]any, size Size, optionalDepth int) (schemaGenerator, error) {
	fields := map[string]map[string]any{}
	for name, property := range properties(openAPI) {
		if !slices.Contains([]string{"apiVersion", "kind", "metadata"}, name) {
			fields[name] = property
		}
	}
	g := schemaGenerator{size: size, fields: fields, optionalDepth: optionalDepth}
	for name, property := range fields {
		if path := ungeneratable(property, name); path != "" {
			return g, fmt.Errorf("cannot make up a value for the required field %s: it has a pattern or a format of its own; only certificates.cert-manager.io and types without such fields can be generated", path)
		}
	}
	return g, nil
}

func (g schemaGenerator) content(id identity) content {
	body := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(g.fields)) {
		body[name] = g.value(id, g.fields[name], name, 0, false)
	}
	c := content{
		labels: map[string]any{"app.kubernetes.io/name": id.name, "team": id.namespace},
		body:   body,
	}
	if g.size == Large {
		c.annotations = map[string]any{}
		for i := range 40 {
			c.annotations[fmt.Sprintf("platform.example.com/note-%02d", i)] = strings.Repeat(id.uid+" ", 5)
		}
	}
	return c
}

func (g schemaGenerator) statusPatch(id identity) map[string]any {
	status, ok := g.fields["status"]
	if !ok {
		return nil
	}
	return map[string]any{"status": g.value(id, status, "status", 0, false)}
}

// value generates one value. If fixed is set, the value does not depend on the identity, because keys of list
// items become part of managedFields.
func (g schemaGenerator) value(id identity, schema map[string]any, name string, depth int, fixed bool) any {
	if choices, ok := schema["enum"].([]any); ok && len(choices) > 0 {
		if fixed {
			return choices[0]
		}
		return pick(id.rng, choices)
	}
	if schema["x-kubernetes-int-or-string"] == true {
		return int64(1 + number(id, 100, fixed))
	}
	switch schema["type"] {
	case "object":
		return g.objectValue(id, schema, depth, fixed)
	case "array":
		return g.arrayValue(id, schema, name, depth, fixed)
	case "integer":
		return int64(inRange(schema, number(id, 100, fixed)))
	case "number":
		return float64(inRange(schema, number(id, 100, fixed)))
	case "boolean":
		return number(id, 2, fixed) == 1
	case "string":
		return stringValue(id, schema, name, fixed)
	default: // any value is allowed
		return map[string]any{}
	}
}

func (g schemaGenerator) objectValue(id identity, schema map[string]any, depth int,
	fixed bool) map[string]any {
	object := map[string]any{}
	fields := properties(schema)
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		field := fields[name]
		wanted := isRequired(schema, name) ||
			depth < g.optionalDepth && ungeneratable(field, name) == ""
		if wanted && field["default"] == nil {
			object[name] = g.value(id, field, name, depth+1, fixed)
		}
	}
	if element, ok := schema["additionalProperties"].(map[string]any); ok {
		object["key"] = g.value(id, element, "key", depth+1, fixed)
	}
	return object
}

func (g schemaGenerator) arrayValue(id identity, schema map[string]any, name string, depth int,
	fixed bool) []any {
	element, _ := schema["items"].(map[string]any)
	kind := schema["x-kubernetes-list-type"]
	fixed = fixed || kind == "map" || kind == "set"
	count := max(1, limit(schema, "minItems", 1))
	list := make([]any, 0, count)
	for range count {
		list = append(list, g.value(id, element, name, depth+1, fixed))
	}
	return list
}

func stringValue(id identity, schema map[string]any, name string, fixed bool) string {
	switch schema["format"] {
	case "date-time":
		if fixed {
			return timestamp(firstCreation)
		}
		return timestamp(id.created)
	case "byte":
		return "c3ludGhldGlj"
	case "date":
		return firstCreation.Format("2006-01-02")
	case "duration":
		return "1h0m0s"
	}
	s := fmt.Sprintf("%s-%d", strings.ToLower(name), number(id, 1000, fixed))
	if least := limit(schema, "minLength", 0); len(s) < least {
		s += strings.Repeat("x", least-len(s))
	}
	if most := limit(schema, "maxLength", len(s)); len(s) > most {
		s = s[:most]
	}
	return s
}

// ungeneratable returns the path of a required field that stringValue cannot generate, or an empty string.
func ungeneratable(schema map[string]any, path string) string {
	if _, hasEnum := schema["enum"]; hasEnum {
		return ""
	}
	format, _ := schema["format"].(string)
	_, hasPattern := schema["pattern"]
	known := []string{"", "byte", "date-time", "date", "duration", "int32", "int64", "float", "double"}
	if hasPattern || schema["type"] == "string" && !slices.Contains(known, format) {
		return path
	}
	for _, keyword := range []string{"items", "additionalProperties"} {
		if element, ok := schema[keyword].(map[string]any); ok {
			if bad := ungeneratable(element, path+"[]"); bad != "" {
				return bad
			}
		}
	}
	for name, field := range properties(schema) {
		if isRequired(schema, name) && field["default"] == nil {
			if bad := ungeneratable(field, path+"."+name); bad != "" {
				return bad
			}
		}
	}
	return ""
}

func properties(schema map[string]any) map[string]map[string]any {
	found := map[string]map[string]any{}
	all, _ := schema["properties"].(map[string]any)
	for name, p := range all {
		if property, ok := p.(map[string]any); ok {
			found[name] = property
		}
	}
	return found
}

func isRequired(schema map[string]any, name string) bool {
	required, _ := schema["required"].([]any)
	return slices.Contains(required, any(name))
}

func number(id identity, below int, fixed bool) int {
	if fixed {
		return 0
	}
	return id.rng.IntN(below)
}

func inRange(schema map[string]any, n int) int {
	n += limit(schema, "minimum", 1)
	return min(n, limit(schema, "maximum", n))
}

func limit(schema map[string]any, name string, otherwise int) int {
	switch v := schema[name].(type) {
	case int64:
		return int(v)
	case float64:
		return int(v)
	default:
		return otherwise
	}
}
