package readapi

import (
	"crypto/sha512"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

type node = map[string]any

func openAPIIndex(types []Type) any {
	paths := node{}
	for _, gv := range groupVersions(types) {
		name := documentName(gv.GroupVersion)
		data, err := json.Marshal(openAPIOf(types, name))
		if err != nil {
			continue // invalid schema: the document itself reports it
		}
		paths[name] = node{"serverRelativeURL": fmt.Sprintf("/openapi/v3/%s?hash=%X", name,
			sha512.Sum512(data))}
	}
	return node{"paths": paths}
}

// documentName returns the name of a group version in the index.
func documentName(gv schema.GroupVersion) string {
	if gv.Group == "" {
		return "api/" + gv.Version
	}
	return "apis/" + gv.String()
}

func openAPIOf(types []Type, name string) any {
	versions := groupVersions(types)
	i := slices.IndexFunc(versions,
		func(gv groupVersion) bool { return documentName(gv.GroupVersion) == name })
	if i < 0 {
		return nil
	}
	paths, schemas := node{}, node{}
	for _, t := range versions[i].types {
		t.describe(versions[i].GroupVersion, paths, schemas)
	}
	return node{
		"openapi": "3.0.0", "info": node{"title": "Kubernetes", "version": "v1.37.0"},
		"paths": paths, "components": node{"schemas": schemas},
	}
}

func (t Type) describe(gv schema.GroupVersion, paths, schemas node) {
	root := "/" + documentName(gv) + "/"
	collection := root + t.Names.Plural
	gvk := node{"group": gv.Group, "version": gv.Version, "kind": t.Names.Kind}
	add := func(path, action, schema string, subresources ...string) {
		operation := node{
			"description": fmt.Sprintf("%s %s", action,
				t.Names.Kind), "operationId": operationID(action, path),
			"x-kubernetes-action": action, "x-kubernetes-group-version-kind": gvk,
			"responses": node{"200": node{"description": "OK",
				"content": node{mediaJSON: node{"schema": schemaReference(schema)}}}},
		}
		paths[path] = node{"get": operation, "parameters": parameters(path)}
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
	schemas[list] = node{
		"type": "object", "description": t.Names.ListKind + " is a list of " +
			t.Names.Kind, "required": []string{"items"},
		"properties": node{
			"apiVersion": node{"type": "string"}, "kind": node{"type": "string"},
			"metadata": node{"type": "object"},
			"items":    node{"type": "array", "items": schemaReference(object)},
		},
		"x-kubernetes-group-version-kind": []any{node{"group": gv.Group, "version": gv.Version,
			"kind": t.Names.ListKind}},
	}
}

// objectSchema returns the schema of the type with the fields of all objects.
func (t Type) objectSchema(version string, gvk node) node {
	s := node{}
	if err := json.Unmarshal(t.Version(version).Schema, &s); err != nil || len(s) == 0 {
		s = node{"x-kubernetes-preserve-unknown-fields": true}
	}
	s["type"] = "object"
	properties, ok := s["properties"].(node)
	if !ok {
		properties = node{}
		s["properties"] = properties
	}
	properties["apiVersion"] = node{"type": "string",
		"description": "The group and version of the schema of this object."}
	properties["kind"] = node{"type": "string", "description": "The kind of this object."}
	properties["metadata"] = node{"type": "object", "description": "Standard object's metadata."}
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

func schemaReference(schema string) node { return node{"$ref": "#/components/schemas/" + schema} }

func parameters(path string) []any {
	list := []any{}
	for _, name := range []string{"namespace", "name"} {
		if strings.Contains(path, "{"+name+"}") {
			list = append(list, node{"name": name, "in": "path", "required": true,
				"schema": node{"type": "string"}})
		}
	}
	return list
}

// operationID returns an ID that is unique within a document.
func operationID(action, path string) string {
	return action + strings.NewReplacer("/", "_", "{", "", "}", "", ".", "_", "-", "_").Replace(path)
}
