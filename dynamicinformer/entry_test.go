package dynamicinformer

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func startFactory(t *testing.T, f *Factory) context.CancelFunc {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	must(t, f.Start(ctx))
	return cancel
}

// TestStartAgain verifies that after the context of a Start has ended, the next Start returns an error if
// callers hold informers. A new request returns a running informer, the same for all functions.
func TestStartAgain(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{})
		old, heldHandle := mustInformer(t, f, widgets), acquire(t, f, gadgets)
		cancel := startFactory(t, f)
		expectState(t, "started", old, status.Synced)
		cancel()
		expectState(t, "ended", old, status.Stopped)

		err := f.Start(t.Context())
		if !errors.Is(err, ErrStopped) || !strings.Contains(err.Error(),
			"gadgets.v1.example.com, widgets.v1.example.com cannot be started again") {
			t.Errorf("the second Start() = %v, want ErrStopped with the names of the types", err)
		}
		heldHandle.Release()
		next := mustInformer(t, f, widgets)
		if next == old || acquire(t, f, widgets).Informer() != next {
			t.Error("ForResource and Acquire did not return the same new informer")
		}
		startFactory(t, f)
		expectState(t, "requested again", next, status.Synced)
	})
}

// TestSubscriptionRenewsStoppedInformer verifies that a subscriber is notified when the context of Start
// ends, and receives everything again after the next Start.
func TestSubscriptionRenewsStoppedInformer(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		var events []string
		s, err := f.Subscribe(Selection{Group: "example.com", Version: "v1", Resource: "widgets"}, Subscriber{
			OnStarted: func(status.Incarnation) { events = append(events, "started") },
			OnSynced:  func(status.Incarnation) { events = append(events, "synced") },
			OnGone: func(_ status.Incarnation, reason status.Reason) {
				events = append(events, "gone "+string(reason))
			},
			OnError: func(_ schema.GroupVersionResource, err error) { events = append(events, err.Error()) },
		})
		must(t, err)
		cancel := startFactory(t, f)
		synctest.Wait()
		cancel()
		cancel = startFactory(t, f) // whether or not the subscriber has been notified of the stop
		synctest.Wait()
		if diff := cmp.Diff([]string{"started", "synced", "gone Stopped", "started", "synced"},
			events); diff != "" {
			t.Errorf("the subscriber received (-want +got):\n%s", diff)
		}
		if types := s.Types(); len(types) != 1 || types[0].Status.State != status.Synced {
			t.Errorf("Types() = %+v, want one synced type", types)
		}
		events = nil
		cancel()
		must(t, f.Shutdown(t.Context()))
		if slices.ContainsFunc(events, func(event string) bool { return event != "gone Stopped" }) {
			t.Errorf("after the stop, the subscriber received %q, want only gone events", events)
		}
	})
}

// callbackIndex is an IndexSet that calls onNames in Names.
type callbackIndex struct {
	indexNames
	onNames func()
}

func (x callbackIndex) Names() []string {
	x.onNames()
	return x.indexNames.Names()
}

// newEndingInformer returns a factory and a handle of a running informer with one index. While another caller
// requests the informer, the context of Start ends and the informer stops.
func newEndingInformer(t *testing.T, server *apitest.Server, index string) (*Factory, *Handle) {
	t.Helper()
	onNames := func() {}
	f := newVirtualFactory(t, server,
		Options{Defaults: ResourceOptions{Indexes: callbackIndex{"x", func() { onNames() }}}})
	held := acquire(t, f, widgets, ResourceOptions{Indexes: indexNames(index)})
	cancel := startFactory(t, f)
	expectState(t, "started", held.Informer(), status.Synced)
	onNames = func() {
		f.mu.Lock()
		claimed := held.entry.handles > 1
		f.mu.Unlock()
		if claimed {
			cancel()
			<-held.Informer().Stopped()
		}
	}
	return f, held
}

// TestStopDuringRequest verifies that if an informer stops during the request, the caller gets another one.
func TestStopDuringRequest(t *testing.T) {
	for name, request := range map[string]func(*Factory) (*Informer, error){
		"ForResource": func(f *Factory) (*Informer, error) { return f.ForResource(widgets) },
		"Acquire": func(f *Factory) (*Informer, error) {
			h, err := f.Acquire(widgets)
			if err != nil {
				return nil, err
			}
			return h.Informer(), nil
		},
	} {
		onFakeClock(t, func(t *testing.T, server *apitest.Server) {
			f, held := newEndingInformer(t, server, "other")
			i, err := request(f)
			if err != nil {
				t.Fatalf("requesting an informer with %s: %v", name, err)
			}
			expectState(t, name+": the first informer", held.Informer(), status.Stopped)
			held.Release()
			startFactory(t, f)
			expectState(t, name+": the returned informer", i, status.Synced)
			if i.GetIndexer().GetIndexers()["x"] == nil {
				t.Errorf("%s: the informer does not have the index", name)
			}
		})
	}
}

// TestStopDuringSubscribe verifies that an informer that stops before its indexes or handler are added is
// replaced by another one.
func TestStopDuringSubscribe(t *testing.T) {
	for _, index := range []string{"other", "x"} { // the requested index is missing, or exists
		onFakeClock(t, func(t *testing.T, server *apitest.Server) {
			f, held := newEndingInformer(t, server, index)
			var events []string
			_, err := f.Subscribe(Selection{Group: "example.com", Version: "v1", Resource: "widgets"},
				Subscriber{
					OnStarted: func(status.Incarnation) { events = append(events, "started") },
					OnSynced:  func(status.Incarnation) { events = append(events, "synced") },
					OnError: func(_ schema.GroupVersionResource,
						err error) {
						events = append(events, err.Error())
					},
				})
			must(t, err)
			expectState(t, "the first informer", held.Informer(), status.Stopped)
			held.Release()
			startFactory(t, f)
			synctest.Wait()
			if diff := cmp.Diff([]string{"started", "synced"}, events); diff != "" {
				t.Errorf("with the index %s, the subscriber received (-want +got):\n%s", index, diff)
			}
		})
	}
}

// TestNamespacesOutliveAStart verifies that informers of two Starts share the list of namespaces, and that
// the list continues after the context of either Start has ended.
func TestNamespacesOutliveAStart(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		createNamespaces(t, server, "team-a")
		forbid(server, widgetsPath, gadgetsPath)
		f := newVirtualFactory(t, server,
			Options{Defaults: ResourceOptions{Namespaces: MatchingNamespaces([]string{"team-*"}, nil)}})
		stays := mustInformer(t, f, widgets)
		received := record(t, stays)
		startFactory(t, f)
		synctest.Wait()
		ends := mustInformer(t, f, gadgets)
		cancel := startFactory(t, f)
		expectState(t, "of the second Start", ends, status.Synced)
		cancel()
		expectState(t, "after its end", ends, status.Stopped)
		createNamespaces(t, server, "team-b")
		server.Create(t, widgets, widget("team-b", "x"))
		expectEvents(t, "a namespace is created", received, "add team-b/x")
	})
	// The order of the informers does not matter.
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		createNamespaces(t, server, "team-a")
		forbid(server, gadgetsPath)
		f := newVirtualFactory(t, server,
			Options{Defaults: ResourceOptions{Namespaces: MatchingNamespaces([]string{"team-*"}, nil)}})
		stays := mustInformer(t, f, widgets)
		received := record(t, stays)
		startFactory(t, f)
		expectState(t, "of the first Start", stays, status.Synced)
		ends := mustInformer(t, f, gadgets)
		cancel := startFactory(t, f)
		expectState(t, "of the second Start", ends, status.Synced)
		forbid(server, widgetsPath)
		server.CloseClientConnections()
		time.Sleep(time.Minute)
		cancel()
		expectState(t, "after its end", ends, status.Stopped)
		createNamespaces(t, server, "team-b")
		server.Create(t, widgets, widget("team-b", "x"))
		expectEvents(t, "a namespace is created", received, "add team-b/x")
	})
	// An informer of namespaces that a user requests is separate, even with equal options, and stops with its
	// Start.
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		createNamespaces(t, server, "team-a")
		forbid(server, widgetsPath)
		f := newVirtualFactory(t, server, Options{Resources: map[schema.GroupVersionResource]ResourceOptions{
			widgets: {Namespaces: MatchingNamespaces([]string{"team-*"}, nil)},
		}})
		acquire(t, f, namespacesGVR, ResourceOptions{Storage: Storage{Mode: StorageMetadata}})
		cancel := startFactory(t, f)
		synctest.Wait()
		received := record(t, mustInformer(t, f, widgets))
		startFactory(t, f)
		synctest.Wait()
		cancel()
		synctest.Wait()
		createNamespaces(t, server, "team-b")
		server.Create(t, widgets, widget("team-b", "x"))
		expectEvents(t, "a namespace is created", received, "add team-b/x")
	})
}

// TestRequiredCounts verifies that a type is required if any handle requires it, in whatever order they are
// acquired. A type that Options require is required before its first request.
func TestRequiredCounts(t *testing.T) {
	required := ResourceOptions{Required: new(true)}
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		types := &scriptedSource{}
		f := newVirtualFactory(t, server, Options{Types: types})
		types.listener.SetComplete()
		start(t, f)
		acquire(t, f, widgets)
		h := acquire(t, f, widgets, required)
		synctest.Wait()
		if c := f.Condition(status.ConditionReady); c.Status != metav1.ConditionFalse ||
			c.Reason != status.ReasonNotInstalled {
			t.Errorf("Ready is %+v, want False with reason NotInstalled", c)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := f.WaitForSync(ctx, widgets); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("WaitForSync() with an absent required type = %v, want DeadlineExceeded", err)
		}
		waited := make(chan error)
		go func() { // ended by the release
			err := f.WaitForSync(context.Background(), widgets)
			waited <- err
		}()
		synctest.Wait()
		h.Release()
		if err := <-waited; err == nil {
			t.Error("WaitForSync() for an absent type succeeded, want an error")
		}
		if c := f.Condition(status.ConditionReady); c.Status != metav1.ConditionTrue {
			t.Errorf("after the release, Ready is %+v, want True", c)
		}
	})
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server,
			Options{Resources: map[schema.GroupVersionResource]ResourceOptions{widgets: required}})
		start(t, f)
		const text = "widgets.v1.example.com: Pending: the type is required and has no informer"
		if c := f.Condition(status.ConditionReady); c.Status != metav1.ConditionFalse || c.Message != text {
			t.Errorf("before the first request, Ready is %+v, want False", c)
		}
		if err := f.WaitForSync(t.Context()); err == nil || err.Error() != "not synced: "+text {
			t.Errorf("before the first request, WaitForSync() = %v, want an error with %q", err, text)
		}
		mustInformer(t, f, widgets)
		start(t, f)
		if err := f.WaitForSync(t.Context()); err != nil {
			t.Error(err)
		}
		if c := f.Condition(status.ConditionReady); c.Status != metav1.ConditionTrue {
			t.Errorf("Ready is %+v, want True", c)
		}
	})
}

// TestForResourceAddsIndexes verifies that the indexes of Defaults exist even if Acquire created the informer
// with others.
func TestForResourceAddsIndexes(t *testing.T) {
	f := newFactory(t, newServer(t), Options{Defaults: ResourceOptions{Indexes: indexNames("usual")}})
	h := acquire(t, f, widgets, ResourceOptions{Indexes: indexNames("special")})
	i := mustInformer(t, f, widgets)
	if h.Informer() != i {
		t.Error("a request with other indexes returned another informer")
	}
	for _, name := range []string{"usual", "special"} {
		if i.GetIndexer().GetIndexers()[name] == nil {
			t.Errorf("the index %s is missing", name)
		}
	}
	other := newFactory(t, newServer(t),
		Options{Defaults: ResourceOptions{Indexes: indexNames("usual,taken")}})
	acquire(t, other, widgets, ResourceOptions{Indexes: indexNames("taken")})
	if _, err := other.ForResource(widgets); err == nil || !strings.Contains(err.Error(), "taken") {
		t.Errorf("ForResource() with a conflicting index = %v, want an error", err)
	}
}

// TestSelectorsThatMatchNothing verifies that a cache whose selectors match nothing is empty and synced
// without a request, and that it has its own key.
func TestSelectorsThatMatchNothing(t *testing.T) {
	none, err := metav1.LabelSelectorAsSelector(nil)
	must(t, err)
	for name, options := range map[string]ResourceOptions{
		"labels":     {LabelSelector: none},
		"fields":     {FieldSelector: fields.Nothing()},
		"namespaces": {LabelSelector: labels.Nothing(), Namespaces: InNamespaces("a", "b")},
		"patterns":   {LabelSelector: labels.Nothing(), Namespaces: MatchingNamespaces([]string{"a*"}, nil)},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("a", "x"))
				f := newVirtualFactory(t, server, Options{})
				h := acquire(t, f, widgets, options)
				e := record(t, h.Informer())
				start(t, f)
				expectState(t, "started", h.Informer(), status.Synced)
				expectEvents(t, "started", e)
				if n := count(server, "list ") + count(server, "watch"); n > 0 || !h.Informer().HasSynced() ||
					len(keysOf(h.Informer())) > 0 {
					t.Errorf("%d requests, keys %v, synced: %v; want 0, none, true", n, keysOf(h.Informer()),
						h.Informer().HasSynced())
				}
				if acquire(t, f, widgets,
					ResourceOptions{Namespaces: options.Namespaces}).Informer() == h.Informer() {
					t.Error("the informer that selects nothing is shared with the one of all objects")
				}
				if options := h.Informer().Status().Options; !strings.Contains(options, "no objects") {
					t.Errorf("Options = %q, want \"no objects\"", options)
				}
			})
		})
	}
}
