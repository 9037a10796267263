package readapi

import (
	"maps"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	apiServices    = schema.GroupResource{Group: "apiregistration.k8s.io", Resource: "apiservices"}
	apiServiceKind = schema.GroupKind{Group: apiServices.Group, Kind: "APIService"}
)

// automanaged is the label by which a kube-apiserver knows the APIServices that it keeps itself.
const automanaged = "kube-aggregator.kubernetes.io/automanaged"

// registerServices keeps one APIService for each served group version of a group, as a kube-apiserver does:
// clients that follow the types of a server watch them. Those that did not come from here stay as they are.
func (s *Storage) registerServices(group string, w write) {
	services := s.mu.types[apiServices]
	if services == nil || s.options.OnlyApplied { // or somebody removed the type
		return
	}
	wanted := map[string]*unstructured.Unstructured{}
	for gr, c := range s.mu.types {
		if gr.Group != group {
			continue
		}
		for _, v := range c.typ.Versions {
			service := apiService(group, v.Name, w.now)
			wanted[service.GetName()] = service
		}
	}
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		if services.objects[name] == nil {
			// It is well formed, so that storing it cannot fail.
			_, _, _ = s.store(services, wanted[name], "v1", write{now: w.now})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(services.objects)) {
		if wanted[name] == nil && services.objects[name].isServiceOf(group) {
			s.remove(services, name)
		}
	}
}

// isServiceOf reports whether an APIService is one that registerServices made for the group.
func (o *object) isServiceOf(group string) bool {
	if !o.labels.Has(automanaged) {
		return false
	}
	content, err := decode(o)
	if err != nil {
		return false
	}
	of, _, _ := unstructured.NestedString(content, "spec", "group")
	return of == group
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
			"labels":            map[string]any{automanaged: strconv.FormatBool(true)},
			"creationTimestamp": now.UTC().Format(time.RFC3339),
		},
		"spec": spec,
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Available", "status": "True", "reason": "Local",
			"message":            "Local APIServices are always available",
			"lastTransitionTime": now.UTC().Format(time.RFC3339),
		}}},
	}}
}
