package dynamicinformer

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// registry is a typesource.Source with several listeners.
type registry struct {
	mu        sync.Mutex
	types     map[schema.GroupResource]typesource.Type
	listeners map[int]typesource.Listener
	next      int
}

func newRegistry(resources ...string) *registry {
	r := &registry{types: map[schema.GroupResource]typesource.Type{},
		listeners: map[int]typesource.Listener{}}
	for _, resource := range resources {
		r.set(resource, nil)
	}
	return r
}

func (r *registry) Subscribe(listener typesource.Listener) (stop func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, t := range r.types {
		listener.SetType(t)
	}
	listener.SetComplete()
	id := r.next
	r.next++
	r.listeners[id] = listener
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.listeners, id)
	}
}

// set creates or changes a type of the group example.com. change is optional.
func (r *registry) set(resource string, change func(*typesource.Type)) {
	t := typesource.Type{
		GroupResource: schema.GroupResource{Group: "example.com",
			Resource: resource}, Kind: "Thing", Namespaced: true,
		UID: "1", Versions: []string{"v1"}, Established: true,
	}
	if change != nil {
		change(&t)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.types[t.GroupResource] = t
	for _, l := range r.listeners {
		l.SetType(t)
	}
}

func (r *registry) remove(resource string) {
	gr := schema.GroupResource{Group: "example.com", Resource: resource}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.types, gr)
	for _, l := range r.listeners {
		l.RemoveType(gr, true)
	}
}

func (r *registry) countListeners() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.listeners)
}

// subscriberFixture is a factory with a type source and a recording subscriber.
type subscriberFixture struct {
	*testing.T
	server  *apitest.Server
	types   *registry
	factory *Factory
	events  chan string
}

func newSubscriberFixture(t *testing.T, resources ...string) *subscriberFixture {
	t.Helper()
	var served []apitest.Type
	for _, version := range []string{"v1", "v2"} {
		for resource, kind := range map[string]string{"widgets": "Widget", "gadgets": "Gadget"} {
			served = append(served, apitest.Type{
				GVR:  schema.GroupVersionResource{Group: "example.com", Version: version, Resource: resource},
				Kind: kind, Namespaced: true,
			})
		}
	}
	th := &subscriberFixture{T: t, server: apitest.New(t, served...), types: newRegistry(resources...),
		events: make(chan string, 100)}
	th.factory = newFactory(t, th.server, Options{Types: th.types})
	th.start()
	return th
}

func (th *subscriberFixture) start() {
	th.Helper()
	if err := th.factory.Start(context.Background()); err != nil {
		th.Fatal(err)
	}
}

// subscriber records all calls.
func (th *subscriberFixture) subscriber() Subscriber {
	record := func(gvr schema.GroupVersionResource, format string, args ...any) {
		th.events <- gvr.Resource + " " + gvr.Version + ": " + fmt.Sprintf(format, args...)
	}
	return Subscriber{
		OnStarted: func(g status.Incarnation) { record(g.GVR, "started %d %s", g.Number, g.UID) },
		OnSynced:  func(g status.Incarnation) { record(g.GVR, "synced %d", g.Number) },
		OnGone: func(g status.Incarnation, reason status.Reason) {
			record(g.GVR, "gone %d %s", g.Number, reason)
		},
		OnAdd: func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, initial bool) {
			if initial {
				record(gvr, "initial %s", obj.GetName())
			} else {
				record(gvr, "add %s", obj.GetName())
			}
		},
		OnUpdate: func(gvr schema.GroupVersionResource, before, after *unstructured.Unstructured) {
			record(gvr, "update %s %v", after.GetName(),
				before.GetResourceVersion() != after.GetResourceVersion())
		},
		OnDelete: func(gvr schema.GroupVersionResource, obj *unstructured.Unstructured, final bool) {
			if final {
				record(gvr, "delete %s", obj.GetName())
			} else {
				record(gvr, "lost %s", obj.GetName())
			}
		},
		OnError: func(gvr schema.GroupVersionResource, err error) { record(gvr, "error %v", err) },
	}
}

func (th *subscriberFixture) subscribe(selection Selection) *Subscription {
	th.Helper()
	s, err := th.factory.Subscribe(selection, th.subscriber())
	if err != nil {
		th.Fatal(err)
	}
	return s
}

// next waits for the event after others.
func (th *subscriberFixture) next(after ...string) string {
	th.Helper()
	select {
	case e := <-th.events:
		return e
	case <-longContext(th.T).Done():
		th.Fatalf("no event after %q", after)
		return ""
	}
}

// expect waits for the events, and compares those of each type separately, because types have no
// common order.
func (th *subscriberFixture) expect(events ...string) {
	th.Helper()
	var got []string
	for range events {
		got = append(got, th.next(got...))
	}
	byType := func(all []string) map[string][]string {
		types := map[string][]string{}
		for _, e := range all {
			resource, _, _ := strings.Cut(e, ":")
			types[resource] = append(types[resource], e)
		}
		return types
	}
	if diff := cmp.Diff(byType(events), byType(got)); diff != "" {
		th.Fatalf("events (-want +got):\n%s", diff)
	}
}

func (th *subscriberFixture) create(gvr schema.GroupVersionResource, names ...string) {
	th.Helper()
	object := map[schema.GroupVersionResource]func(namespace,
		name string) *unstructured.Unstructured{widgets: widget, gadgets: gadget}[gvr]
	for _, name := range names {
		th.server.Create(th.T, gvr, object("web", name))
	}
}
