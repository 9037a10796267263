package apiserver

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestDeleteCollection: what a selector selects is deleted, or marked where it has finalizers, and all else
// stays.
func TestDeleteCollection(t *testing.T) {
	ctx := t.Context()
	widgets, s, _ := writable(t)
	for name, color := range map[string]string{"a": "red", "b": "red", "c": "green"} {
		apply(t, s, widget("default", name, color))
	}
	apply(t, s, "{apiVersion: example.com/v1, kind: Widget, metadata: {name: d, namespace: default, labels: {color: red}, finalizers: [example.com/f]}}")
	apply(t, s, widget("other", "a", "red"))
	before := s.ResourceVersion()
	selected := metav1.ListOptions{LabelSelector: "color=red"}
	if err := widgets.DeleteCollection(ctx, metav1.DeleteOptions{DryRun: []string{metav1.DryRunAll}},
		selected); err != nil || s.ResourceVersion() != before {
		t.Errorf("a dry run: %v, or something was written", err)
	}
	if err := widgets.DeleteCollection(ctx, metav1.DeleteOptions{}, selected); err != nil {
		t.Fatal(err)
	}
	list, err := widgets.List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, w := range list.Items {
		if w.GetDeletionTimestamp() != nil {
			left = append(left, "marked")
		}
		left = append(left, w.GetName())
	}
	if diff := cmp.Diff("c marked d", strings.Join(left, " ")); diff != "" || s.Len(widgetResource) != 3 {
		t.Errorf("%d are left (-want +got):\n%s", s.Len(widgetResource), diff)
	}
}
