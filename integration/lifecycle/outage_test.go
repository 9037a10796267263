package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestServerKilled checks that the cache stays while the server is down.
func TestServerKilled(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)
	before := j.uid("a")

	harness.KillAPIServer(t)
	// It is a condition of the factory: the state of the type stays.
	s.await(i, status.Synced, status.ReasonUnreachable)
	s.awaitCondition(status.ConditionReachable, metav1.ConditionFalse)
	j.expectNothing()
	if diff := cmp.Diff([]string{"default/a"}, i.GetStore().ListKeys()); diff != "" || !i.HasSynced() {
		t.Errorf("the cache is synced: %v, and its keys (-want +got):\n%s", i.HasSynced(), diff)
	}

	harness.RestartAPIServer(t)
	s.create(widgets, "b")
	// The restarted server cannot resume the watch, so a list comes first and may repeat a.
	j.awaitLive("b")
	if got := j.uid("a"); got != before {
		t.Errorf("a has the UID %q for handlers, want %q as before", got, before)
	}
	if status := s.awaitSynced(i, 1); status.Incarnation != 1 || status.LastError != nil {
		t.Errorf("the status is %+v, want incarnation 1 and no error", status)
	}
	s.awaitCondition(status.ConditionReachable, metav1.ConditionTrue)
	j.expectNever("delete a", "add a")
}

// TestEtcdRestarted checks that the cache stays while the API server has no etcd.
func TestEtcdRestarted(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)
	harness.RestartEtcd(t)
	s.touch(widgets, "a")
	s.create(widgets, "b")
	j.awaitLive("b")
	j.await("the update", func(events []string,
		_ map[string]types.UID) bool {
		return slices.Contains(events, "update a")
	})
	s.await(i, status.Synced, status.ReasonNone)
	s.expectKeys(i, "default/a", "default/b")
	j.expectNever("delete a", "add a")
}

// awaitCondition waits until a condition of the factory has a status.
func (s *fixture) awaitCondition(condition status.ConditionType, want metav1.ConditionStatus) {
	s.Helper()
	harness.Eventually(s, func(context.Context) error {
		if c := s.factory.Condition(condition); c.Status != want {
			return fmt.Errorf("the condition is %+v, want it %s", c, want)
		}
		return nil
	})
}
