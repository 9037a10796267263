package lifecycle_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/crdcache/crdcache/discovery/crd"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
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

// TestNeverEstablished checks that a definition with conflicting names blocks no other type.
func TestNeverEstablished(t *testing.T) {
	t.Parallel()
	s := newScene(t, dynamicinformer.Options{}, nil)
	group := harness.Group(t)
	widgets, rival := harness.NewCRD(group, "Widget"), harness.NewCRD(group, "Gadget")
	for _, field := range []string{"kind", "listKind"} {
		taken, _, _ := unstructured.NestedString(widgets.Object, "spec", "names", field)
		if err := unstructured.SetNestedField(rival.Object, taken, "spec", "names", field); err != nil {
			t.Fatal(err)
		}
	}
	harness.InstallCRDs(t, widgets)
	if _, err := s.admin.Resource(crd.GVR).Create(s.ctx, rival, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.uninstall(rival) })
	_, _ = s.follow(resourceOf(widgets))
	bad, _ := s.follow(resourceOf(rival))

	if err := s.factory.WaitForSync(s.ctx, resourceOf(widgets)); err != nil {
		t.Error(err)
	}
	s.await(bad, status.Pending, status.ReasonNotEstablished)
	// It may still be established, so only the context ends the wait, and the error names only this type.
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	err := s.factory.WaitForSync(ctx)
	var missing *dynamicinformer.NotSyncedError
	if !errors.As(err, &missing) || len(missing.NotSynced) != 1 ||
		missing.NotSynced[0].GVR != resourceOf(rival) || !errors.Is(err, context.Canceled) {
		t.Errorf("WaitForSync returns %v, want it to miss %s alone", err, resourceOf(rival))
	}
}
