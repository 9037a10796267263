package factory_test

import (
	"errors"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// expectMissing waits until all types are settled and checks that this one alone is not synced, and why.
func (s *scene) expectMissing(gvr schema.GroupVersionResource, state status.State, reason status.Reason) status.Status {
	s.Helper()
	_, err := s.factory.WaitForSync(s.ctx)
	var missing *dynamicinformer.NotSyncedError
	if !errors.As(err, &missing) {
		s.Fatalf("WaitForSync: %v, want a NotSyncedError", err)
	}
	if missing.Cause != nil {
		s.Errorf("WaitForSync gave up: %v", missing.Cause)
	}
	if len(missing.Missing) != 1 || missing.Missing[0].GVR != gvr {
		s.Fatalf("missing are %+v, want %s alone", missing.Missing, gvr)
	}
	status := missing.Missing[0]
	if status.State != state || status.Reason != reason {
		s.Errorf("the status is %+v, want %s (%s)", status, state, reason)
	}
	return status
}

func TestForbiddenSettlesAlone(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{Config: harness.UnprivilegedConfig(t)})
	harness.GrantRead(t, s.widgets)
	s.put("a", 1)
	secrets := schema.GroupVersionResource{Version: "v1", Resource: "secrets"}
	s.follow(secrets)
	i, j := s.follow(s.widgets)

	status := s.expectMissing(secrets, status.Degraded, status.ReasonForbidden)
	if !apierrors.IsForbidden(status.LastError) {
		t.Errorf("LastError is %v, want forbidden", status.LastError)
	}
	j.expect("add a")
	s.put("b", 1)
	j.expect("add b")
	s.expectMirror(i)
}

func TestUnauthorizedSettles(t *testing.T) {
	config := harness.Config(t)
	config.BearerToken = "nobody's"
	config.CertData, config.KeyData = nil, nil
	s := newScene(t, dynamicinformer.Options{Config: config})
	s.follow(s.widgets)
	s.expectMissing(s.widgets, status.Syncing, status.ReasonUnauthorized)
}

func TestAbsentTypeSettlesAlone(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{})
	s.put("a", 1)
	gadgets := schema.GroupVersionResource{Group: s.widgets.Group, Version: "v1", Resource: "gadgets"}
	absent, _ := s.follow(gadgets)
	_, j := s.follow(s.widgets)

	s.expectMissing(gadgets, status.Degraded, status.ReasonNotFound)
	j.expect("add a")

	harness.InstallCRDs(t, harness.NewCRD(gadgets.Group, "Gadget"))
	s.await(absent, status.Synced, status.ReasonNone)
}

func TestVerbUnsupportedSettles(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{})
	reviews := schema.GroupVersionResource{Group: "authorization.k8s.io", Version: "v1", Resource: "selfsubjectaccessreviews"}
	s.follow(reviews)
	s.expectMissing(reviews, status.Degraded, status.ReasonVerbUnsupported)
}
