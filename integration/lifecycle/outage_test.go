package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/integration/harness"
)

// TestServerKilled: that a server does not answer says nothing about what it holds.
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
	s.await(i, dynamicinformer.StateDegraded, dynamicinformer.ReasonUnreachable)
	j.expectNothing()
	if diff := cmp.Diff([]string{"default/a"}, i.GetStore().ListKeys()); diff != "" || !i.HasSynced() {
		t.Errorf("the cache is synced: %v, and its keys (-want +got):\n%s", i.HasSynced(), diff)
	}

	harness.RestartAPIServer(t)
	s.create(widgets, "b")
	// The restarted server cannot go on where the watch was, so a list comes first and may bring a once more.
	j.await("b", func(_ []string, live map[string]types.UID) bool { return live["b"] != "" })
	if got := j.uid("a"); got != before {
		t.Errorf("a has the UID %q for handlers, want %q as before", got, before)
	}
	if status := s.awaitSynced(i, 1); status.Generation != 1 || status.LastError != nil {
		t.Errorf("the status is %+v, want generation 1 and no error", status)
	}
	j.expectNever("delete a", "add a")
}

func TestServerDownAtStart(t *testing.T) {
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	harness.KillAPIServer(t)
	s := newScene(t, dynamicinformer.Options{}, nil)
	i, j := s.follow(resourceOf(widgets))
	bare := s.withoutTypes()
	unaware, k := bare.follow(resourceOf(widgets))
	s.await(i, dynamicinformer.StatePending, dynamicinformer.ReasonTypesUnknown)
	bare.await(unaware, dynamicinformer.StateDegraded, dynamicinformer.ReasonUnreachable)

	harness.RestartAPIServer(t)
	s.create(widgets, "a")
	j.expect("add a")
	k.expect("add a")
	s.awaitSynced(i, 1)
	bare.awaitSynced(unaware, 1)
}

// TestShutdownWhileDown ends informers that were synced, and some that never were.
func TestShutdownWhileDown(t *testing.T) {
	s := newScene(t, dynamicinformer.Options{}, nil)
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s.create(widgets, "a")
	i, j := s.follow(resourceOf(widgets))
	j.expect("add a")
	s.awaitSynced(i, 1)

	harness.KillAPIServer(t)
	s.await(i, dynamicinformer.StateDegraded, dynamicinformer.ReasonUnreachable)
	late := newScene(t, dynamicinformer.Options{}, nil)
	waiting, _ := late.follow(resourceOf(widgets))
	late.await(waiting, dynamicinformer.StatePending, dynamicinformer.ReasonTypesUnknown)
	bare := s.withoutTypes()
	failing, _ := bare.follow(resourceOf(widgets))
	bare.await(failing, dynamicinformer.StateDegraded, dynamicinformer.ReasonUnreachable)

	// It takes milliseconds. What goes on trying takes up to a minute.
	ctx, cancel := context.WithTimeout(s.ctx, 10*time.Second)
	defer cancel()
	for _, each := range []*scene{s, late, bare} {
		if err := each.factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	}
	s.endTracker(ctx)
	late.endTracker(ctx)
	j.expectNothing()
	if status := i.Status(); status.State != dynamicinformer.StateStopped {
		t.Errorf("the status is %+v, want it stopped", status)
	}
}
