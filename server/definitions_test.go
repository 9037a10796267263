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

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
)

var rewrite = flag.Bool("rewrite", false, "write the CustomResourceDefinitions")

// schemaMap is a part of a schema.
type schemaMap = map[string]any

// TestDefinitions verifies that the chart's CustomResourceDefinitions are up to date. "make generate" derives
// them from the schema of index configs.
func TestDefinitions(t *testing.T) {
	for name, want := range newDefinitions(t) {
		version := want["spec"].(schemaMap)["versions"].([]any)[0].(schemaMap)
		checkTypes(t, version["schema"].(schemaMap)["openAPIV3Schema"].(schemaMap), name)
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

// newDefinitions returns the CustomResourceDefinitions by plural name.
func newDefinitions(t *testing.T) map[string]schemaMap {
	t.Helper()
	var document schemaMap
	if err := json.Unmarshal(indexers.Schema(), &document); err != nil {
		t.Fatal(err)
	}
	spec := toStructural(document)["properties"].(schemaMap)["spec"].(schemaMap)
	resources := spec["properties"].(schemaMap)["resources"].(schemaMap)
	resource := resources["items"].(schemaMap)
	index := selectProperties(spec, "defaults", "resources")
	index["properties"].(schemaMap)["defaults"] = selectProperties(index["properties"].(schemaMap)["defaults"].(schemaMap), "index")
	index["properties"].(schemaMap)["resources"] = withKeyword(resources, "items", selectProperties(resource, "name", "match", "indexes"))

	cached := selectProperties(resource, "match", "storage", "prune", "keep", "namespaces")
	properties := cached["properties"].(schemaMap)
	storage := selectProperties(properties["storage"].(schemaMap), "mode")
	mode := storage["properties"].(schemaMap)["mode"].(schemaMap)
	modes := slices.DeleteFunc(slices.Clone(mode["enum"].([]any)), func(word any) bool {
		var m dynamicinformer.StorageMode
		return m.UnmarshalText([]byte(word.(string))) != nil || !slices.Contains(servedStorageModes, m)
	})
	storage["properties"] = schemaMap{"mode": withKeyword(mode, "enum", modes)}
	namespaces := selectProperties(properties["namespaces"].(schemaMap), "include")
	include := withKeyword(namespaces["properties"].(schemaMap)["include"].(schemaMap), "maxItems", 1)
	namespaces["properties"] = schemaMap{"include": withKeyword(include, "description", "The name of a namespace.")}
	properties["storage"], properties["namespaces"] = storage, namespaces
	types := schemaMap{"type": "object", "description": "The content of the config.", "required": []any{"types"},
		"properties": schemaMap{"types": schemaMap{"type": "array", "minItems": 1, "items": cached,
			"description": "The types to cache."}}}
	return map[string]schemaMap{
		"cachedtypes": newDefinition(cachedTypesKind, "cachedtypes", "Cluster", "ctypes",
			"Types that crdcached caches.", types),
		"indexconfigs": newDefinition(indexers.Kind, "indexconfigs", "Namespaced", "ixc",
			"Indexes of types that crdcached caches and the service accounts of the namespace may list.", index),
	}
}

// withKeyword returns a copy of a schema with one more keyword.
func withKeyword(schema schemaMap, keyword string, value any) schemaMap {
	schema = maps.Clone(schema)
	schema[keyword] = value
	return schema
}

// selectProperties returns a copy of an object's schema with these properties only.
func selectProperties(schema schemaMap, names ...string) schemaMap {
	properties, required := schemaMap{}, []any{}
	for _, name := range names {
		properties[name] = schema["properties"].(schemaMap)[name]
	}
	all, _ := schema["required"].([]any)
	for _, name := range all {
		if slices.Contains(names, name.(string)) {
			required = append(required, name)
		}
	}
	schema = withKeyword(schema, "properties", properties)
	if delete(schema, "required"); len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// toStructural returns a copy of a schema without keywords that a CustomResourceDefinition cannot have, or
// that would change objects.
func toStructural(schema schemaMap) schemaMap {
	schema = maps.Clone(schema)
	delete(schema, "default")
	if schema["additionalProperties"] == false {
		delete(schema, "additionalProperties")
	}
	if items, ok := schema["items"].(schemaMap); ok {
		schema["items"] = toStructural(items)
	}
	properties, _ := schema["properties"].(schemaMap)
	for name, property := range properties {
		properties[name] = toStructural(property.(schemaMap))
	}
	return schema
}

// checkTypes verifies that each field of a schema has exactly one type and known fields.
func checkTypes(t *testing.T, schema schemaMap, path string) {
	t.Helper()
	if _, ok := schema["type"].(string); !ok || schema["x-kubernetes-preserve-unknown-fields"] != nil ||
		schema["x-kubernetes-int-or-string"] != nil {
		t.Errorf("%s has the type %v or unknown fields, want one type and known fields", path, schema["type"])
	}
	if items, ok := schema["items"].(schemaMap); ok {
		checkTypes(t, items, path+"[]")
	}
	properties, _ := schema["properties"].(schemaMap)
	for name, property := range properties {
		checkTypes(t, property.(schemaMap), path+"."+name)
	}
}

func newDefinition(kind, plural, scope, short, description string, spec schemaMap) schemaMap {
	text := func(description string) schemaMap { return schemaMap{"type": "string", "description": description} }
	number := func(description string) schemaMap {
		return schemaMap{"type": "integer", "format": "int64", "description": description}
	}
	list := func(item schemaMap, names ...any) schemaMap {
		return schemaMap{"type": "array", "items": schemaMap{"type": "object", "properties": item, "required": names}}
	}
	status := schemaMap{"type": "object", "description": "Written by crdcached.", "properties": schemaMap{
		"observedGeneration": number("The generation of the object that this status is about."),
		"state": schemaMap{"type": "string", "description": "How much of the object is in effect.",
			"enum": []any{stateActive, stateWaiting, statePartial, stateRejected}},
		"objects": number("The number of objects of the types."),
		"bytes":   number("The memory of the caches of the types; for an IndexConfig, of its indexes."),
		"errors": list(schemaMap{"field": text("The path of the field."), "reason": text("The reason in one word."),
			"message": text("The problem and its remedy.")}, "field", "reason", "message"),
		"conditions": withKeyword(list(schemaMap{"type": text("Accepted or Ready."), "status": text("True or False."),
			"reason": text("The reason in one word."), "message": text("The reason."),
			"observedGeneration": number("The generation of the object."),
			"lastTransitionTime": withKeyword(text("The time of the last change of status."), "format", "date-time"),
		}, "type", "status", "reason", "message", "lastTransitionTime"),
			"x-kubernetes-list-type", "map"),
	}}
	status["properties"].(schemaMap)["conditions"].(schemaMap)["x-kubernetes-list-map-keys"] = []any{"type"}
	column := func(name, kind, path, description string) schemaMap {
		return schemaMap{"name": name, "type": kind, "jsonPath": path, "description": description}
	}
	return schemaMap{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": schemaMap{"name": plural + "." + configVersion.Group},
		"spec": schemaMap{
			"group": configVersion.Group, "scope": scope,
			"names": schemaMap{"kind": kind, "listKind": kind + "List", "plural": plural,
				"singular": strings.ToLower(kind), "shortNames": []any{short}, "categories": []any{"crdcache"}},
			"versions": []any{schemaMap{
				"name": configVersion.Version, "served": true, "storage": true,
				"subresources": schemaMap{"status": schemaMap{}},
				"additionalPrinterColumns": []any{
					column("State", "string", ".status.state", "How much of the object is in effect."),
					column("Objects", "integer", ".status.objects", "The number of objects of the types."),
					column("Bytes", "integer", ".status.bytes", "The memory of the caches or indexes."),
					column("Error", "string", ".status.errors[0].message", "The first error."),
					column("Age", "date", ".metadata.creationTimestamp", "The age of the object."),
				},
				"schema": schemaMap{"openAPIV3Schema": schemaMap{"type": "object", "description": description,
					"required": []any{"spec"}, "properties": schemaMap{
						"apiVersion": schemaMap{"type": "string"}, "kind": schemaMap{"type": "string"},
						"metadata": schemaMap{"type": "object"}, "spec": spec, "status": status}}},
			}},
		},
	}
}
