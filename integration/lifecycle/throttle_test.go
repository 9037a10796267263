package lifecycle_test

import (
	"net/http"
	"sync/atomic"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestThrottled answers everything with 429, before the first list and after it: the status tells, and nothing is
// lost.
func TestThrottled(t *testing.T) {
	var l link
	s := newScene(t, dynamicinformer.Options{Config: l.through(harness.Config(t))}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	lift := l.faults.Throttle(1)
	i, j := s.follow(resourceOf(widgets))
	s.await(i, status.Syncing, status.ReasonThrottled)
	j.expectNothing()
	lift()
	j.expect("add a")
	s.awaitSynced(i, 1)
	s.awaitWatched(widgets, j)

	lift = l.faults.Throttle(1)
	l.faults.EndWatches()
	s.await(i, status.Synced, status.ReasonThrottled)
	s.create(widgets, "b")
	s.expectKeys(i, "default/a", "default/watched")
	lift()
	// A list may bring a once more.
	j.awaitLive("b")
	if status := s.await(i, status.Synced, status.ReasonNone); status.Generation != 1 {
		t.Errorf("the status is %+v, want generation 1", status)
	}
	j.expectNever("delete a", "add a")
}

// TestCredentialsRefused has the server refuse a synced factory's credentials for a while.
func TestCredentialsRefused(t *testing.T) {
	var l link
	var refused atomic.Bool
	config := l.through(harness.Config(t))
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			if refused.Load() {
				r = r.Clone(r.Context())
				r.Header.Set("Authorization", "Bearer nobody")
			}
			return next.RoundTrip(r)
		})
	})
	s := newScene(t, dynamicinformer.Options{Config: config}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)
	s.awaitWatched(widgets, j)

	refused.Store(true)
	l.faults.EndWatches()
	// It is a condition of the factory: the type keeps its state.
	current := s.await(i, status.Synced, status.ReasonUnauthorized)
	if !apierrors.IsUnauthorized(current.LastError) {
		t.Errorf("LastError is %v, want a 401", current.LastError)
	}
	s.awaitCondition(status.ConditionAuthenticated, metav1.ConditionFalse)
	s.create(widgets, "b")
	s.expectKeys(i, "default/a", "default/watched")
	refused.Store(false)
	// A list may bring a once more.
	j.awaitLive("b")
	if status := s.awaitSynced(i, 1); status.Generation != 1 {
		t.Errorf("the status is %+v, want generation 1", status)
	}
	j.expectNever("delete a", "add a")
	s.awaitCondition(status.ConditionAuthenticated, metav1.ConditionTrue)
}
