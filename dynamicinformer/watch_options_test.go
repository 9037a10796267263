package dynamicinformer

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestWatchBookmarks: without bookmarks the type is listed, and the watch asks for none.
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

// TestWatchErrorHandler gets the reflector and what its lists fail with, beside OnWatchError.
func TestWatchErrorHandler(t *testing.T) {
	virtual(t, func(t *testing.T, server *apitest.Server) {
		server.Break(apitest.Fault{Path: "/apis/example.com/v1/widgets", Status: http.StatusForbidden})
		failed := make(chan error, 100)
		f := newVirtualFactory(t, server, Options{})
		start(t, f)
		_, err := f.Acquire(widgets,
			ResourceOptions{WatchErrorHandler: func(ctx context.Context, r *cache.Reflector, err error) {
				cache.DefaultWatchErrorHandler(ctx, r, err) // which looks into the reflector
				select {
				case failed <- err:
				default:
				}
			}})
		if err != nil {
			t.Fatal(err)
		}
		if err := <-failed; !strings.Contains(err.Error(), "out of order") {
			t.Errorf("the handler got %v", err)
		}
	})
}
