package lifecycle_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
)

func TestDeletedAndRecreated(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	s.create(widgets, "b")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a", "add b")
	first := s.awaitSynced(i, 1)

	s.uninstall(widgets)
	j.expect("delete a", "delete b")
	s.await(i, status.Pending, status.ReasonNotInstalled)
	s.expectEmpty(i)

	harness.InstallCRDs(t, widgets)
	s.create(widgets, "c")
	j.expect("add c")
	if second := s.awaitSynced(i, 2); second.Generation != 2 || second.UID == first.UID || second.UID == "" {
		t.Errorf("the second generation has the status %+v, the first had %+v", second, first)
	}
	j.expectNothing()
}

// TestTerminating: a definition whose objects cannot go yet still has them, and its informer goes on.
func TestTerminating(t *testing.T) {
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
	if status := s.await(i, status.Pending, status.ReasonNotInstalled); status.Generation != 1 {
		t.Errorf("the status is %+v, want generation 1", status)
	}
	s.expectEmpty(i)
	j.expectNothing()
}

// TestRecreatedAtOnce creates the definition again as soon as its name is free.
func TestRecreatedAtOnce(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	before, first := j.uid("a"), s.awaitSynced(i, 1)

	s.uninstall(widgets)
	s.reinstall(widgets)
	s.create(widgets, "a")
	second := s.awaitSynced(i, 2)
	j.await("the new object", func(_ []string, live map[string]types.UID) bool {
		return live["a"] != "" && live["a"] != before
	})
	if second.UID == first.UID {
		t.Errorf("both generations have the UID %s", first.UID)
	}
}

// TestRecreatedUnseen hides from tracker and informer that a definition was away: all they can see is that
// it is another one.
func TestRecreatedUnseen(t *testing.T) {
	var l link
	s := newScene(t, dynamicinformer.Options{Config: l.through(harness.Config(t))}, l.through(harness.Config(t)))
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
	if second.Generation != 2 || second.UID == first.UID {
		t.Errorf("the status is %+v, before it was %+v; want generation 2 and another UID", second, first)
	}
}

// TestRecreatedUnseenWithAnotherScope is TestRecreatedUnseen with a definition of another scope.
func TestRecreatedUnseenWithAnotherScope(t *testing.T) {
	var l link
	s := newScene(t, dynamicinformer.Options{Config: l.through(harness.Config(t))}, l.through(harness.Config(t)))
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)
	before := j.uid("a")
	s.awaitWatched(widgets, j)

	release := l.cut()
	s.uninstall(widgets)
	clustered := withScope(widgets, "Cluster")
	s.reinstall(clustered)
	s.create(clustered, "a")
	release()
	if status := s.awaitSynced(i, 2); status.Generation != 2 {
		t.Errorf("the status is %+v, want generation 2", status)
	}
	j.await("the new object", func(_ []string, live map[string]types.UID) bool {
		return live["a"] != "" && live["a"] != before
	})
	s.expectKeys(i, "a")
}

func TestRecreatedWithAnotherScope(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{Defaults: dynamicinformer.ResourceOptions{Namespaces: dynamicinformer.InNamespaces("default")}}, nil)
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
	if _, err := s.factory.WaitForSync(s.ctx); !errors.As(err, &missing) || missing.Cause != nil {
		t.Errorf("WaitForSync returns %v, want it not to wait for what cannot be", err)
	}

	s.uninstall(widgets)
	s.reinstall(widgets)
	s.create(widgets, "b")
	j.expect("add b")
	s.awaitSynced(i, 2)
	j.expectNothing()
}
