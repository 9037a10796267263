package follow

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/cmd/crdcache/internal/print"
	"github.com/crdcache/crdcache/indexers/query"
)

func withRow(version, color, age string) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"spec":         map[string]any{"color": color},
		print.RowField: map[string]any{"cells": []any{"a", color, age}},
	}}
	u.SetResourceVersion(version)
	return u
}

// TestUnchanged verifies that events in which only the row changed are ignored.
func TestUnchanged(t *testing.T) {
	before := withRow("5", "red", "3s")
	for name, tt := range map[string]struct {
		event query.Event
		want  bool
	}{
		"older": {query.Event{Type: query.Modified, Old: before,
			Object: withRow("5", "red", "4s")}, true},
		"without a row": {query.Event{Type: query.Modified, Old: before,
			Object: &unstructured.Unstructured{Object: withoutRow(before.Object)}}, true},
		"written": {query.Event{Type: query.Modified, Old: before,
			Object: withRow("6", "red", "3s")}, false},
		"another default": {query.Event{Type: query.Modified, Old: before,
			Object: withRow("5", "blue", "3s")}, false},
		"nothing known before": {query.Event{Type: query.Modified, Object: before}, false},
		"began to match":       {query.Event{Type: query.Added, Old: before, Object: before}, false},
		"gone": {query.Event{Type: query.Deleted, Old: before, Object: before, Gone: true},
			false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := isUnchanged(tt.event); got != tt.want {
				t.Errorf("isUnchanged() = %v, want %v", got, tt.want)
			}
			if _, ok := before.Object[print.RowField]; !ok {
				t.Error("isUnchanged removed the row of its argument")
			}
		})
	}
}
