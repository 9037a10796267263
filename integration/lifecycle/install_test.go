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

func TestInstalledAfterStart(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	i, j := s.follow(resourceOf(widgets))
	// An absent type is settled: nobody waits for it.
	var missing *dynamicinformer.NotSyncedError
	if statuses, err := s.factory.WaitForSync(s.ctx); !errors.As(err, &missing) || missing.Cause != nil || statuses[0].Reason != status.ReasonNotInstalled {
		t.Errorf("WaitForSync returns %+v, %v; want the type not installed", statuses, err)
	}
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	j.expect("add a")
	if status := s.awaitSynced(i, 1); status.Generation != 1 {
		t.Errorf("the status is %+v, want generation 1", status)
	}
	if _, err := s.factory.WaitForSync(s.ctx); err != nil {
		t.Error(err)
	}
}

func TestVersionWithdrawn(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := withSecondVersion(harness.NewCRD(harness.Group(t), "Widget"))
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	other, k := s.follow(resourceOf(widgets).GroupResource().WithVersion("v2"))
	j.expect("add a")
	k.expect("add a")
	s.awaitSynced(i, 1)
	s.awaitSynced(other, 1)

	s.serve(widgets, 0, false)
	j.expect("delete a")
	s.await(i, status.Pending, status.ReasonVersionNotServed)
	s.expectEmpty(i)
	s.serve(widgets, 0, true)
	j.expect("add a")
	s.awaitSynced(i, 2)
	j.expectNothing()
	if status := s.awaitSynced(other, 1); status.Generation != 1 {
		t.Errorf("the version that stayed has the status %+v, want generation 1", status)
	}
	k.expectNothing()
}

// serve says whether a version is served.
func (s *scene) serve(definition *unstructured.Unstructured, version int, served bool) {
	s.Helper()
	patch, err := json.Marshal([]any{map[string]any{
		"op": "replace", "path": fmt.Sprintf("/spec/versions/%d/served", version), "value": served,
	}})
	if err != nil {
		s.Fatal(err)
	}
	s.patchDefinition(definition, patch)
}

// TestNeverEstablished: a definition whose names are taken holds nobody else up.
func TestNeverEstablished(t *testing.T) {
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

	if _, err := s.factory.WaitForSync(s.ctx, resourceOf(widgets)); err != nil {
		t.Error(err)
	}
	s.await(bad, status.Pending, status.ReasonNotEstablished)
	// It may be established yet, so waiting for it is up to the context, and the error names it alone.
	ctx, cancel := context.WithCancel(s.ctx)
	cancel()
	_, err := s.factory.WaitForSync(ctx)
	var missing *dynamicinformer.NotSyncedError
	if !errors.As(err, &missing) || len(missing.Missing) != 1 || missing.Missing[0].GVR != resourceOf(rival) || !errors.Is(err, context.Canceled) {
		t.Errorf("WaitForSync returns %v, want it to miss %s alone", err, resourceOf(rival))
	}
}
