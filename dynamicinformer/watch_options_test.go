package dynamicinformer

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestWatchBookmarks: without bookmarks the type is listed, and the watch requests none.
func TestWatchBookmarks(t *testing.T) {
	virtual(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("web", "a"))
		f := newVirtualFactory(t, server, Options{Defaults: ResourceOptions{WatchBookmarks: new(false)}})
		start(t, f)
		h, err := f.Acquire(widgets)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.WaitForSync(context.Background()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		for _, r := range server.Requests() {
			if strings.Contains(r, "allowWatchBookmarks") || strings.Contains(r, "sendInitialEvents") {
				t.Errorf("a request: %s", r)
			}
		}
		if got := keysOf(h.Informer()); len(got) != 1 {
			t.Errorf("the cache holds %v", got)
		}
	})
}
