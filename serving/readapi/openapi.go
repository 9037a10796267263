package readapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type jsonObject = map[string]any

func (o HandlerOptions) openAPIIndex(types []Type) any {
	paths := jsonObject{}
	for _, gv := range groupVersions(types) {
		name := documentName(gv.GroupVersion)
		data, err := json.Marshal(o.openAPIOf(types, name))
		if err != nil {
			continue // invalid schema: the document itself reports it
		}
		paths[name] = jsonObject{"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%X", name,
			sha512.Sum512(data))}
	}
	return jsonObject{"paths": paths}
}

// documentName returns the name of a group version in the index.
func documentName(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

func (o HandlerOptions) openAPIOf(types []Type, name string) any {
	versions := groupVersions(types)
	i := slices.IndexFunc(versions,
		func(gv groupVersion) bool { return documentName(gv.GroupVersion) == name })
	if i < 0 {
		return nil
	}
	paths, schemas := jsonObject{}, jsonObject{}
	for _, t := range versions[i].types {
		t.addPathsAndSchemas(versions[i].GroupVersion, paths, schemas)
	}
	if o.Schemas != nil {
		kinds, others := o.Schemas(versions[i].GroupVersion)
		for kind, s := range kinds {
			if served, ok := schemas[schemaName(versions[i].GroupVersion, kind)].(jsonObject); ok {
				maps.Copy(served, s.(jsonObject))
			}
		}
		maps.Copy(schemas, others)
	}
	return jsonObject{
		"openapi": "3.0.0", "info": jsonObject{"title": "Kubernetes", "version": "v1.37.0"},
		"paths": paths, "components": jsonObject{"schemas": schemas},
	}
}

func (t Type) addPathsAndSchemas(gv schema.GroupVersion, paths, schemas jsonObject) {
	root := "/" + documentName(gv) + "/"
	collection := root + t.Names.Plural
	gvk := jsonObject{"group": gv.Group, "version": gv.Version, "kind": t.Names.Kind}
	add := func(path, action, schema string, subresources ...string) {
		operation := jsonObject{
			"description": fmt.Sprintf("%s %s", action,
				t.Names.Kind), "operationId": operationID(action, path),
			"x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
			"responses": jsonObject{"200": jsonObject{"description": "OK",
				"content": jsonObject{mediaJSON: jsonObject{"schema": schemaReference(schema)}}}},
		}
		paths[path] = jsonObject{"get": operation, "parameters": pathParameters(path)}
		for _, sub := range subresources {
			paths[path+"/"+sub] = paths[path]
		}
	}
	object, list := schemaName(gv, t.Names.Kind), schemaName(gv, t.Names.ListKind)
	add(collection, "list", list)
	if t.Namespaced {
		collection = root + "namespaces/{namespace}/" + t.Names.Plural
		add(collection, "list", list)
	}
	add(collection+"/{name}", "get", object, t.Version(gv.Version).Subresources...)

	schemas[object] = t.objectSchema(gv.Version, gvk)
	schemas[list] = jsonObject{
		"type": "object", "description": t.Names.ListKind + " is a list of " +
			t.Names.Kind, "required": []string{"items"},
		"properties": jsonObject{
			"apiVersion": jsonObject{"type": "string"}, "kind": jsonObject{"type": "string"},
			"metadata": jsonObject{"type": "object"},
			"items":    jsonObject{"type": "array", "items": schemaReference(object)},
		},
		"x-kubernetes-group-version-kind": []any{jsonObject{"group": gv.Group, "version": gv.Version,
			"kind": t.Names.ListKind}},
	}
}

// objectSchema returns the schema of the type with the fields of all objects.
func (t Type) objectSchema(version string, gvk jsonObject) jsonObject {
	s := jsonObject{}
	if err := json.Unmarshal(t.Version(version).Schema, &s); err != nil || len(s) == 0 {
		s = jsonObject{"x-kubernetes-preserve-unknown-fields": true}
	}
	s["type"] = "object"
	properties, ok := s["properties"].(jsonObject)
	if !ok {
		properties = jsonObject{}
		s["properties"] = properties
	}
	properties["apiVersion"] = jsonObject{"type": "string",
		"description": "The group and version of the schema of this object."}
	properties["kind"] = jsonObject{"type": "string", "description": "The kind of this object."}
	properties["metadata"] = jsonObject{"type": "object", "description": "Standard object's metadata."}
	s["x-kubernetes-group-version-kind"] = []any{gvk}
	return s
}

// schemaName returns the name of a kind's schema: the reversed group, the version, the kind.
func schemaName(gv schema.GroupVersion, kind string) string {
	parts := strings.Split(gv.Group, ".")
	if gv.Group == "" {
		parts = []string{"core"}
	}
	slices.Reverse(parts)
	return strings.Join(append(parts, gv.Version, kind), ".")
}

func schemaReference(schema string) jsonObject {
	return jsonObject{"$ref": "#/components/schemas/" + schema}
}

func pathParameters(path string) []any {
	list := []any{}
	for _, name := range []string{"namespace", "name"} {
		if strings.Contains(path, "{"+name+"}") {
			list = append(list, jsonObject{"name": name, "in": "path", "required": true,
				"schema": jsonObject{"type": "string"}})
		}
	}
	return list
}

// operationID returns an ID that is unique within a document.
func operationID(action, path string) string {
	return action + strings.NewReplacer("/", "_", "{", "", "}", "", ".", "_", "-", "_").Replace(path)
}
