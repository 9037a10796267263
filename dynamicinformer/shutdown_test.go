package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/packed"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func TestShutdownNamesRunningInformers(t *testing.T) {
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	f := newFactory(t, server, Options{})
	i := mustInformer(t, f, widgets)
	mustInformer(t, f, gadgets)
	entered, release := make(chan struct{}), make(chan struct{})
	_, err := i.AddEventHandler(
		cache.ResourceEventHandlerFuncs{AddFunc: func(any) { close(entered); <-release }})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Start(longContext(t)); err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	i := mustInformer(t, f, widgets)
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{}); err != nil {
		t.Fatal(err)
	}
	if err := f.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	object, _ := i.Snapshot().Stored("web/a")
	if err := f.Shutdown(t.Context()); err != nil {
		t.Fatal(err)
	}
	return weak.Make(object.(*packed.Object))
}
