package discovery

import (
	"fmt"
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"
)

// apiServiceGVR is the resource in which aggregated API servers are registered. CRDs and built-in groups also
// have entries, maintained by the API server.
var apiServiceGVR = schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1",
	Resource: "apiservices"}

// apiService contains the fields of an APIService that decide whether discovery has to be repeated.
type apiService struct {
	metav1.ObjectMeta
	// isAggregated is true if another server serves the group version, false for CRDs and built-in types.
	isAggregated bool
	// digest changes when the discovery document may change.
	digest string
}

// apiServiceStore detects changes of APIServices that affect discovery. A reflector calls it from one
// goroutine.
type apiServiceStore struct {
	known map[string]*apiService
	// onListed is called after each complete list; first is true for the first one.
	onListed func(first bool)
	// onChange is called after each change. remote is false for group versions that the server serves itself,
	// which the CRD watch reports better.
	onChange func(remote bool)
}

var _ cache.TransformingStore = (*apiServiceStore)(nil)

func (s *apiServiceStore) Transformer() cache.TransformFunc {
	return func(obj any) (any, error) { return shrinkAPIService(obj), nil }
}

func shrinkAPIService(obj any) *apiService {
	switch o := obj.(type) {
	case *apiService:
		return o
	case *unstructured.Unstructured:
		spec, _, _ := unstructured.NestedMap(o.Object, "spec")
		return &apiService{
			ObjectMeta:   metav1.ObjectMeta{Name: o.GetName(), ResourceVersion: o.GetResourceVersion()},
			isAggregated: spec["service"] != nil,
			digest: fmt.Sprint(o.GetUID(), spec["service"], spec["groupPriorityMinimum"],
				spec["versionPriority"], availableStatus(o)),
		}
	case cache.DeletedFinalStateUnknown:
		return shrinkAPIService(o.Obj)
	}
	return &apiService{}
}

func availableStatus(o *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Available" {
			return fmt.Sprint(c["status"])
		}
	}
	return ""
}

func (s *apiServiceStore) Add(obj any) error    { return s.upsert(obj) }
func (s *apiServiceStore) Update(obj any) error { return s.upsert(obj) }
func (s *apiServiceStore) Resync() error        { return nil }

func (s *apiServiceStore) upsert(obj any) error {
	now := shrinkAPIService(obj)
	old := s.known[now.Name]
	s.known[now.Name] = now
	if old == nil || old.digest != now.digest {
		s.onChange(now.isAggregated || old != nil && old.isAggregated)
	}
	return nil
}

func (s *apiServiceStore) Delete(obj any) error {
	o := shrinkAPIService(obj)
	if s.known[o.Name] != nil {
		delete(s.known, o.Name)
		s.onChange(o.isAggregated)
	}
	return nil
}

// Replace processes a complete list. The first one is the initial state and not a change.
func (s *apiServiceStore) Replace(list []any, _ string) error {
	next := make(map[string]*apiService, len(list))
	for _, obj := range list {
		o := shrinkAPIService(obj)
		next[o.Name] = o
	}
	first := s.known == nil
	unchanged := maps.EqualFunc(s.known, next, func(a, b *apiService) bool { return a.digest == b.digest })
	s.known = next
	s.onListed(first)
	if !first && !unchanged {
		s.onChange(true)
	}
	return nil
}
