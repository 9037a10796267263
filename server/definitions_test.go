package server

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/crdcache/crdcache/indexers"
)

var rewrite = flag.Bool("rewrite", false, "write the CustomResourceDefinitions")

// fields is a part of a schema.
type fields = map[string]any

// TestDefinitions compares the CustomResourceDefinitions with those that follow from the form of index
// configs, which the decoder uses: "make generate" writes them.
func TestDefinitions(t *testing.T) {
	for name, want := range definitions(t) {
		file := "../packaging/crdcached/chart/definitions/" + name + "-crd.yaml"
		text, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		text = append([]byte("# Generated from the form of index configs: make generate\n"), text...)
		if *rewrite {
			if err := os.WriteFile(file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, text) {
			t.Errorf("%s is not up to date; run make generate: %v", file, err)
		}
	}
}

// definitions returns the CustomResourceDefinitions by plural name.
func definitions(t *testing.T) map[string]fields {
	t.Helper()
	var document fields
	if err := json.Unmarshal(indexers.Schema(), &document); err != nil {
		t.Fatal(err)
	}
	spec := structural(document)["properties"].(fields)["spec"].(fields)
	resources := spec["properties"].(fields)["resources"].(fields)
	resource := resources["items"].(fields)
	index := pick(spec, "defaults", "resources")
	index["properties"].(fields)["defaults"] = pick(index["properties"].(fields)["defaults"].(fields), "index")
	index["properties"].(fields)["resources"] = with(resources, "items", pick(resource, "name", "match", "indexes"))

	cached := pick(resource, "match", "storage", "prune", "keep", "namespaces")
	properties := cached["properties"].(fields)
	var modes []any
	for _, mode := range servedStorage {
		modes = append(modes, mode.String())
	}
	storage := pick(properties["storage"].(fields), "mode")
	storage["properties"] = fields{"mode": fields{"type": "string", "enum": modes,
		"description": "The form in which objects are stored."}}
	namespaces := pick(properties["namespaces"].(fields), "include")
	include := with(namespaces["properties"].(fields)["include"].(fields), "maxItems", 1)
	namespaces["properties"] = fields{"include": with(include, "description", "The name of a namespace.")}
	properties["storage"], properties["namespaces"] = storage, namespaces
	types := fields{"type": "object", "description": "The content of the config.", "required": []any{"types"},
		"properties": fields{"types": fields{"type": "array", "minItems": 1, "items": cached,
			"description": "The types to cache."}}}
	return map[string]fields{
		"cachedtypes": definition(cachedTypesKind, "cachedtypes", "Cluster", "ctypes",
			"Types that crdcached caches.", types),
		"indexconfigs": definition(indexers.Kind, "indexconfigs", "Namespaced", "ixc",
			"Indexes of types that crdcached caches and the service accounts of the namespace may list.", index),
	}
}

// with returns a copy of a schema with one more keyword.
func with(schema fields, keyword string, value any) fields {
	schema = maps.Clone(schema)
	schema[keyword] = value
	return schema
}

// pick returns a copy of an object's schema with these properties only.
func pick(schema fields, names ...string) fields {
	properties, required := fields{}, []any{}
	for _, name := range names {
		properties[name] = schema["properties"].(fields)[name]
	}
	all, _ := schema["required"].([]any)
	for _, name := range all {
		if slices.Contains(names, name.(string)) {
			required = append(required, name)
		}
	}
	schema = with(schema, "properties", properties)
	if delete(schema, "required"); len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// structural converts a JSON Schema to a structural one, in which every field has one type. Other fields keep
// their content, and only the decoder checks them.
func structural(schema fields) fields {
	result := fields{}
	for keyword, value := range schema {
		switch keyword {
		case "additionalProperties", "dependentRequired", "default", "$schema", "title":
			if of, ok := value.(fields); ok && keyword == "additionalProperties" {
				result[keyword] = structural(of)
			}
		case "properties":
			properties := fields{}
			for name, property := range value.(fields) {
				properties[name] = structural(property.(fields))
			}
			result[keyword] = properties
		case "items":
			result[keyword] = structural(value.(fields))
		case "const":
			result["enum"], result["type"] = []any{value}, "string"
		case "enum":
			result[keyword], result["type"] = value, "string"
		default:
			result[keyword] = value
		}
	}
	_, several := schema["oneOf"]
	if _, one := result["type"].(string); several || !one {
		result = fields{"nullable": true, "x-kubernetes-preserve-unknown-fields": true}
		if description := schema["description"]; description != nil {
			result["description"] = description
		}
	}
	return result
}

func definition(kind, plural, scope, short, description string, spec fields) fields {
	text := func(description string) fields { return fields{"type": "string", "description": description} }
	number := func(description string) fields {
		return fields{"type": "integer", "format": "int64", "description": description}
	}
	list := func(item fields, names ...any) fields {
		return fields{"type": "array", "items": fields{"type": "object", "properties": item, "required": names}}
	}
	status := fields{"type": "object", "description": "Written by crdcached.", "properties": fields{
		"observedGeneration": number("The generation of the object that this status is about."),
		"state": fields{"type": "string", "description": "How much of the object is in effect.",
			"enum": []any{stateActive, stateWaiting, statePartial, stateRejected}},
		"objects": number("The number of objects of the types."),
		"bytes":   number("The memory of the caches of the types; for an IndexConfig, of its indexes."),
		"errors": list(fields{"field": text("The path of the field."), "reason": text("The reason in one word."),
			"message": text("The problem and its remedy.")}, "field", "reason", "message"),
		"conditions": with(list(fields{"type": text("Accepted or Ready."), "status": text("True or False."),
			"reason": text("The reason in one word."), "message": text("The reason."),
			"observedGeneration": number("The generation of the object."),
			"lastTransitionTime": with(text("The time of the last change of status."), "format", "date-time"),
		}, "type", "status", "reason", "message", "lastTransitionTime"),
			"x-kubernetes-list-type", "map"),
	}}
	status["properties"].(fields)["conditions"].(fields)["x-kubernetes-list-map-keys"] = []any{"type"}
	column := func(name, kind, path, description string) fields {
		return fields{"name": name, "type": kind, "jsonPath": path, "description": description}
	}
	return fields{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": fields{"name": plural + "." + configVersion.Group},
		"spec": fields{
			"group": configVersion.Group, "scope": scope,
			"names": fields{"kind": kind, "listKind": kind + "List", "plural": plural,
				"singular": strings.ToLower(kind), "shortNames": []any{short}, "categories": []any{"crdcache"}},
			"versions": []any{fields{
				"name": configVersion.Version, "served": true, "storage": true,
				"subresources": fields{"status": fields{}},
				"additionalPrinterColumns": []any{
					column("State", "string", ".status.state", "How much of the object is in effect."),
					column("Objects", "integer", ".status.objects", "The number of objects of the types."),
					column("Bytes", "integer", ".status.bytes", "The memory of the caches or indexes."),
					column("Error", "string", ".status.errors[0].message", "The first error."),
					column("Age", "date", ".metadata.creationTimestamp", "The age of the object."),
				},
				"schema": fields{"openAPIV3Schema": fields{"type": "object", "description": description,
					"required": []any{"spec"}, "properties": fields{
						"apiVersion": fields{"type": "string"}, "kind": fields{"type": "string"},
						"metadata": fields{"type": "object"}, "spec": spec, "status": status}}},
			}},
		},
	}
}
