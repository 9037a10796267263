package experiment

import (
	"testing"

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
