package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestShutdownDrains verifies that handlers receive all queued events, however slow they are.
func TestShutdownDrains(t *testing.T) {
	const objects = 1000
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		for n := range objects {
			server.Create(t, widgets, widget("web", fmt.Sprint("w", n)))
			if n%10 == 0 {
				server.Create(t, gadgets, gadget("web", fmt.Sprint("g", n)))
			}
		}
		f := newVirtualFactory(t, server, Options{})
		var added atomic.Int64
		gate := make(chan struct{}) // closed after Shutdown was called
		for _, i := range []*Informer{mustInformer(t, f, widgets), mustInformer(t, f, gadgets)} {
			for range 2 {
				_, err := i.AddEventHandler(
					cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-gate; added.Add(1) }})
				must(t, err)
			}
		}
		start(t, f)
		synctest.Wait()
		shutdownDone := make(chan error, 1)
		go func() { shutdownDone <- f.Shutdown(t.Context()) }() // ends when all events are delivered
		synctest.Wait()
		if added.Load() != 0 || len(shutdownDone) != 0 {
			t.Errorf("%d objects were handled and %d Shutdown calls returned before the gate opened, want 0",
				added.Load(), len(shutdownDone))
		}
		select {
		case <-f.Done():
		default:
			t.Error("Done is not closed while Shutdown waits")
		}
		close(gate)
		if err := <-shutdownDone; err != nil || added.Load() != 2*(objects+objects/10) {
			t.Errorf("after Shutdown, %d objects were handled (%v), want all", added.Load(), err)
		}
	})
}

// TestShutdownGivesUp verifies that when its context ends, Shutdown names the handlers that have not
// returned, and drops the other events. Close does so immediately.
func TestShutdownGivesUp(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"), widget("web", "b"), widget("web", "c"))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		gate, handled := make(chan struct{}), 0
		for name, handler := range map[string]func(any){"slow": func(any) { <-gate; handled++ },
			"quick": func(any) {}} {
			_, err := i.AddEventHandler(Named(name, cache.ResourceEventHandlerFuncs{AddFunc: handler}))
			must(t, err)
		}
		start(t, f)
		ctx, cancel := context.WithCancelCause(t.Context())
		giveUp := errors.New("had enough")
		cancel(giveUp)
		synctest.Wait()
		if err := i.Flush(ctx); !errors.Is(err, giveUp) {
			t.Errorf("Flush() of one informer = %v, want the cause of the context", err)
		}
		err := f.Shutdown(ctx)
		const want = "dynamicinformer: shutdown: not finished: widgets.v1.example.com (handlers with " +
			"remaining events: widgets.v1.example.com: slow (3 events)): had enough"
		var busy *status.ShutdownError
		if !errors.As(err, &busy) || !errors.Is(err, giveUp) || err.Error() != want {
			t.Errorf("Shutdown() = %v, want %s", err, want)
		}
		must(t, f.Close())
		synctest.Wait()
		close(gate)
		must(t, f.Shutdown(t.Context()))
		if handled != 1 {
			t.Errorf("%d events were handled, want the first", handled)
		}
	})
}

// TestShutdownIsCutShort verifies that Close drops the events that a concurrent Shutdown waits for. Shutdown
// then returns an error.
func TestShutdownIsCutShort(t *testing.T) {
	tests := map[string]func(t *testing.T, f *Factory, gate chan struct{}) string{
		"handler": func(t *testing.T, f *Factory, gate chan struct{}) string {
			slow := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-gate }}
			_, err := mustInformer(t, f, widgets).AddEventHandler(Named("slow", slow))
			must(t, err)
			return "widgets.v1.example.com (handlers with remaining events: " +
				"widgets.v1.example.com: slow (2 events))"
		},
		"subscriber": func(t *testing.T, f *Factory, gate chan struct{}) string {
			_, err := f.Subscribe(Selection{Group: widgets.Group, Version: widgets.Version,
				Resource: widgets.Resource}, Subscriber{OnAdd: func(schema.GroupVersionResource,
				*unstructured.Unstructured, bool) {
				<-gate
			}})
			must(t, err)
			return "widgets.v1.example.com"
		},
		"listener": func(t *testing.T, f *Factory, gate chan struct{}) string {
			mustInformer(t, f, widgets)
			_, err := f.AddListener(status.Listener{StateChanged: func(_, _ status.Status) { <-gate }})
			must(t, err)
			return "a listener or subscriber"
		},
	}
	for name, add := range tests {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("web", "a"), widget("web", "b"), widget("web", "c"))
				f := newVirtualFactory(t, server, Options{})
				gate := make(chan struct{})
				want := "dynamicinformer: shutdown: not finished: " + add(t, f, gate)
				start(t, f)
				synctest.Wait()
				shut := make(chan error, 1)
				go func() { shut <- f.Shutdown(t.Context()) }() // ends when the gate opens
				synctest.Wait()
				must(t, f.Close())
				synctest.Wait()
				close(gate)
				if err := <-shut; err == nil || !strings.HasPrefix(err.Error(), want) ||
					!strings.HasSuffix(err.Error(), ": another call of Shutdown or Close has dropped events") {
					t.Errorf("Shutdown = %v, want %s", err, want)
				}
				must(t, f.Shutdown(t.Context())) // drops no events
			})
		})
	}
}

// TestFlushAfterTheEnd verifies that a flush after the stop reports events as delivered if they were
// delivered before the stop.
func TestFlushAfterTheEnd(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{})
		must(t, err)
		start(t, f)
		must(t, i.Flush(t.Context()))
		i.core.Stop()
		must(t, i.Flush(t.Context()))
	})
}

// TestShutdownDoesNotCallOnGone verifies that a subscriber gets no OnGone while Shutdown waits for the
// handler of another type.
func TestShutdownDoesNotCallOnGone(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		server.Create(t, gadgets, gadget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		gate := make(chan struct{})
		_, err := mustInformer(t, f, gadgets).AddEventHandler(
			cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-gate }})
		must(t, err)
		var gone atomic.Int64
		selection := Selection{Group: widgets.Group, Version: widgets.Version, Resource: widgets.Resource}
		_, err = f.Subscribe(selection,
			Subscriber{OnGone: func(status.Incarnation, status.Reason) { gone.Add(1) }})
		must(t, err)
		start(t, f)
		synctest.Wait()
		shut := make(chan error, 1)
		go func() { shut <- f.Shutdown(t.Context()) }() // ends when the gate opens
		synctest.Wait()
		close(gate)
		must(t, <-shut)
		if n := gone.Load(); n != 0 {
			t.Errorf("OnGone was called %d times during Shutdown, want 0", n)
		}
	})
}

func TestShutdownNamesRunningInformers(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	f := newFactory(t, server, Options{})
	i := mustInformer(t, f, widgets)
	mustInformer(t, f, gadgets)
	entered, release := make(chan struct{}), make(chan struct{})
	_, err := i.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: func(any) { close(entered); <-release }})
	must(t, err)
	must(t, f.Start(longContext(t)))
	<-entered
	other := mustInformer(t, f, gadgets)
	waitFor(t, other, func(s status.Status) bool { return s.State == status.Synced })

	cause := errors.New("no time")
	ctx, cancel := context.WithCancelCause(t.Context())
	// The other informers end first, so that Shutdown waits only for the handler.
	ended := make(chan error)
	// This goroutine ends when cancel is called.
	go func() { ended <- f.Shutdown(ctx) }()
	waitFor(t, other, func(s status.Status) bool { return s.State == status.Stopped })
	<-f.entries(gadgets)[0].done
	cancel(cause)
	err = <-ended
	var running *status.ShutdownError
	if !errors.As(err, &running) || !errors.Is(err, cause) {
		t.Fatalf("Shutdown() = %v, want a status.ShutdownError with the cause of the context", err)
	}
	if diff := cmp.Diff([]schema.GroupVersionResource{widgets}, running.Running); diff != "" {
		t.Errorf("running types (-want +got):\n%s", diff)
	}
	const stuck = "widgets.v1.example.com: cache.ResourceEventHandlerFuncs (1 events)"
	if diff := cmp.Diff([]string{stuck}, running.Handlers); diff != "" {
		t.Errorf("handlers that have not returned (-want +got):\n%s", diff)
	}
	want := "dynamicinformer: shutdown: not finished: widgets.v1.example.com (handlers with remaining events: " + stuck + "): no time"
	if err.Error() != want {
		t.Errorf("the text is %q, want %q", err, want)
	}
	close(release)
	if err := f.Shutdown(longContext(t)); err != nil {
		t.Errorf("Shutdown() after the handler has returned = %v", err)
	}
}

// TestShutdownWhileDown verifies that with an unreachable server, before or after the first list, Shutdown
// ends all pauses. newVirtualFactory fails the test if Shutdown takes long.
func TestShutdownWhileDown(t *testing.T) {
	for _, downFor := range []time.Duration{0, 3 * time.Second, 10 * time.Minute} {
		for name, namespaces := range map[string]Namespaces{"one reflector": AllNamespaces(),
			"several": InNamespaces("a", "b")} {
			t.Run(fmt.Sprintf("%s, down for %v", name, downFor), func(t *testing.T) {
				onFakeClock(t, func(t *testing.T, server *apitest.Server) {
					f := newVirtualFactory(t, server,
						Options{Defaults: ResourceOptions{Namespaces: namespaces}})
					i := mustInformer(t, f, widgets)
					start(t, f)
					server.CloseClientConnections()
					server.Close()
					late := mustInformer(t, f, gadgets)
					start(t, f)
					time.Sleep(downFor)
					synctest.Wait()
					for _, i := range []*Informer{i, late} {
						if s := i.Status(); s.State == status.Stopped ||
							s.Reason != status.ReasonUnreachable && downFor > 0 {
							t.Errorf("Status() = %+v, want a running informer, with reason Unreachable after the outage began", s)
						}
					}
				})
			})
		}
	}
}

// TestShutdownReleasesTheCache verifies that after Shutdown, no goroutine or timer retains the cached
// objects. The clock stands still, so that a remaining timer stays.
func TestShutdownReleasesTheCache(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		kept := cacheAndShutDown(t, server)
		synctest.Wait()
		runtime.GC()
		if kept.Value() != nil {
			t.Error("a cached object is referenced after Shutdown")
		}
	})
}

func cacheAndShutDown(t *testing.T, server *apitest.Server) weak.Pointer[packed.Object] {
	f, err := New(Options{Config: server.Config(), HTTPClient: server.HTTPClient(t)})
	must(t, err)
	i := mustInformer(t, f, widgets)
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
		t.Fatal(err)
	}
	must(t, f.Start(t.Context()))
	synctest.Wait()
	object, _ := i.Snapshot().Stored("web/a")
	must(t, f.Shutdown(t.Context()))
	return weak.Make(object.(*packed.Object))
}
