package readapi

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
)

var (
	definitions    = crd.GVR.GroupResource()
	definitionKind = schema.GroupKind{Group: crd.GVR.Group, Kind: "CustomResourceDefinition"}
)

// systemTypes are those that every storage has: clients learn from their objects which others there are.
func systemTypes() []Type {
	return []Type{{ // first, so that the other group gets its entry
		Group: apiServiceKind.Group,
		Names: crd.Names{
			Plural: apiServices.Resource, Singular: "apiservice", Kind: apiServiceKind.Kind,
			Categories: []string{"api-extensions"},
		},
		Versions: []Version{{Name: "v1", Subresources: []string{"status"}, Columns: []crd.Column{
			{Name: "Available", Type: "string",
				JSONPath: `.status.conditions[?(@.type=="Available")].status`},
			{Name: "Age", Type: "date", JSONPath: ".metadata.creationTimestamp"},
		}}},
	}, {
		Group: definitionKind.Group,
		Names: crd.Names{
			Plural: definitions.Resource, Singular: "customresourcedefinition", Kind: definitionKind.Kind,
			ShortNames: []string{"crd", "crds"}, Categories: []string{"api-extensions"},
		},
		Versions: []Version{{Name: crd.GVR.Version, Subresources: []string{"status"}, Columns: []crd.Column{
			{Name: "Scope", Type: "string", JSONPath: ".spec.scope"},
			{Name: "Created At", Type: "string", JSONPath: ".metadata.creationTimestamp"},
		}}},
	}}
}

// TypeOf returns the type that a CustomResourceDefinition in JSON defines, with what it serves. It fails for
// one that serves nothing.
func TypeOf(definition []byte) (Type, error) {
	d, err := crd.Decode(definition)
	if err != nil {
		return Type{}, err
	}
	var schemas struct {
		Spec struct {
			Versions []struct {
				Name   string `json:"name"`
				Schema struct {
					OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
				} `json:"schema"`
			} `json:"versions"`
		} `json:"spec"`
	}
	if err := json.Unmarshal(definition, &schemas); err != nil {
		return Type{}, err
	}
	t := Type{Group: d.Group, Names: d.Names, Namespaced: d.Namespaced, Converted: d.ConversionWebhook}
	for _, name := range d.ServedVersions() {
		v, _ := d.Version(name)
		served := Version{
			Name: name, Deprecated: v.Deprecated, DeprecationWarning: v.DeprecationWarning,
			Columns: v.Columns, SelectableFields: v.SelectableFields,
		}
		if slices.Contains(v.Subresources, "status") {
			served.Subresources = []string{"status"}
		}
		if slices.Contains(v.Subresources, "scale") {
			served.Unserved = []string{"scale"}
		}
		for _, s := range schemas.Spec.Versions {
			if s.Name == name {
				served.Schema = s.Schema.OpenAPIV3Schema
			}
		}
		t.Versions = append(t.Versions, served)
	}
	return t, t.complete()
}

// define completes a CustomResourceDefinition as a kube-apiserver does, and returns the type that it defines;
// nil when its status says that it is not established.
func define(u *unstructured.Unstructured, w write) (*Type, error) {
	if err := establish(u, w.now); err != nil {
		return nil, err
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	d, err := crd.Decode(data)
	if err != nil {
		return nil, err
	}
	if want := d.GroupResource().String(); d.Name != want {
		return nil, fmt.Errorf("metadata.name is %q: want plural and group, %q", d.Name, want)
	}
	if !d.Established || len(d.ServedVersions()) == 0 {
		return nil, nil
	}
	t, err := TypeOf(data)
	return &t, err
}

// establish gives a definition that has never been on a server the status that one would give it. What is in
// a manifest has no status, or one with empty lists.
func establish(u *unstructured.Unstructured, now time.Time) error {
	conditions, _, err := unstructured.NestedSlice(u.Object, "status", "conditions")
	if err != nil || len(conditions) > 0 {
		return err
	}
	spec, _, err := unstructured.NestedMap(u.Object, "spec")
	if err != nil {
		return err
	}
	var stored []any
	versions, _, _ := unstructured.NestedSlice(spec, "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["storage"] == true {
			stored = append(stored, v["name"])
		}
	}
	u.Object["status"] = map[string]any{
		"acceptedNames":  spec["names"],
		"storedVersions": stored,
		"conditions": []any{
			conditionOf("NamesAccepted", "NoConflicts", "no conflicts found", now),
			conditionOf("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
		},
	}
	return nil
}

// conditionOf is a condition that holds.
func conditionOf(kind, reason, message string, since time.Time) any {
	return map[string]any{
		"type": kind, "status": "True", "reason": reason, "message": message,
		"lastTransitionTime": since.UTC().Format(time.RFC3339),
	}
}

// acceptChanges completes the status of a definition that a client has changed: its names are accepted, and
// its objects may from now on be stored in another version.
func acceptChanges(u *unstructured.Unstructured) {
	names, named, _ := unstructured.NestedFieldCopy(u.Object, "spec", "names")
	stored, _, _ := unstructured.NestedSlice(u.Object, "status", "storedVersions")
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["storage"] == true && !slices.Contains(stored, v["name"]) {
			stored = append(stored, v["name"])
		}
	}
	if status, ok := u.Object["status"].(map[string]any); ok && named {
		status["acceptedNames"], status["storedVersions"] = names, stored
	}
}

// redefine makes the type of the definition of that name what the definition says now.
func (s *Storage) redefine(name string, t *Type, w write) error {
	if t == nil {
		s.undefine(name, w)
		return nil
	}
	return s.setType(*t, name, w)
}

// undefine removes the type of the definition of that name, with its objects.
func (s *Storage) undefine(name string, w write) {
	for gr, c := range s.mu.types {
		if c.custom == name {
			s.removeType(gr, w)
		}
	}
}
