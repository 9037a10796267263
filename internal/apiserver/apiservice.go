package apiserver

import (
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/serving/readapi"
)

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
