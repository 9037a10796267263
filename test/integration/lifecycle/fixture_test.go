package lifecycle_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
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
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// patience is the timeout of every wait.
const patience = 90 * time.Second

// fixture is a factory that follows types, with a client of an admin.
type fixture struct {
	*testing.T
	ctx     context.Context
	admin   dynamic.Interface
	factory *dynamicinformer.Factory
	tracker *discovery.Tracker
}

// newFixture starts a factory and its tracker, by default with the admin's configuration. They end with the
// test.
func newFixture(t *testing.T, options dynamicinformer.Options, trackerConfig *rest.Config) *fixture {
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
	s := &fixture{T: t, ctx: ctx, admin: admin, tracker: harness.RunTracker(t, trackerConfig)}
	options.Types = s.tracker.Types()
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

// startInformer starts the informer of a type with a journal.
func (s *fixture) startInformer(gvr schema.GroupVersionResource) (*dynamicinformer.Informer, *journal) {
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

func (s *fixture) awaitState(i *dynamicinformer.Informer, state status.State,
	reason status.Reason) status.Status {
	s.Helper()
	var current status.Status
	harness.Eventually(s, func(context.Context) error {
		if current = i.Status(); current.State != state || current.Reason != reason {
			return fmt.Errorf("the status is %+v, want %s (%s)", current, state, reason)
		}
		return nil
	})
	return current
}

// awaitSynced waits until an incarnation, or a later one, is synced.
func (s *fixture) awaitSynced(i *dynamicinformer.Informer, incarnation int) status.Status {
	s.Helper()
	var current status.Status
	harness.Eventually(s, func(context.Context) error {
		if current = i.Status(); current.State != status.Synced || current.Incarnation < incarnation {
			return fmt.Errorf("the status is %+v, want incarnation %d synced", current, incarnation)
		}
		return nil
	})
	return current
}

// awaitWatched creates an object and waits for its event from a watch. Without watch-lists, a type is synced
// before its watch starts.
func (s *fixture) awaitWatched(definition *unstructured.Unstructured, j *journal) {
	s.Helper()
	s.create(definition, "watched")
	j.expect("add watched")
}

func (s *fixture) expectKeys(i *dynamicinformer.Informer, want ...string) {
	s.Helper()
	got := i.GetStore().ListKeys()
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		s.Errorf("keys in the cache (-want +got):\n%s", diff)
	}
}

// cuttableConnection is a connection that can be cut. The zero value is usable.
type cuttableConnection struct {
	once   sync.Once
	faults *conformance.Faults
}

// wrapConfig makes config send its requests through the connection, and returns config.
func (l *cuttableConnection) wrapConfig(config *rest.Config) *rest.Config {
	l.once.Do(func() { l.faults = conformance.NewFaults(nil) })
	config.Wrap(l.faults.Wrap)
	return config
}

// cut ends all watches so that they cannot be resumed, and blocks all requests.
func (l *cuttableConnection) cut() (release func()) {
	release = l.faults.Hold()
	l.faults.ExpireWatches()
	return release
}
