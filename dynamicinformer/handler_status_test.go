package dynamicinformer

import (
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

func TestHandlers(t *testing.T) {
	virtual(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"), widget("web", "b"))
		f := newVirtualFactory(t, server, Options{})
		i := ask(t, f, widgets)
		if all := i.Handlers(); all == nil || len(all) != 0 {
			t.Errorf("an informer without handlers has %#v", all)
		}
		release := make(chan struct{})
		for _, handler := range []cache.ResourceEventHandler{
			cache.ResourceEventHandlerFuncs{AddFunc: func(any) { <-release }},
			cache.ResourceEventHandlerDetailedFuncs{},
		} {
			if _, err := i.AddEventHandler(handler); err != nil {
				t.Fatal(err)
			}
		}
		start(t, f)
		quick := HandlerStatus{Name: "cache.ResourceEventHandlerDetailedFuncs", Synced: true}
		slow := HandlerStatus{Name: "cache.ResourceEventHandlerFuncs", Depth: 2}
		if diff := cmp.Diff([]HandlerStatus{slow, quick}, i.Handlers()); diff != "" {
			t.Errorf("while one is busy (-want +got):\n%s", diff)
		}
		close(release)
		synctest.Wait()
		slow.Depth, slow.Synced = 0, true
		if diff := cmp.Diff([]HandlerStatus{slow, quick}, i.Handlers()); diff != "" {
			t.Errorf("in the end (-want +got):\n%s", diff)
		}
	})
}
