package dynamicinformer

import (
	"bytes"
	"context"
	"net/http"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
	"github.com/crdcache/crdcache/test/testcluster"
)

// TestQuietTypesHaveOneGoroutine verifies that each synced type without events has one goroutine, besides
// those of the connection. A handler and a type source add none. A resync period adds one.
func TestQuietTypesHaveOneGoroutine(t *testing.T) {
	resync := time.Hour
	for name, test := range map[string]struct {
		types  *scriptedSource
		resync *time.Duration
		want   int
	}{
		"no type source": {want: 2},
		"a type source":  {types: &scriptedSource{}, want: 2},
		"with resyncs":   {resync: &resync, want: 4},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				options := Options{Defaults: ResourceOptions{Resync: test.resync}}
				if test.types != nil {
					options.Types = test.types
				}
				f := newVirtualFactory(t, server, options)
				if test.types != nil {
					test.types.listener.SetComplete()
					test.types.set(nil)
					test.types.set(func(t *typesource.Type) {
						t.GroupResource,
							t.Kind = gadgets.GroupResource(), "Gadget"
					})
				}
				var handled atomic.Int64
				for _, gvr := range []schema.GroupVersionResource{widgets, gadgets} {
					_, err := mustInformer(t, f,
						gvr).AddEventHandler(
						cache.ResourceEventHandlerFuncs{AddFunc: func(any) { handled.Add(1) }})
					must(t, err)
				}
				start(t, f)
				server.Create(t, widgets, widget("web", "a"))
				server.Create(t, gadgets, gadget("web", "a"))
				time.Sleep(20 * time.Second)
				synctest.Wait()
				if got := informerGoroutines(); len(got) != test.want || handled.Load() != 2 {
					t.Errorf("%d goroutines, want %d; %d objects were handled:\n%s", len(got), test.want,
						handled.Load(), strings.Join(got, "\n\n"))
				}
				server.Create(t, widgets, widget("web", "b"))
				if synctest.Wait(); handled.Load() != 3 {
					t.Errorf("%d objects were handled, want 3", handled.Load())
				}
			})
		})
	}
}

// informerCode matches the stacks of goroutines that run informers.
var informerCode = regexp.MustCompile(`crdcache/internal/(informer|follow|requests|codec|queue|health)\.`)

// synctestBubble matches the caller's synctest bubble, which is in the first line of a stack.
var synctestBubble = regexp.MustCompile(`synctest bubble \d+`)

// informerGoroutines returns the stacks of the goroutines that run informers in the caller's synctest
// bubble. Goroutines of other tests may still be ending.
func informerGoroutines() []string {
	text := make([]byte, 1<<20)
	stacks := strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n") // the caller's is the first
	callerBubble := synctestBubble.FindString(stacks[0])
	return slices.DeleteFunc(stacks, func(stack string) bool {
		return !informerCode.MatchString(stack) || synctestBubble.FindString(stack) != callerBubble
	})
}

// bufferResponses returns a proxy that forwards responses only in full chunks of 4 KiB.
// It forwards the headers immediately if headFirst is set, and otherwise with the first chunk.
func bufferResponses(headFirst bool) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			var unsent bytes.Buffer
			pass := func() {
				_, _ = unsent.WriteTo(w)
				w.(http.Flusher).Flush()
			}
			write := func(data []byte) (int, error) {
				unsent.Write(data)
				if unsent.Len() >= 4096 {
					pass()
				}
				return len(data), nil
			}
			flush := func() {
				if headFirst {
					w.(http.Flusher).Flush()
				}
			}
			next.ServeHTTP(testkit.ForwardedResponse{ResponseWriter: w, OnWrite: write, OnFlush: flush}, r)
			pass()
		})
	}
}

// dropBookmarks removes the bookmarks from watches, like a proxy or an old server, even the one at the end of
// a watch-list.
func dropBookmarks(next http.Handler) http.Handler {
	drop := testcluster.DropBookmarks()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("watch") == "" {
			next.ServeHTTP(w, r)
			return
		}
		drop(w, r, next)
	})
}

// cutIdle returns a load balancer that closes idle connections.
func cutIdle(idle time.Duration) func(http.Handler) http.Handler {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx, cut := context.WithCancel(r.Context())
			defer cut()
			timer := time.AfterFunc(idle, cut)
			defer timer.Stop()
			write := func(data []byte) (int, error) {
				timer.Reset(idle)
				return w.Write(data)
			}
			next.ServeHTTP(testkit.ForwardedResponse{ResponseWriter: w, OnWrite: write,
				OnFlush: w.(http.Flusher).Flush}, r.WithContext(ctx))
		})
	}
}
