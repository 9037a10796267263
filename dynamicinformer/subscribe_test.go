package dynamicinformer

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

var wholeGroup = Selection{Group: "example.com", Resource: "*"}

func TestSubscribeChangesVersion(t *testing.T) {
	th := newSubscriberFixture(t)
	th.create(widgets, "a")
	th.types.set("widgets", func(t *typesource.Type) { t.Versions = []string{"v1", "v2"} })
	th.subscribe(wholeGroup)
	th.expect("widgets v1: started 1 1", "widgets v1: initial a", "widgets v1: synced 1")
	th.types.set("widgets", func(t *typesource.Type) { t.Versions = []string{"v2", "v1"} }) // sends no event
	th.types.set("widgets", func(t *typesource.Type) { t.Versions = []string{"v2"} })
	th.expect("widgets v1: gone 1 VersionChanged")
	th.expect("widgets v2: started 1 1", "widgets v2: update a false", "widgets v2: synced 1")
}

// TestSubscribeSuspended verifies that a subscriber receives nothing while no version is served, and then the
// difference, in the same or another version; or the deletion of all objects when the CRD is deleted.
func TestSubscribeSuspended(t *testing.T) {
	serve := func(versions ...string) func(*subscriberFixture) {
		return func(th *subscriberFixture) {
			th.types.set("widgets", func(t *typesource.Type) { t.Versions = versions })
		}
	}
	again := []string{"lost a", "update b false", "initial c"}
	for name, test := range map[string]struct {
		next   func(*subscriberFixture)
		reason string   // the reason for the end of the incarnation
		want   []string // the events after that
	}{
		"the same version": {serve("v1"), "VersionChanged", append([]string{"started 2 1", "synced 2"}, again...)},
		"another version":  {serve("v2"), "VersionChanged", append([]string{"started 1 1", "synced 1"}, again...)},
		"another UID": {func(th *subscriberFixture) {
			th.types.set("widgets", func(t *typesource.Type) { t.UID = "2" })
		}, "Replaced", []string{"lost a", "lost b", "started 2 2", "initial b", "initial c", "synced 2"}},
		"deleted": {func(th *subscriberFixture) { th.types.remove("widgets") }, "NotInstalled",
			[]string{"lost a", "lost b"}},
	} {
		t.Run(name, func(t *testing.T) {
			th := newSubscriberFixture(t)
			th.create(widgets, "a", "b")
			serve("v1")(th)
			s := th.subscribe(wholeGroup)
			for range 4 {
				th.next()
			}
			serve()(th)
			waitFor(t, mustInformer(t, th.factory, widgets),
				func(s status.Status) bool { return s.Suspended })
			if types := s.Types(); len(types) != 1 ||
				types[0].Status.Reason != status.ReasonVersionNotServed {
				t.Errorf("Types() = %+v, want widgets, VersionNotServed", types)
			}
			th.server.Delete(t, widgets, "web", "a")
			th.create(widgets, "c")
			test.next(th)
			got := []string{}
			for range len(test.want) + 1 {
				_, event, _ := strings.Cut(th.next(got...), ": ")
				got = append(got, event)
			}
			want := append([]string{"gone 1 " + test.reason}, test.want...)
			slices.Sort(want)
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

// TestSubscribeDeselectedType verifies that an existing type that is no longer selected is gone without
// deletions.
func TestSubscribeDeselectedType(t *testing.T) {
	th := newSubscriberFixture(t, "widgets", "gadgets")
	th.create(widgets, "a")
	selection := wholeGroup
	selection.Match = func(t typesource.Type) bool { return !t.Terminating }
	s := th.subscribe(selection)
	start := []string{"widgets v1: started 1 1", "widgets v1: initial a", "widgets v1: synced 1"}
	th.expect(append(start, "gadgets v1: started 1 1", "gadgets v1: synced 1")...)
	th.types.set("widgets", func(t *typesource.Type) { t.Terminating = true })
	th.expect("widgets v1: gone 1 NotSelected")
	if types := s.Types(); len(types) != 1 || types[0].Status.GVR != gadgets {
		t.Errorf("Types() = %+v, want gadgets", types)
	}
	th.types.set("widgets", nil)
	th.expect(start...)
}

// TestSlowSubscriberDelaysNoOther verifies that a slow subscriber delays neither caches nor other
// subscribers, and its depth grows.
func TestSlowSubscriberDelaysNoOther(t *testing.T) {
	th := newSubscriberFixture(t, "widgets", "gadgets")
	th.create(widgets, "a")
	th.create(gadgets, "c")
	entered, release := make(chan struct{}, 1), make(chan struct{})
	unblock := sync.OnceFunc(func() { close(release) })
	defer unblock()
	var mu sync.Mutex
	calls, maxCalls := 0, 0
	slow, err := th.factory.Subscribe(wholeGroup, Subscriber{
		OnAdd: func(schema.GroupVersionResource, *unstructured.Unstructured, bool) {
			mu.Lock()
			calls++
			maxCalls = max(maxCalls, calls)
			mu.Unlock()
			select {
			case entered <- struct{}{}:
			default:
			}
			<-release
			mu.Lock()
			calls--
			mu.Unlock()
		},
	})
	must(t, err)
	<-entered
	th.subscribe(wholeGroup)
	th.expect("widgets v1: started 1 1", "widgets v1: initial a", "widgets v1: synced 1",
		"gadgets v1: started 1 1", "gadgets v1: initial c", "gadgets v1: synced 1")
	th.create(widgets, "d")
	th.expect("widgets v1: add d")
	if err := slow.reconcileQueue.Drain(longContext(t)); err != nil { // afterwards it follows both types
		t.Fatal(err)
	}
	if got := slow.Depth(); got < 3 {
		t.Errorf("Depth() of the slow subscriber = %d, want at least 3", got)
	}
	unblock()
	for _, f := range slow.Types() {
		must(t, mustInformer(t, th.factory, f.Status.GVR).core.Flush(longContext(t)))
	}
	mu.Lock()
	defer mu.Unlock()
	if maxCalls != 1 || slow.Depth() != 0 {
		t.Errorf("%d concurrent calls, Depth() = %d; want 1, 0", maxCalls, slow.Depth())
	}
}

func TestSubscriptionClose(t *testing.T) {
	th := newSubscriberFixture(t, "widgets")
	th.create(widgets, "a", "b")
	before := th.types.countListeners()
	var s *Subscription
	ready, called := make(chan struct{}), make(chan struct{})
	var calls []string
	s, err := th.factory.Subscribe(wholeGroup, Subscriber{
		OnAdd: func(_ schema.GroupVersionResource, obj *unstructured.Unstructured, _ bool) {
			<-ready
			calls = append(calls, obj.GetName())
			s.Close() // from a handler
			s.Close()
			close(called)
		},
		OnGone: func(status.Incarnation, status.Reason) { calls = append(calls, "gone") },
	})
	must(t, err)
	close(ready)
	<-called
	<-s.Done()
	if len(calls) != 1 || len(s.Types()) != 0 || s.Depth() != 0 {
		t.Errorf("after Close: calls %q, types %v, depth %d; want 1 call", calls, s.Types(), s.Depth())
	}
	if got := th.types.countListeners(); got != before {
		t.Errorf("%d listeners of the source of types, want %d", got, before)
	}
	if got := len(mustInformer(t, th.factory, widgets).core.Registrations()); got != 0 {
		t.Errorf("%d handlers remain, want 0", got)
	}
}

func TestSubscribeAndShutdown(t *testing.T) {
	th := newSubscriberFixture(t, "widgets")
	s := th.subscribe(wholeGroup)
	th.expect("widgets v1: started 1 1", "widgets v1: synced 1")
	must(t, th.factory.Shutdown(longContext(t)))
	<-s.Done()
	if _, err := th.factory.Subscribe(wholeGroup, Subscriber{}); !errors.Is(err, ErrShutdown) {
		t.Errorf("Subscribe() after Shutdown = %v, want ErrShutdown", err)
	}
	if len(th.events) != 0 {
		t.Errorf("after Shutdown, the subscriber received %q", <-th.events)
	}
}

// TestSubscribeWithoutSource verifies that a single type with its full name needs no source of types.
func TestSubscribeWithoutSource(t *testing.T) {
	th := newSubscriberFixture(t)
	th.factory = newFactory(t, th.server, Options{})
	th.start()
	th.create(widgets, "a")
	th.subscribe(Selection{Group: "example.com", Version: "v1", Resource: "widgets"})
	th.expect("widgets v1: started 1 ", "widgets v1: initial a", "widgets v1: synced 1")
	for _, selection := range []Selection{wholeGroup, {Group: "example.com", Resource: "widgets"}} {
		if _, err := th.factory.Subscribe(selection, Subscriber{}); !errors.Is(err, errNoTypes) {
			t.Errorf("Subscribe(%+v) = %v, want errNoTypes", selection, err)
		}
	}
}

func TestSubscribeErrors(t *testing.T) {
	th := newSubscriberFixture(t)
	for _, tt := range []struct {
		selection Selection
		want      []string
	}{
		{Selection{}, []string{"Resource is empty"}},
		{Selection{Group: "[", Version: "a[", Resource: "[]"}, []string{"Group", "Version", "Resource"}},
	} {
		_, err := th.factory.Subscribe(tt.selection, Subscriber{})
		if err == nil {
			t.Errorf("Subscribe(%+v) succeeded, want an error", tt.selection)
			continue
		}
		for _, want := range tt.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("Subscribe(%+v) = %v, want %q in the error", tt.selection, err, want)
			}
		}
	}
}

// TestSubscribeReleases verifies that types that are deleted, and types of a closed subscription, are no
// longer watched.
func TestSubscribeReleases(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		types := newRegistry("widgets", "gadgets")
		f := newVirtualFactory(t, server, Options{Types: types, Linger: -1})
		start(t, f)
		s, err := f.Subscribe(wholeGroup, Subscriber{})
		must(t, err)
		other, err := f.Subscribe(Selection{Group: "example.com", Resource: "gadgets"}, Subscriber{})
		must(t, err)
		expectStates := func(step string, want ...string) {
			t.Helper()
			synctest.Wait()
			var got []string
			for _, status := range f.Status() {
				got = append(got, fmt.Sprintf("%s %s", status.GVR.Resource, status.State))
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: states (-want +got):\n%s", step, diff)
			}
		}
		expectStates("at first", "gadgets Synced", "widgets Synced")
		types.remove("widgets")
		expectStates("widgets removed", "gadgets Synced")
		types.set("widgets", nil)
		expectStates("widgets added again", "gadgets Synced", "widgets Synced")
		s.Close()
		expectStates("one subscription closed", "gadgets Synced")
		other.Close()
		expectStates("both closed")
	})
}

// TestSubscribePassesOptions verifies that the informers have the options of the subscription, and OnError
// receives the error of a type.
func TestSubscribePassesOptions(t *testing.T) {
	th := newSubscriberFixture(t, "widgets")
	th.create(widgets, "a")
	otherNamespace := ResourceOptions{Namespaces: InNamespaces("elsewhere")}
	if _, err := th.factory.Subscribe(wholeGroup, th.subscriber(), otherNamespace); err != nil {
		t.Fatal(err)
	}
	th.expect("widgets v1: started 1 1", "widgets v1: synced 1")
	invalid := ResourceOptions{Namespaces: InNamespaces()}
	if _, err := th.factory.Subscribe(wholeGroup, th.subscriber(), invalid); err != nil {
		t.Fatal(err)
	}
	if e := <-th.events; !strings.HasPrefix(e, "widgets v1: error ") {
		t.Errorf("with invalid options, the first event is %q, want an error", e)
	}
}

// TestSubscribeResuming verifies that restored objects are delivered after their confirmation, with the
// incarnation number of the run that restored them.
func TestSubscribeResuming(t *testing.T) {
	th, backend := newSubscriberFixture(t, "widgets"), newMemoryBackend()
	th.create(widgets, "a")
	persistWidgets(t, th.server, backend, ResourceOptions{})
	th.server.AddFaults(fault(widgetsPath, "list", http.StatusServiceUnavailable))
	th.factory = newFactory(t, th.server, Options{Types: th.types, Persistence: backend})
	th.start()
	s := th.subscribe(wholeGroup)
	th.expect("widgets v1: started 1 1")
	i := mustInformer(t, th.factory, widgets)
	waitFor(t, i, func(s status.Status) bool { return s.State == status.Resuming && s.Resuming })
	th.server.Repair()
	i.Retry()
	th.expect("widgets v1: initial a", "widgets v1: synced 1")
	if !i.Persistence().Resumed || len(s.Types()) != 1 {
		t.Errorf("Types() = %+v and Persistence() = %+v, want one type, resumed", s.Types(), i.Persistence())
	}
}
