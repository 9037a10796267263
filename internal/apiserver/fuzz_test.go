package apiserver

import (
	"encoding/json"
	"testing"
)

// FuzzApply applies any JSON. Accepted objects must be readable in every form.
func FuzzApply(f *testing.F) {
	f.Add([]byte(
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","labels":{"a":"b"}},"spec":{"color":{"a":[1]}}}`))
	f.Add([]byte(
		`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"x","creationTimestamp":7,"finalizers":{}}}`))
	f.Add([]byte(
		`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"a.b.c"},"spec":{"group":"b.c","scope":"Cluster","names":{"plural":"a","kind":"A"},"versions":[{"name":"v1","served":true,"storage":true,"schema":7}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		if !json.Valid(data) {
			return // most inputs end here
		}
		s := newWidgets(t, StorageOptions{})
		if _, err := s.ApplyJSON(data); err != nil {
			return
		}
		if outcome, err := s.ApplyJSON(data); err != nil || outcome != Unchanged {
			t.Errorf("once more: %s, %v", outcome, err)
		}
		h := handlerOf(s)
		for _, accept := range []string{mediaJSON, asTable, asPartialList} {
			for _, path := range []string{widgetsPath,
				"/apis/apiextensions.k8s.io/v1/customresourcedefinitions"} {
				if got := get(h, path, "Accept", accept); got.Code != 200 ||
					!json.Valid([]byte(got.Body)) {
					t.Errorf("%s as %s: %d %s", path, accept, got.Code, got.Body)
				}
			}
		}
		get(h, "/openapi/v3")
	})
}
