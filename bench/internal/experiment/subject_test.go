package experiment

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// TestSubjectsAreCreatedWithoutRequests creates every subject without requests.
func TestSubjectsAreCreatedWithoutRequests(t *testing.T) {
	for _, s := range Subjects() {
		c, err := s.New(Options{
			Config: &rest.Config{Host: "https://localhost:1", QPS: -1},
			GVR:    schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"},
			Kind:   "Widget",
		})
		if err != nil {
			t.Errorf("New of %s: %v", s.Name, err)
			continue
		}
		if _, ok := c.(Reader); ok != (s.Name != Stream) {
			t.Errorf("%s implements Reader: %v", s.Name, ok)
		}
	}
}

// TestReadFields verifies that readFields reads a field of spec and one of status.
func TestReadFields(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"secretName": "four"},
		"status": map[string]any{"conditions": []any{map[string]any{}, map[string]any{}}},
	}}
	if got := readFields(object); got != 6 {
		t.Errorf("readFields() = %d, want 6: the length of the name and the number of conditions", got)
	}
	if values, err := indexFunc(object); err != nil || len(values) != 1 || values[0] != "four" {
		t.Errorf("the index function returned %v, %v, want four", values, err)
	}
}

func TestHandlersReportAddedAndUpdatedObjects(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{}}
	object.SetNamespace("ns")
	object.SetName("a")
	for _, kind := range []Handler{KeyHandler, ReadHandler} {
		var keys []string
		h := Options{Handler: kind, OnSeen: func(key string) { keys = append(keys, key) }}.handler()
		h.OnAdd(object, true)
		h.OnUpdate(object, object)
		h.OnDelete(object)
		if diff := cmp.Diff([]string{"ns/a", "ns/a"}, keys); diff != "" {
			t.Errorf("%s: keys (-want +got):\n%s", kind, diff)
		}
	}
	if h := (Options{}).handler(); h != nil {
		t.Error("handler() of empty options is not nil")
	}
}
