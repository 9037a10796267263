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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer/conformance"
	"github.com/crdcache/crdcache/test/integration/harness"
)

// patience is the timeout of every wait.
const patience = 5 * time.Minute

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
	l.once.Do(func() { l.faults = conformance.NewFaults() })
	config.Wrap(l.faults.Wrap)
	return config
}

// cut ends all watches so that they cannot be resumed, and blocks all requests.
func (l *cuttableConnection) cut() (release func()) {
	release = l.faults.Hold()
	l.faults.ExpireWatches()
	return release
}

// journal is an event handler that records and checks its events. An object must be added while it does not
// exist, and updated or deleted while it exists, with the same UID.
type journal struct {
	fixture *fixture

	mu struct {
		sync.Mutex
		events     []string
		live       map[string]types.UID
		versions   map[string]string // of the live objects
		violations []string
		changed    chan struct{}
	}
	read int
}

var _ cache.ResourceEventHandler = (*journal)(nil)

func newJournal(s *fixture) *journal {
	j := &journal{fixture: s}
	j.mu.live, j.mu.versions = map[string]types.UID{}, map[string]string{}
	j.mu.changed = make(chan struct{})
	s.Cleanup(func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for _, line := range j.mu.violations {
			s.Error(line)
		}
	})
	return j
}

func (j *journal) OnAdd(obj any, _ bool) { j.record("add", obj) }

func (j *journal) OnUpdate(_, obj any) { j.record("update", obj) }

// OnDelete implements cache.ResourceEventHandler. The deletion of a type and a missed deletion are recorded
// as deletions.
func (j *journal) OnDelete(obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	j.record("delete", obj)
}

// record stores an event, and a violation if it contradicts the earlier events.
func (j *journal) record(verb string, obj any) {
	o := obj.(*unstructured.Unstructured)
	event := verb + " " + o.GetName()
	j.mu.Lock()
	defer j.mu.Unlock()
	uid, live := j.mu.live[o.GetName()]
	if live != (verb != "add") || live && uid != o.GetUID() {
		j.mu.violations = append(j.mu.violations, fmt.Sprintf("%s (UID %s) after %q; the known UID is %q, exists: %v",
			event, o.GetUID(), j.mu.events, uid, live))
	}
	if j.mu.live[o.GetName()], j.mu.versions[o.GetName()] = o.GetUID(), o.GetResourceVersion(); verb == "delete" {
		delete(j.mu.live, o.GetName())
		delete(j.mu.versions, o.GetName())
	}
	j.mu.events = append(j.mu.events, event)
	close(j.mu.changed)
	j.mu.changed = make(chan struct{})
}

// uid returns the UID of an existing object.
func (j *journal) uid(name string) types.UID {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.mu.live[name]
}

// await waits until the events meet a condition.
func (j *journal) await(condition string, met func(events []string, live map[string]types.UID) bool) {
	j.fixture.Helper()
	for {
		j.mu.Lock()
		done, changed, events := met(j.mu.events, j.mu.live), j.mu.changed, slices.Clone(j.mu.events)
		j.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-j.fixture.ctx.Done():
			j.fixture.Fatalf("timed out waiting for %s; the events so far: %q", condition, events)
		}
	}
}

// awaitLive waits until an object exists, and ignores other events.
func (j *journal) awaitLive(name string) {
	j.fixture.Helper()
	j.await(name, func(_ []string, live map[string]types.UID) bool { return live[name] != "" })
}

// expect waits for events in any order, and fails the test if others arrive. Earlier calls have consumed
// earlier events.
func (j *journal) expect(want ...string) {
	j.fixture.Helper()
	var got []string
	j.await(fmt.Sprintf("%q", want), func(events []string, _ map[string]types.UID) bool {
		if len(events) < j.read+len(want) {
			return false
		}
		got = slices.Clone(events[j.read : j.read+len(want)])
		return true
	})
	j.read += len(want)
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		j.fixture.Fatalf("events (-want +got):\n%s", diff)
	}
}

// rest returns the events after the expected ones.
func (j *journal) rest() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	takeRest := slices.Clone(j.mu.events[j.read:])
	j.read = len(j.mu.events)
	return takeRest
}

// expectNothing checks that no event followed the expected ones.
func (j *journal) expectNothing() {
	j.fixture.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	if extra := j.mu.events[j.read:]; len(extra) != 0 {
		j.fixture.Errorf("unexpected events: %q", extra)
	}
}

// expectNever checks that no unwanted event followed the expected ones.
func (j *journal) expectNever(unwanted ...string) {
	j.fixture.Helper()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, event := range j.mu.events[j.read:] {
		if slices.Contains(unwanted, event) {
			j.fixture.Errorf("unexpected event: %q", event)
		}
	}
}
