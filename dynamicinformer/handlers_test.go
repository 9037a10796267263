package dynamicinformer

import (
	"strconv"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestNamedHandlersAreUnwrapped verifies that naming a handler changes neither its arguments nor the objects
// that are decoded for it.
func TestNamedHandlersAreUnwrapped(t *testing.T) {
	if Named("n", nil) != nil {
		t.Error("Named(nil) is not nil")
	}
	server := newServer(t)
	server.Create(t, widgets, widget("web", "a"))
	i := started(t, Options{Config: server.Config()}, ResourceOptions{})
	got := make(chan any, 2)
	add := cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { got <- obj }}
	for _, handler := range []cache.ResourceEventHandler{Named("n", MetadataOnly(add)),
		MetadataOnly(Named("n", add))} {
		if _, err := i.AddEventHandler(handler); err != nil {
			t.Fatal(err)
		}
		if o, ok := (<-got).(PackedObject); !ok || o.Decoded() != nil {
			t.Errorf("the handler got a %T, want an undecoded PackedObject", o)
		}
	}
	// which is never called
	if _, err := i.AddEventHandler(Named("n", cache.ResourceEventHandlerFuncs{})); err != nil {
		t.Fatal(err)
	}
	must(t, i.Flush(longContext(t)))
	if stats := i.Stats(); stats.Misses != 0 {
		t.Errorf("%d objects were decoded, want 0", stats.Misses)
	}
	if _, err := i.AddEventHandler(Named("n", add)); err != nil {
		t.Fatal(err)
	}
	if u, ok := (<-got).(*unstructured.Unstructured); !ok {
		t.Errorf("the handler got a %T, want *unstructured.Unstructured", u)
	}
}

// TestCoalesceAndEveryEvent verifies that the outermost of Coalesce and EveryEvent applies, in any order with
// other wrappers.
func TestCoalesceAndEveryEvent(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		release := make(chan struct{})
		slow := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release },
			UpdateFunc: func(any, any) {}}
		for _, handler := range []cache.ResourceEventHandler{
			slow, Coalesce(slow), MetadataOnly(slow), Named("n", EveryEvent(MetadataOnly(slow))),
			MetadataOnly(Named("n", EveryEvent(Coalesce(slow)))), Coalesce(EveryEvent(slow)),
		} {
			if _, err := i.AddEventHandler(handler); err != nil {
				t.Fatal(err)
			}
		}
		if Coalesce(nil) != nil || EveryEvent(nil) != nil {
			t.Error("Coalesce(nil) or EveryEvent(nil) is not nil")
		}
		start(t, f)
		synctest.Wait()
		for n := range 4 {
			o := widget("web", "a")
			o.SetAnnotations(map[string]string{"n": strconv.Itoa(n)})
			server.Update(t, widgets, o)
		}
		synctest.Wait()
		var depths []int
		var merged []int64
		for _, h := range i.Handlers() {
			depths, merged = append(depths, h.Depth), append(merged, h.Coalesced)
		}
		if diff := cmp.Diff([]int{5, 2, 2, 5, 5, 2}, depths); diff != "" {
			t.Errorf("events that wait (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]int64{0, 3, 3, 0, 0, 3}, merged); diff != "" {
			t.Errorf("events that were merged (-want +got):\n%s", diff)
		}
		close(release)
	})
}
