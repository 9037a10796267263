package discovery

import (
	"fmt"
	"maps"
	"time"

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

// apiServiceWatch requests discovery rounds of a Tracker when APIServices change. Group versions that the
// server serves itself only matter while CRDs cannot be watched. A reflector calls it from one goroutine.
type apiServiceWatch struct {
	tracker  *Tracker
	services map[string]*apiService
}

func (w *apiServiceWatch) Transformer() cache.TransformFunc {
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

func (w *apiServiceWatch) Add(obj any) error { return w.Update(obj) }
func (w *apiServiceWatch) Resync() error     { return nil }

func (w *apiServiceWatch) Update(obj any) error {
	current := shrinkAPIService(obj)
	old := w.services[current.Name]
	w.services[current.Name] = current
	if old == nil || old.digest != current.digest {
		w.onChange(current.isAggregated || old != nil && old.isAggregated)
	}
	return nil
}

func (w *apiServiceWatch) Delete(obj any) error {
	o := shrinkAPIService(obj)
	if w.services[o.Name] != nil {
		delete(w.services, o.Name)
		w.onChange(o.isAggregated)
	}
	return nil
}

// Replace stores a complete list. The first list is the initial state and not a change.
func (w *apiServiceWatch) Replace(list []any, _ string) error {
	services := make(map[string]*apiService, len(list))
	for _, obj := range list {
		o := shrinkAPIService(obj)
		services[o.Name] = o
	}
	isFirst := w.services == nil
	unchanged := maps.EqualFunc(w.services, services,
		func(a, b *apiService) bool { return a.digest == b.digest })
	w.services = services
	missedRegistrations := false // the first round started before this list
	w.tracker.updateStatus(func(status *TrackerStatus) {
		status.APIServices.Synced, status.APIServices.Unavailable = true, false
		missedRegistrations = isFirst && w.tracker.mu.firstRoundStarted
	})
	w.tracker.onAPIServices()
	if missedRegistrations {
		w.tracker.Refresh()
	}
	if !isFirst && !unchanged {
		w.onChange(true)
	}
	return nil
}

func (w *apiServiceWatch) onChange(isAggregated bool) {
	if !isAggregated && w.tracker.Status().Mode != Polling {
		return
	}
	w.tracker.mu.Lock()
	w.tracker.mu.rounds.retries, w.tracker.mu.rounds.extraRounds = 0, extraRoundsAfterChange
	w.tracker.mu.Unlock()
	w.tracker.Refresh()
}

func (w *apiServiceWatch) onSuccess() {
	w.tracker.updateStatus(func(status *TrackerStatus) { status.APIServices.recordSuccess(time.Now()) })
}

func (w *apiServiceWatch) onFailure(err error, list bool) {
	w.tracker.updateStatus(func(status *TrackerStatus) { status.APIServices.LastError = err })
	if list {
		w.tracker.onAPIServices()
	}
}

func (w *apiServiceWatch) onForbidden() {
	w.tracker.updateStatus(func(status *TrackerStatus) {
		status.APIServices.Synced, status.APIServices.Unavailable = false, true
	})
}
