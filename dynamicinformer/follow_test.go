package dynamicinformer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
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

var widgets = schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "widgets"}

// scriptedSource is a typesource.Source that a test controls.
type scriptedSource struct {
	mu       sync.Mutex
	listener typesource.Listener
	stops    int
}

func (s *scriptedSource) Subscribe(listener typesource.Listener) (stop func()) {
	s.listener = listener
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.stops++
	}
}

func (s *scriptedSource) set(change func(*typesource.Type)) {
	t := typesource.Type{
		GroupResource: widgets.GroupResource(), Kind: "Widget", Namespaced: true, UID: "1",
		Versions: []string{"v1"}, Established: true,
	}
	if change != nil {
		change(&t)
	}
	s.listener.SetType(t)
}

// scriptedFactory is a factory with one informer and a scripted type source.
type scriptedFactory struct {
	*testing.T
	ctx      context.Context
	types    *scriptedSource
	server   *apitest.Server
	factory  *Factory
	informer *Informer
	events   chan string
}

func newScriptedFactory(t *testing.T, options Options) *scriptedFactory {
	t.Helper()
	// t.Context ends before the cleanup.
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	server := newServer(t)
	client := server.Client(t)
	var err error
	s := &scriptedFactory{T: t, ctx: ctx, types: &scriptedSource{}, server: server,
		events: make(chan string, 100)}
	options.Client, options.Types = client, s.types
	if s.factory, err = New(options); err != nil {
		t.Fatal(err)
	}
	if s.informer, err = s.factory.ForResource(widgets); err != nil {
		t.Fatal(err)
	}
	name := func(obj any) string { return obj.(*unstructured.Unstructured).GetName() }
	_, err = s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { s.events <- "add " + name(obj) },
		UpdateFunc: func(_, obj any) { s.events <- "update " + name(obj) },
		DeleteFunc: func(obj any) {
			if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				s.events <- "gone " + gone.Key
				return
			}
			s.events <- "delete " + name(obj)
		},
	})
	must(t, err)
	must(t, s.factory.Start(ctx))
	t.Cleanup(func() {
		if err := s.factory.Shutdown(ctx); err != nil {
			t.Error(err)
		}
		cancel()
	})
	return s
}

func (s *scriptedFactory) create(name string) {
	s.Helper()
	s.server.Create(s, widgets, widget("default", name))
}

// expect waits for events, and fails the test if other events arrive before them.
func (s *scriptedFactory) expect(events ...string) {
	s.Helper()
	for _, want := range events {
		select {
		case got := <-s.events:
			if got != want {
				s.Fatalf("got the event %q, want %q", got, want)
			}
		case <-s.ctx.Done():
			s.Fatalf("the event %q did not come; %+v", want, s.informer.Status())
		}
	}
}

// expectAnyOrder waits for as many events, and compares them in any order.
func (s *scriptedFactory) expectAnyOrder(events ...string) {
	s.Helper()
	var got []string
	for range events {
		select {
		case e := <-s.events:
			got = append(got, e)
		case <-s.ctx.Done():
			s.Fatalf("got the events %q, want %q; %+v", got, events, s.informer.Status())
		}
	}
	slices.Sort(got)
	slices.Sort(events)
	if diff := cmp.Diff(events, got); diff != "" {
		s.Fatalf("events (-want +got):\n%s", diff)
	}
}

func (s *scriptedFactory) await(state status.State, reason status.Reason) status.Status {
	s.Helper()
	for {
		status, changed := s.informer.StatusChange()
		if status.State == state && status.Reason == reason {
			return status
		}
		select {
		case <-changed:
		case <-s.ctx.Done():
			s.Fatalf("the status is %+v, want %s (%s)", status, state, reason)
		}
	}
}

// TestFollowUnknownGroup verifies that after its group failed in discovery, a type is neither absent nor
// settled. Its status has the error of discovery.
func TestFollowUnknownGroup(t *testing.T) {
	s := newScriptedFactory(t, Options{})
	s.create("a")
	failed := errors.New("the service is down")
	s.types.listener.SetUnknown(map[schema.GroupVersion]error{widgets.GroupVersion(): failed})
	s.types.listener.SetComplete()
	current := s.await(status.Pending, status.ReasonGroupUnknown)
	if current.Settled() || !errors.Is(current.LastError, failed) ||
		!strings.Contains(current.Message, "example.com/v1: the service is down") {
		t.Errorf("Status() = %+v, want the error of discovery, not settled", current)
	}
	s.types.listener.SetUnknown(nil)
	s.await(status.Pending, status.ReasonNotInstalled)
	s.types.listener.SetUnknown(map[schema.GroupVersion]error{widgets.GroupVersion(): failed})
	s.await(status.Pending, status.ReasonGroupUnknown)
	s.types.set(nil)
	s.await(status.Synced, status.ReasonNone)
}

// TestEndsOfIncarnations verifies that only the deletion of a CRD, or another UID or scope, delivers
// deletions. Otherwise the objects may exist: the cache keeps them and is not synced, and handlers receive
// the difference when the type is served again.
func TestEndsOfIncarnations(t *testing.T) {
	set := func(change func(*typesource.Type)) func(*scriptedFactory) {
		return func(s *scriptedFactory) { s.types.set(change) }
	}
	remove := func(deleted bool) func(*scriptedFactory) {
		return func(s *scriptedFactory) { s.types.listener.RemoveType(widgets.GroupResource(), deleted) }
	}
	unserve := func(t *typesource.Type) { t.Versions = []string{"v2"} }
	clusterScoped := func(t *typesource.Type) { t.Namespaced = false }
	withoutCRD := func(change func(*typesource.Type)) func(*typesource.Type) {
		return func(t *typesource.Type) {
			t.UID = ""
			if change != nil {
				change(t)
			}
		}
	}
	kind := func(t *typesource.Type) { t.Kind = "Gadget" }
	tests := map[string]struct {
		// initial changes the type at the start. end ends the incarnation. next happens afterwards.
		initial   func(*typesource.Type)
		end, next func(*scriptedFactory)
		// reason is why the informer waits; none if the next incarnation begins immediately.
		reason status.Reason
		// deleted is true if end deletes the objects, deletedNext if next does.
		deleted, deletedNext bool
	}{
		"another UID":                {end: set(func(t *typesource.Type) { t.UID = "2" }), deleted: true},
		"another scope":              {end: set(clusterScoped), deleted: true, reason: status.ReasonScopeConflict},
		"the CRD is deleted":         {end: remove(true), deleted: true, reason: status.ReasonNotInstalled},
		"another kind":               {end: set(kind)},
		"another kind without a CRD": {initial: withoutCRD(nil), end: set(withoutCRD(kind))},
		"the version is not served":  {end: set(unserve), reason: status.ReasonVersionNotServed},
		"no version is served": {end: set(func(t *typesource.Type) { t.Versions = nil }),
			reason: status.ReasonVersionNotServed},
		"no verb list": {reason: status.ReasonVerbUnsupported,
			end: set(func(t *typesource.Type) { t.Versions, t.Unlistable = nil, t.Versions })},
		"no verb watch": {end: set(func(t *typesource.Type) { t.Versions, t.ListOnly = nil, t.Versions })},
		"the APIService is removed": {initial: withoutCRD(nil), end: remove(false),
			reason: status.ReasonNotInstalled},
		"removed while CRDs are unknown": {end: remove(false), reason: status.ReasonNotInstalled},
		"another scope without a CRD": {initial: withoutCRD(nil), end: set(withoutCRD(clusterScoped)),
			reason: status.ReasonScopeConflict},
		"not served, then deleted": {end: set(unserve), next: remove(true), deletedNext: true,
			reason: status.ReasonVersionNotServed},
		"not served, then another UID": {end: set(unserve), deletedNext: true,
			next:   set(func(t *typesource.Type) { unserve(t); t.UID = "2" }),
			reason: status.ReasonVersionNotServed},
		"not served, then removed": {end: set(unserve), next: remove(false),
			reason: status.ReasonVersionNotServed},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			s := newScriptedFactory(t, Options{Defaults: ResourceOptions{Namespaces: InNamespaces("default")}})
			s.create("a")
			s.create("b")
			s.types.set(test.initial)
			s.types.listener.SetComplete()
			s.expectAnyOrder("add a", "add b")
			s.await(status.Synced, status.ReasonNone)
			test.end(s)
			deletions := []string{"gone default/a", "gone default/b"}
			if test.deleted {
				s.expectAnyOrder(deletions...)
			}
			if test.reason != status.ReasonNone {
				s.checkEnded(s.await(status.Pending, test.reason), !test.deleted)
			}
			if test.next != nil {
				test.next(s)
			}
			if test.deletedNext {
				s.expectAnyOrder(deletions...)
			}
			deleted := test.deleted || test.deletedNext
			if test.reason == status.ReasonNone {
				s.expectAnyOrder(map[bool][]string{true: {"add a", "add b"},
					false: {"update a", "update b"}}[deleted]...)
				waitFor(t, s.informer, func(s status.Status) bool {
					return s.State == status.Synced &&
						s.Incarnation == 2
				})
				return
			}
			s.server.Delete(s, widgets, "default", "a")
			s.create("c")
			s.types.set(test.initial)
			if deleted {
				s.expectAnyOrder("add b", "add c")
			} else {
				s.expectAnyOrder("gone default/a", "update b", "add c")
			}
			if now := s.await(status.Synced, status.ReasonNone); now.Incarnation != 2 || now.Suspended ||
				now.Stale {
				t.Errorf("the status is %+v, want incarnation 2", now)
			}
		})
	}
}

// checkEnded verifies the state after the end of an incarnation, with or without deletions.
func (s *scriptedFactory) checkEnded(now status.Status, suspended bool) {
	s.Helper()
	objects := 0
	if suspended {
		objects = 2
	}
	if s.informer.HasSynced() || len(s.informer.GetStore().ListKeys()) != objects ||
		now.Suspended != suspended || now.Stale != suspended || s.informer.WaitForSync(s.ctx) == nil {
		s.Errorf("HasSynced() = %t with %d objects, status %+v; want false, %d objects, suspended %t",
			s.informer.HasSynced(), len(s.informer.GetStore().ListKeys()), now, objects, suspended)
	}
}

func TestFollowSlowHandlerSeesIncarnationsInOrder(t *testing.T) {
	s := newScriptedFactory(t, Options{})
	s.create("a")
	s.types.set(nil)
	s.expect("add a")
	entered, release := make(chan struct{}), make(chan struct{})
	var slow []string
	var once sync.Once
	done := make(chan struct{})
	record := func(event string) {
		once.Do(func() { close(entered); <-release })
		if slow = append(slow, event); len(slow) == 5 {
			close(done)
		}
	}
	_, err := s.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { record("add") },
		DeleteFunc: func(any) { record("gone") },
	})
	must(t, err)
	<-entered
	for _, uid := range []types.UID{"2", "3"} {
		s.types.set(func(t *typesource.Type) { t.UID = uid })
		s.expect("gone default/a", "add a")
	}
	close(release)
	<-done
	if diff := cmp.Diff([]string{"add", "gone", "add", "gone", "add"}, slow); diff != "" {
		t.Errorf("the slow handler's events (-want +got):\n%s", diff)
	}
}
