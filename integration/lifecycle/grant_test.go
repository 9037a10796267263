package lifecycle_test

import (
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestRevoked revokes a right after a type is synced. The cached objects stay, and the informer recovers when
// the right is granted again.
func TestRevoked(t *testing.T) {
	t.Parallel()
	var l cuttableConnection
	s := newScene(t, dynamicinformer.Options{Config: l.through(harness.UnprivilegedConfig(t))}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	revoke := harness.GrantRead(t, resourceOf(widgets))
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)

	revoke()
	l.faults.EndWatches() // a running watch does not need the right
	expectDenied(t, s.await(i, status.Degraded, status.ReasonForbidden), "watch", "list")
	if status := i.Status(); !status.Stale || !i.HasSynced() {
		t.Errorf("the status is %+v, synced %v; want it stale, and synced as before", status, i.HasSynced())
	}
	s.expectKeys(i, "default/a")
	j.expectNothing()

	s.create(widgets, "b")
	harness.GrantRead(t, resourceOf(widgets))
	// A list may repeat a.
	j.awaitLive("b")
	if status := s.awaitSynced(i, 1); status.Incarnation != 1 || status.Stale {
		t.Errorf("the status is %+v, want incarnation 1 and nothing stale", status)
	}
	j.expectNever("delete a", "add a")
}

func expectDenied(t *testing.T, current status.Status, verbs ...string) {
	t.Helper()
	if current.State != status.Degraded || !apierrors.IsForbidden(current.LastError) {
		t.Errorf("the status is %+v, want it degraded by a 403", current)
	}
	for _, verb := range verbs {
		if strings.Contains(current.Message, verb) {
			return
		}
	}
	t.Errorf("the message is %q, want it to name the denied verb, one of %q", current.Message, verbs)
}
