package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/integration/harness"
)

// patience is how long a test waits for what must happen: far more than it takes.
const patience = 90 * time.Second

// scene is a factory that follows types, and an admin who changes them.
type scene struct {
	*testing.T
	ctx     context.Context
	admin   dynamic.Interface
	factory *dynamicinformer.Factory
	// endTracker ends the tracker and waits for that within a context.
	endTracker func(context.Context)
}

// newScene makes a factory and runs its tracker, with the admin's configuration where none is given. The
// factory is shut down when the test ends.
func newScene(t *testing.T, options dynamicinformer.Options, trackerConfig *rest.Config) *scene {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience) // t.Context ends before the cleanups
	t.Cleanup(cancel)
	if options.Config == nil {
		options.Config = harness.Config(t)
	}
	if trackerConfig == nil {
		trackerConfig = harness.Config(t)
	}
	admin, err := dynamic.NewForConfig(harness.Config(t))
	if err != nil {
		t.Fatal(err)
	}
	s := &scene{T: t, ctx: ctx, admin: admin}
	options.Types = s.runTracker(trackerConfig)
	if s.factory, err = dynamicinformer.New(options); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *scene) runTracker(config *rest.Config) typesource.Source {
	s.Helper()
	tracker, err := discovery.NewTracker(config, discovery.TrackerOptions{})
	if err != nil {
		s.Fatal(err)
	}
	ctx, cancel := context.WithCancel(s.ctx)
	done := make(chan error, 1)
	go func() { done <- tracker.Run(ctx) }() // ended by cancel
	ended := false
	s.endTracker = func(ctx context.Context) {
		s.Helper()
		if ended {
			return
		}
		ended = true
		cancel()
		select {
		case err := <-done:
			if err != nil {
				s.Error(err)
			}
		case <-ctx.Done():
			s.Error("the tracker has not ended")
		}
	}
	s.Cleanup(func() { s.endTracker(s.ctx) })
	return tracker.Types()
}

// withoutTypes is a scene whose factory takes every type to exist.
func (s *scene) withoutTypes(config *rest.Config) *scene {
	s.Helper()
	factory, err := dynamicinformer.New(dynamicinformer.Options{Config: config})
	if err != nil {
		s.Fatal(err)
	}
	s.Cleanup(func() {
		if err := factory.Shutdown(s.ctx); err != nil {
			s.Error(err)
		}
	})
	return &scene{T: s.T, ctx: s.ctx, admin: s.admin, factory: factory, endTracker: func(context.Context) {}}
}

// follow asks for the informer of a type, records what its handlers see, and starts it.
func (s *scene) follow(gvr schema.GroupVersionResource) (*dynamicinformer.Informer, *journal) {
	s.Helper()
	i, err := s.factory.ForResource(gvr)
	if err != nil {
		s.Fatal(err)
	}
	j := newJournal(s)
	if _, err := i.AddEventHandler(j); err != nil {
		s.Fatal(err)
	}
	if err := s.factory.Start(s.ctx); err != nil {
		s.Fatal(err)
	}
	return i, j
}

// await waits for a state and a reason.
func (s *scene) await(i *dynamicinformer.Informer, state status.State, reason status.Reason) status.Status {
	s.Helper()
	var status status.Status
	harness.Eventually(s, func(context.Context) error {
		if status = i.Status(); status.State != state || status.Reason != reason {
			return fmt.Errorf("the status is %+v, want %s (%s)", status, state, reason)
		}
		return nil
	})
	return status
}

// awaitSynced waits until a generation is synced, or a later one.
func (s *scene) awaitSynced(i *dynamicinformer.Informer, generation int) status.Status {
	s.Helper()
	var current status.Status
	harness.Eventually(s, func(context.Context) error {
		if current = i.Status(); current.State != status.Synced || current.Generation < generation {
			return fmt.Errorf("the status is %+v, want generation %d synced", current, generation)
		}
		return nil
	})
	return current
}

// awaitWatched creates an object and waits for it. It comes with a watch, because the list has been: without watch-list
// a type is synced some time before its watch is open.
func (s *scene) awaitWatched(definition *unstructured.Unstructured, j *journal) {
	s.Helper()
	s.create(definition, "watched")
	j.expect("add watched")
}

// expectKeys checks what the cache holds.
func (s *scene) expectKeys(i *dynamicinformer.Informer, want ...string) {
	s.Helper()
	got := i.GetStore().ListKeys()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("keys in the cache (-want +got):\n%s", diff)
	}
}

// expectEmpty checks the cache of a type that is not there.
func (s *scene) expectEmpty(i *dynamicinformer.Informer) {
	s.Helper()
	if keys := i.GetStore().ListKeys(); len(keys) != 0 || i.HasSynced() {
		s.Errorf("the cache of a type that is not there holds %v, synced: %v", keys, i.HasSynced())
	}
}
