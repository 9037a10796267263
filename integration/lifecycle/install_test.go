package lifecycle_test

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func (s *fixture) serve(definition *unstructured.Unstructured, version int, served bool) {
	s.Helper()
	patch, err := json.Marshal([]any{map[string]any{
		"op": "replace", "path": fmt.Sprintf("/spec/versions/%d/served", version), "value": served,
	}})
	if err != nil {
		s.Fatal(err)
	}
	s.patchDefinition(definition, patch)
}
