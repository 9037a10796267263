package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/serving/readapi"
)

var (
	definitions    = crd.GVR.GroupResource()
	definitionKind = schema.GroupKind{Group: crd.GVR.Group, Kind: "CustomResourceDefinition"}
	namespaces     = schema.GroupResource{Resource: "namespaces"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
	apiServices    = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
	apiServiceKind = schema.GroupKind{Group: apiServices.Group, Kind: "APIService"}
)

// BuiltinType returns a built-in type in one version.
func BuiltinType(b naming.BuiltinType, version string) readapi.Type {
	return readapi.Type{Group: b.Group, Namespaced: b.Has(naming.Namespaced),
		Names: crd.Names{Plural: b.Plural, Kind: b.Kind, ShortNames: b.ShortNames,
			Categories: b.Categories},
		Versions: []readapi.Version{{Name: version, Subresources: []string{"status"},
			SelectableFields: b.SelectableFields}}}
}

// typeOfDefinition sets the status of a CustomResourceDefinition if it has none, and returns the type that it
// defines. The type is nil if it is not established or serves no version.
func typeOfDefinition(u *unstructured.Unstructured, now time.Time) (*readapi.Type, error) {
	d, err := crd.Summary(u.Object)
	if err != nil {
		return nil, err
	}
	if want := d.GroupResource().String(); d.Name != want {
		return nil, fmt.Errorf("metadata.name is %q: want plural and group, %q", d.Name, want)
	}
	isEstablished := setEstablished(u, now) || d.Established
	if !isEstablished || len(d.ServedVersions()) == 0 {
		return nil, nil
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	t, err := readapi.TypeOf(data)
	return &t, err
}

// setEstablished sets the status of a valid definition without conditions, and reports whether it did.
func setEstablished(u *unstructured.Unstructured, now time.Time) bool {
	status, _ := u.Object["status"].(map[string]any)
	if conditions, _ := status["conditions"].([]any); len(conditions) > 0 {
		return false
	}
	spec, _ := u.Object["spec"].(map[string]any)
	u.Object["status"] = map[string]any{
		"acceptedNames":  spec["names"],
		"storedVersions": storedVersions(u, nil),
		"conditions": []any{
			newTrueCondition("NamesAccepted", "NoConflicts", "no conflicts found", now),
			newTrueCondition("Established", "InitialNamesAccepted", "the initial names have been accepted", now),
		},
	}
	return true
}

// storedVersions adds the storage version of a definition to a list.
func storedVersions(u *unstructured.Unstructured, stored []any) []any {
	versions, _, _ := unstructured.NestedSlice(u.Object, "spec", "versions")
	for _, v := range versions {
		if v, ok := v.(map[string]any); ok && v["storage"] == true && !slices.Contains(stored, v["name"]) {
			stored = append(stored, v["name"])
		}
	}
	return stored
}

func newTrueCondition(kind, reason, message string, since time.Time) any {
	return map[string]any{
		"type": kind, "status": "True", "reason": reason, "message": message,
		"lastTransitionTime": since.UTC().Format(time.RFC3339),
	}
}

// acceptDefinition updates the status of a definition that a client has changed.
func acceptDefinition(u *unstructured.Unstructured) {
	names, hasNames, _ := unstructured.NestedFieldCopy(u.Object, "spec", "names")
	stored, _, _ := unstructured.NestedSlice(u.Object, "status", "storedVersions")
	if status, ok := u.Object["status"].(map[string]any); ok && hasNames {
		status["acceptedNames"], status["storedVersions"] = names, storedVersions(u, stored)
	}
}

// autoManagedLabel is the label of the APIServices that a kube-apiserver manages.
const autoManagedLabel = "kube-aggregator.kubernetes.io/automanaged"

// registerServices creates an APIService for each served version of a group, and deletes its APIServices of
// other versions. Clients watch APIServices to notice new types.
func (s *Storage) registerServices(group string, now time.Time) {
	services := s.mu.types[apiServices]
	if services == nil || s.options.OmitSystemTypes {
		return
	}
	desired := map[string]*unstructured.Unstructured{}
	for gr, c := range s.mu.types {
		if gr.Group != group {
			continue
		}
		for _, v := range c.typ.Versions {
			service := apiService(group, v.Name, now)
			desired[service.GetName()] = service
		}
	}
	for _, name := range slices.Sorted(maps.Keys(desired)) {
		if services.objects[name] == nil {
			_, _, _ = s.store(services, desired[name], "v1", putOptions{now: now}) // it is valid
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services.objects)) {
		if desired[name] == nil && services.objects[name].isServiceOf(group) {
			s.remove(services, name)
		}
	}
}

// isServiceOf reports whether registerServices has created an APIService for the group.
func (o *object) isServiceOf(group string) bool {
	if !o.Labels().Has(autoManagedLabel) {
		return false
	}
	content, err := readapi.Decode(o)
	if err != nil {
		return false
	}
	found, _, _ := unstructured.NestedString(content, "spec", "group")
	return found == group
}

func apiService(group, version string, now time.Time) *unstructured.Unstructured {
	spec := map[string]any{"version": version, "groupPriorityMinimum": int64(1000),
		"versionPriority": int64(100)}
	if group != "" {
		spec["group"] = group
	} else {
		spec["groupPriorityMinimum"] = int64(18000)
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": apiServiceKind.Group + "/v1",
		"kind":       apiServiceKind.Kind,
		"metadata": map[string]any{
			"name":              version + "." + group,
			"labels":            map[string]any{autoManagedLabel: "true"},
			"creationTimestamp": now.UTC().Format(time.RFC3339),
		},
		"spec": spec,
		"status": map[string]any{"conditions": []any{
			newTrueCondition("Available", "Local", "Local APIServices are always available", now),
		}},
	}}
}
