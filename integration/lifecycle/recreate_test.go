package lifecycle_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestTerminating checks that an informer continues while finalizers delay the deletion of its definition.
func TestTerminating(t *testing.T) {
	t.Parallel()
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a", "example.com/hold")
	s.create(widgets, "b")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a", "add b")
	s.awaitSynced(i, 1)

	s.uninstall(widgets)
	j.expect("update a", "delete b")
	s.release(widgets, "a")
	j.expect("delete a")
	if status := s.await(i, status.Pending, status.ReasonNotInstalled); status.Incarnation != 1 {
		t.Errorf("the status is %+v, want incarnation 1", status)
	}
	s.expectEmpty(i)
	j.expectNothing()
}

// TestRecreatedUnseen hides the deletion of a definition from tracker and informer. They only see that its
// UID changed.
func TestRecreatedUnseen(t *testing.T) {
	t.Parallel()
	var l cuttableConnection
	s := newScene(t, dynamicinformer.Options{Config: l.through(harness.Config(t))},
		l.through(harness.Config(t)))
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	before, first := j.uid("a"), s.awaitSynced(i, 1)
	s.awaitWatched(widgets, j)

	release := l.cut()
	s.uninstall(widgets)
	s.reinstall(widgets)
	s.create(widgets, "a")
	j.expectNothing()
	release()
	second := s.awaitSynced(i, 2)
	j.await("the new object", func(_ []string, live map[string]types.UID) bool {
		return live["a"] != "" && live["a"] != before
	})
	if second.Incarnation != 2 || second.UID == first.UID {
		t.Errorf("the status is %+v, before it was %+v; want incarnation 2 and another UID", second, first)
	}
}

func TestRecreatedWithAnotherScope(t *testing.T) {
	t.Parallel()
	s := newScene(
		t, dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.
			InNamespaces("default")}}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")

	s.uninstall(widgets)
	s.reinstall(withScope(widgets, "Cluster"))
	j.expect("delete a")
	s.await(i, status.Pending, status.ReasonScopeConflict)
	s.expectEmpty(i)
	var missing *dynamicinformer.NotSyncedError
	if err := s.factory.WaitForSync(s.ctx); !errors.As(err, &missing) || missing.Cause != nil {
		t.Errorf("WaitForSync returns %v, want it not to wait for what cannot be", err)
	}

	s.uninstall(widgets)
	s.reinstall(widgets)
	s.create(widgets, "b")
	j.expect("add b")
	s.awaitSynced(i, 2)
	j.expectNothing()
}
