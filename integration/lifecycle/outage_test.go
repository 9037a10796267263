package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/integration/harness"
	"github.com/crdcache/crdcache/internal/informer/conformance"
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
	// It is a condition of the factory: the type keeps its state.
	s.await(i, status.Synced, status.ReasonUnreachable)
	s.awaitCondition(status.ConditionReachable, metav1.ConditionFalse)
	j.expectNothing()
	if diff := cmp.Diff([]string{"default/a"}, i.GetStore().ListKeys()); diff != "" || !i.HasSynced() {
		t.Errorf("the cache is synced: %v, and its keys (-want +got):\n%s", i.HasSynced(), diff)
	}

	harness.RestartAPIServer(t)
	s.create(widgets, "b")
	// The restarted server cannot go on where the watch was, so a list comes first and may bring a once more.
	j.awaitLive("b")
	if got := j.uid("a"); got != before {
		t.Errorf("a has the UID %q for handlers, want %q as before", got, before)
	}
	if status := s.awaitSynced(i, 1); status.Generation != 1 || status.LastError != nil {
		t.Errorf("the status is %+v, want generation 1 and no error", status)
	}
	s.awaitCondition(status.ConditionReachable, metav1.ConditionTrue)
	j.expectNever("delete a", "add a")
}

func TestServerDownAtStart(t *testing.T) {
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	harness.KillAPIServer(t)
	s := newScene(t, dynamicinformer.Options{}, nil)
	i, j := s.follow(resourceOf(widgets))
	bare := s.withoutTypes(harness.Config(t))
	unaware, k := bare.follow(resourceOf(widgets))
	s.await(i, status.Pending, status.ReasonTypesUnknown)
	bare.await(unaware, status.Syncing, status.ReasonUnreachable)

	harness.RestartAPIServer(t)
	s.create(widgets, "a")
	j.expect("add a")
	k.expect("add a")
	s.awaitSynced(i, 1)
	bare.awaitSynced(unaware, 1)
}

// TestServerKilledDuringSync breaks the first list off in its middle: nobody is told of a part of it.
func TestServerKilledDuringSync(t *testing.T) {
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	s := newScene(t, dynamicinformer.Options{}, nil)
	s.create(widgets, "a")
	s.create(widgets, "b")
	type run struct {
		scene    *scene
		half     *halfway
		informer *dynamicinformer.Informer
		journal  *journal
	}
	var runs []run
	for _, watchList := range []bool{false, true} {
		config, half := harness.Config(t), newHalfway()
		config.Wrap(half.wrap)
		if !watchList {
			faults := conformance.NewFaults(nil)
			faults.RefuseWatchList()
			config.Wrap(faults.Wrap)
		}
		r := run{scene: s.withoutTypes(config), half: half}
		r.informer, r.journal = r.scene.follow(resourceOf(widgets))
		runs = append(runs, r)
	}
	for _, r := range runs {
		r.half.await(s)
	}
	harness.KillAPIServer(t)
	for _, r := range runs {
		r.half.breakOff()
		r.scene.await(r.informer, status.Syncing, status.ReasonUnreachable)
		r.journal.expectNothing()
		r.scene.expectEmpty(r.informer)
	}
	harness.RestartAPIServer(t)
	s.create(widgets, "c")
	for _, r := range runs {
		r.journal.expect("add a", "add b", "add c")
		r.scene.awaitSynced(r.informer, 1)
		r.journal.expectNothing()
	}
}

// TestShutdownWhileDown ends informers that were synced, and some that never were, while no server is there.
func TestShutdownWhileDown(t *testing.T) {
	const rounds = 3
	widgets := harness.NewCRD(harness.Group(t), "Widget")
	harness.InstallCRDs(t, widgets)
	var synced, unaware, bare []*scene
	var informers []*dynamicinformer.Informer
	var journals []*journal
	for range rounds {
		s := newScene(t, dynamicinformer.Options{}, nil)
		if len(synced) == 0 {
			s.create(widgets, "a")
		}
		i, j := s.follow(resourceOf(widgets))
		j.expect("add a")
		s.awaitSynced(i, 1)
		synced, informers, journals = append(synced, s), append(informers, i), append(journals, j)
	}
	harness.KillAPIServer(t)
	for k, s := range synced {
		s.await(informers[k], status.Synced, status.ReasonUnreachable)
		late := newScene(t, dynamicinformer.Options{}, nil)
		waiting, _ := late.follow(resourceOf(widgets))
		late.await(waiting, status.Pending, status.ReasonTypesUnknown)
		failing := s.withoutTypes(harness.Config(t))
		i, _ := failing.follow(resourceOf(widgets))
		failing.await(i, status.Syncing, status.ReasonUnreachable)
		unaware, bare = append(unaware, late), append(bare, failing)
	}
	expectQuickShutdowns(t, "synced", synced)
	expectQuickShutdowns(t, "waiting to learn which types there are", unaware)
	expectQuickShutdowns(t, "syncing", bare)
	for k, i := range informers {
		journals[k].expectNothing()
		if current := i.Status(); current.State != status.Stopped {
			t.Errorf("the status is %+v, want it stopped", current)
		}
	}
}

// expectQuickShutdowns shuts factories down one by one and wants the quickest to be done within a second: a busy
// machine may hold one up for a moment, what goes on trying takes up to a minute each time.
func expectQuickShutdowns(t *testing.T, what string, scenes []*scene) {
	t.Helper()
	quickest := time.Hour
	for _, s := range scenes {
		began := time.Now()
		ctx, cancel := context.WithTimeout(s.ctx, patience)
		err := s.factory.Shutdown(ctx)
		s.endTracker(ctx)
		cancel()
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
		quickest = min(quickest, time.Since(began))
	}
	if quickest > time.Second {
		t.Errorf("%s: the quickest shutdown took %v", what, quickest)
	}
}
