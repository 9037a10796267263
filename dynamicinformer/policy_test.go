package dynamicinformer

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var widgetsV2 = schema.GroupVersionResource{Group: "example.com", Version: "v2", Resource: "widgets"}

// testVersions runs a test with a type in two versions, from which policy chooses. A handler records its
// events with the objects' versions.
func testVersions(t *testing.T, policy VersionPolicy, test func(s *versionFixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &versionFixture{T: t, types: &scriptedSource{}}
		s.server = apitest.NewInMemory(t,
			apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true},
			apitest.Type{GVR: widgetsV2, Kind: "Widget", Namespaced: true})
		f := newVirtualFactory(t, s.server, Options{Types: s.types,
			Defaults: ResourceOptions{Versions: policy, Resync: new(24 * time.Hour)}})
		s.i = mustInformer(t, f, widgets)
		record := func(event string) func(any) {
			return func(obj any) { s.events = append(s.events, event+" "+nameAndVersion(obj)) }
		}
		if _, err := s.i.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: record("add"),
			UpdateFunc: func(old, obj any) {
				s.events = append(s.events, "update "+nameAndVersion(old)+" "+
					nameAndVersion(obj))
			},
			DeleteFunc: record("delete"),
		}); err != nil {
			t.Fatal(err)
		}
		start(t, f)
		test(s)
	})
}

type versionFixture struct {
	*testing.T
	types  *scriptedSource
	server *apitest.Server
	i      *Informer
	events []string
}

func nameAndVersion(obj any) string {
	gone := ""
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj, gone = lost.Obj, " unseen"
	}
	u := obj.(*unstructured.Unstructured)
	return u.GetName() + " " + u.GroupVersionKind().Version + gone
}

// serve sets the served versions, the preferred one first.
func (s *versionFixture) serve(versions ...string) {
	s.types.set(func(t *typesource.Type) { t.Versions = versions })
}

func (s *versionFixture) expect(step string, state status.State, version string, events ...string) {
	s.Helper()
	synctest.Wait()
	slices.Sort(s.events)
	if diff := cmp.Diff(events, s.events); diff != "" {
		s.Errorf("%s: the events (-want +got):\n%s", step, diff)
	}
	s.events = nil
	if status := s.i.Status(); status.State != state || status.Version != version {
		s.Errorf("%s: the status is %+v, want %s of %s", step, status, state, version)
	}
}

// TestPreferredVersionTakesOver verifies that when the version in use is no longer served, the next one is
// listed. Objects of both versions are delivered as updates.
func TestPreferredVersionTakesOver(t *testing.T) {
	testVersions(t, PreferredVersion(), func(s *versionFixture) {
		s.server.Create(s.T, widgets, widget("web", "a"), widget("web", "b"))
		s.serve("v1")
		s.expect("v1 is served", status.Synced, "v1", "add a v1", "add b v1")
		s.serve("v2", "v1")
		s.expect("v2 is preferred", status.Synced, "v1")

		// The next version cannot be listed yet: the cache keeps its content.
		s.server.AddFaults(fault("/apis/example.com/v2/widgets", "", 404))
		s.server.Delete(s.T, widgets, "web", "b")
		synctest.Wait()
		s.events = nil
		s.serve("v2")
		s.expect("v2 alone is served, and cannot be listed", status.Syncing, "v2")
		if diff := cmp.Diff([]string{"web/a"}, keysOf(s.i)); diff != "" || !s.i.HasSynced() {
			s.Errorf("the keys (-want +got):\n%s; synced: %v", diff, s.i.HasSynced())
		}
		s.server.Create(s.T, widgets, widget("web", "c"))
		s.server.Repair()
		s.i.Retry()
		time.Sleep(10 * time.Millisecond)
		s.expect("v2 is listed", status.Synced, "v2", "add c v2", "update a v1 a v2")
		if status := s.i.Status(); status.Incarnation != 2 {
			s.Errorf("the status is %+v, want incarnation 2", status)
		}
		s.server.Create(s.T, widgets, widget("web", "d"))
		s.expect("v2 is watched", status.Synced, "v2", "add d v2")
	})
}

// TestVersionIsKeptWhileServed verifies that other versions, another order, and a type that is temporarily
// not established change nothing.
func TestVersionIsKeptWhileServed(t *testing.T) {
	testVersions(t, PreferredVersion(), func(s *versionFixture) {
		s.server.Create(s.T, widgets, widget("web", "a"))
		s.serve("v1", "v0")
		s.expect("v1 is served", status.Synced, "v1", "add a v1")
		s.serve("v2", "v1")
		s.types.set(func(t *typesource.Type) { t.Versions, t.Established = []string{"v1", "v2"}, false })
		s.types.set(func(t *typesource.Type) { t.Versions, t.UID = []string{"v2", "v1"}, "" })
		s.expect("v1 is still served", status.Synced, "v1")
		if status := s.i.Status(); status.Incarnation != 1 {
			s.Errorf("the status is %+v, want incarnation 1", status)
		}
	})
}

// TestUIDBecomesKnown verifies that a UID that was unknown because CRDs could not be read does not start
// another incarnation when it becomes known. Another UID does.
func TestUIDBecomesKnown(t *testing.T) {
	testVersions(t, PinnedVersion(), func(s *versionFixture) {
		s.server.Create(s.T, widgets, widget("web", "a"))
		uid := func(uid types.UID) { s.types.set(func(t *typesource.Type) { t.UID = uid }) }
		uid("")
		s.expect("the UID is not known", status.Synced, "v1", "add a v1")
		uid("1")
		s.expect("it becomes known", status.Synced, "v1")
		uid("2")
		s.expect("it is another", status.Synced, "v1", "add a v1", "delete a v1 unseen")
	})
}

// TestReplacedWhileSwitching verifies that a recreated CRD ends the incarnation, even if its version changes
// at the same time.
func TestReplacedWhileSwitching(t *testing.T) {
	testVersions(t, PreferredVersion(), func(s *versionFixture) {
		s.server.Create(s.T, widgets, widget("web", "a"))
		s.serve("v1")
		s.expect("v1 is served", status.Synced, "v1", "add a v1")
		s.types.set(func(t *typesource.Type) { t.Versions, t.UID = []string{"v2"}, "2" })
		s.expect("the type is replaced", status.Synced, "v2", "add a v2", "delete a v1 unseen")
	})
}

// events records the calls of a handler.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) record(event string, obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		event, obj = "gone", gone.Obj
	}
	o := obj.(*unstructured.Unstructured)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event+" "+o.GetNamespace()+"/"+o.GetName())
}

// take returns the events since the last call, sorted.
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.all
	e.all = nil
	slices.Sort(all)
	return all
}

func record(t *testing.T, i *Informer) *events {
	t.Helper()
	e := &events{}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { e.record("add", obj) },
		UpdateFunc: func(_, obj any) { e.record("update", obj) },
		DeleteFunc: func(obj any) { e.record("delete", obj) },
	})
	must(t, err)
	return e
}

func expectEvents(t *testing.T, step string, e *events, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, e.take()); diff != "" {
		t.Errorf("%s: the events (-want +got):\n%s", step, diff)
	}
}

func keysOf(i *Informer) []string {
	keys := i.GetStore().ListKeys()
	slices.Sort(keys)
	return keys
}

func inNamespace(ns string) string { return "/apis/example.com/v1/namespaces/" + ns + "/widgets" }
