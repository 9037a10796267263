package dynamicinformer

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// onFakeClock runs a test with an in-memory server and a clock that advances only while all goroutines
// wait.
func onFakeClock(t *testing.T, test func(*testing.T, *apitest.Server)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, apitest.NewInMemory(t,
			apitest.Type{GVR: widgets, Kind: "Widget", Namespaced: true},
			apitest.Type{GVR: gadgets, Kind: "Gadget", Namespaced: true},
			apitest.Type{GVR: gizmos, Kind: "Gizmo", Namespaced: true},
			apitest.Type{GVR: namespacesGVR, Kind: "Namespace"}))
	})
}

var discardLog = klog.Logger{}

// newVirtualFactory returns a factory on an in-memory server. The test's cleanup shuts it down.
func newVirtualFactory(t *testing.T, server *apitest.Server, options Options) *Factory {
	t.Helper()
	if options.Client == nil {
		options.Config = server.Config()
	}
	if options.Client == nil && options.HTTPClient == nil {
		options.HTTPClient = server.HTTPClient(t)
	}
	if options.Logger == nil {
		options.Logger = &discardLog
	}
	f, err := New(options)
	must(t, err)
	t.Cleanup(func() {
		before := time.Now()
		if err := f.Shutdown(context.Background()); err != nil {
			t.Error(err)
		}
		if elapsed := time.Since(before); elapsed > time.Second {
			t.Errorf("Shutdown took %v, want at most 1s", elapsed)
		}
	})
	return f
}

// start starts the factory and waits until all goroutines are idle.
func start(t *testing.T, f *Factory) {
	t.Helper()
	must(t, f.Start(context.Background()))
	synctest.Wait()
}

// count returns the number of requests with a prefix.
func count(server *apitest.Server, prefix string) int {
	n := 0
	for _, r := range server.Requests() {
		if strings.HasPrefix(r, prefix) {
			n++
		}
	}
	return n
}

func TestListsAreBounded(t *testing.T) {
	for name, verb := range map[string]string{"lists": "list ", "watch-lists": "watch-list "} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				f := newVirtualFactory(t, server, Options{ListConcurrency: 2})
				var all []*Informer
				for _, gvr := range []schema.GroupVersionResource{widgets, gadgets, gizmos} {
					path := "/apis/example.com/v1/" + gvr.Resource
					server.AddFaults(unansweredRequests(path))
					if verb == "list " {
						server.AddFaults(fault(path, "watch-list", 422))
					}
					all = append(all, mustInformer(t, f, gvr))
				}
				start(t, f)
				if got := count(server, verb); got != 2 {
					t.Errorf("%d %s are in progress, want 2", got, name)
				}
				for _, i := range all {
					if s := i.Status(); s.State != status.Syncing {
						t.Errorf("Status() = %+v, want Syncing", s)
					}
				}
				if held, waiting, _ := f.deps.Limiter.Load(); held != 2 || waiting != 1 {
					t.Errorf("%d lists are admitted and %d wait, want 2 and 1", held, waiting)
				}
				// A list without a response releases its slot after SlotTimeout.
				time.Sleep(requests.SlotTimeout + time.Second)
				if got := count(server, verb); got != 3 {
					t.Errorf("%d %s were requested after a minute, want 3", got, name)
				}
			})
		})
	}
}

// TestSlotIsFreeForHandlers verifies that a handler can wait for another type to sync although only one list
// can run at a time.
func TestSlotIsFreeForHandlers(t *testing.T) {
	for name, faults := range map[string][]apitest.Fault{
		"watch-list": nil,
		"list":       {fault(widgetsPath, "watch-list", 422), fault(gadgetsPath, "watch-list", 422)},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.AddFaults(faults...)
				server.Create(t, widgets, widget("web", "a"))
				f := newVirtualFactory(t, server, Options{ListConcurrency: 1})
				waited := make(chan error, 1)
				_, err := mustInformer(t, f,
					widgets).AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: func(any) {
					if _, err := f.ForResource(gadgets); err != nil {
						t.Error(err)
					}
					if err := f.Start(context.Background()); err != nil {
						t.Error(err)
					}
					err := f.WaitForSync(context.Background(), gadgets)
					waited <- err
				}})
				must(t, err)
				start(t, f)
				select {
				case err := <-waited:
					if err != nil {
						t.Error(err)
					}
				default:
					t.Error("the handler waits for the slot of its own type")
				}
				if held, _, _ := f.deps.Limiter.Load(); held != 0 {
					t.Errorf("%d slots are held, want 0", held)
				}
			})
		})
	}
}

// TestThrottledListsShrink verifies that a 429 halves the limit. The list is not repeated before the
// Retry-After time.
func TestThrottledListsShrink(t *testing.T) {
	for name, tt := range map[string]struct {
		retryAfter string
		requests   int // maximum number in half a minute
	}{"for a time": {"20", 2}, "without a time": {"", 6}} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.AddFaults(apitest.Fault{Path: widgetsPath, Status: 429, RetryAfter: tt.retryAfter})
				f := newVirtualFactory(t, server, Options{ListConcurrency: 8})
				i := mustInformer(t, f, widgets)
				start(t, f)
				if held, _, bound := f.deps.Limiter.Load(); held != 0 || bound != 4 ||
					i.Status().Reason != status.ReasonThrottled {
					t.Errorf("the limit is %d with %d held slots, want 4 with 0; Status() = %+v", bound, held,
						i.Status())
				}
				time.Sleep(30 * time.Second)
				if got := count(server, "watch-list "); got > tt.requests || got < tt.requests/2 ||
					count(server, "list ") != 0 {
					t.Errorf("%d requests in half a minute, want %d: %q", got, tt.requests, server.Requests())
				}
				server.Repair()
				time.Sleep(time.Minute)
				if s := i.Status(); s.State != status.Synced {
					t.Errorf("Status() = %+v, want Synced", s)
				}
				_, _, before := f.deps.Limiter.Load()
				mustInformer(t, f, gadgets)
				start(t, f)
				if _, _, bound := f.deps.Limiter.Load(); bound != before+1 {
					t.Errorf("the limit is %d, want one more than %d", bound, before)
				}
			})
		})
	}
}

// TestConversionFailureIsNotThrottling verifies that if a conversion webhook prevents the server from filling
// its cache, the server answers 429 with the webhook's error. Such a response does not count as throttling.
func TestConversionFailureIsNotThrottling(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(apitest.Fault{Path: widgetsPath, Status: 429, RetryAfter: "1",
			Message: "storage is initializing: conversion webhook for example.com/v1, Kind=Widget failed"})
		f := newVirtualFactory(t, server, Options{ListConcurrency: 8})
		i := mustInformer(t, f, widgets)
		start(t, f)
		time.Sleep(10 * time.Minute)
		if s := i.Status(); s.State != status.Degraded || s.Reason != status.ReasonConversionFailed {
			t.Errorf("Status() = %+v, want Degraded with reason ConversionFailed", s)
		}
		if _, _, bound := f.deps.Limiter.Load(); bound != 8 || count(server, "watch-list ") > 30 {
			t.Errorf("the limit is %d after %d requests in ten minutes, want 8 after at most 30", bound,
				count(server, "watch-list "))
		}
	})
}

// TestForbiddenIsRetriedRarely verifies that a forbidden type is retried after one to five minutes, or by
// Retry.
func TestForbiddenIsRetriedRarely(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(fault(widgetsPath, "", 403))
		f := newVirtualFactory(t, server, Options{})
		i := mustInformer(t, f, widgets)
		start(t, f)
		time.Sleep(time.Hour)
		if got := count(server, "list "+widgetsPath); got < 60/5 || got > 60 {
			t.Errorf("%d lists in an hour, want 12 to 60", got)
		}
		server.Repair()
		i.Retry()
		synctest.Wait()
		if s := i.Status(); s.State != status.Synced {
			t.Errorf("after Retry Status() = %+v, want Synced", s)
		}
	})
}

// TestLaggingServer verifies that a 404 for a type that the source reports as served is retried often, and
// degrades the status only after a while.
func TestLaggingServer(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.AddFaults(fault(widgetsPath, "", 404))
		types := &scriptedSource{}
		f := newVirtualFactory(t, server, Options{Types: types})
		i := mustInformer(t, f, widgets)
		types.set(nil)
		start(t, f)
		time.Sleep(health.ContactTimeout - time.Second)
		if s := i.Status(); s.State != status.Syncing || s.Settled() {
			t.Errorf("Status() = %+v, want Syncing", s)
		}
		if got := count(server, "list "+widgetsPath); got < 8 || got > 20 {
			t.Errorf("%d lists in half a minute, want 8 to 20", got)
		}
		time.Sleep(2 * time.Second)
		if s := i.Status(); s.State != status.Degraded || s.Reason != status.ReasonNotFound {
			t.Errorf("Status() = %+v, want Degraded with reason NotFound", s)
		}
		time.Sleep(10 * time.Minute)
		// A change of the type ends the pause.
		server.Repair()
		before := count(server, "watch-list "+widgetsPath)
		types.set(func(t *typesource.Type) { t.Versions = append(t.Versions, "v2") })
		synctest.Wait()
		if s := i.Status(); s.State != status.Synced || s.Incarnation != 1 ||
			count(server, "watch-list "+widgetsPath) != before+1 {
			t.Errorf("after a change of the type Status() = %+v, want Synced", s)
		}
	})
}

// TestRequestFailed verifies that a listener receives every failed request and nothing else. The handlers of
// utilruntime receive the failures for which client-go's reflector calls its watch error handler.
func TestRequestFailed(t *testing.T) {
	var reported atomic.Int32
	utilruntime.ErrorHandlers = []utilruntime.ErrorHandler{
		func(context.Context, error, string, ...any) { reported.Add(1) }}
	defer func() { utilruntime.ErrorHandlers = nil }()
	tests := map[string]struct {
		faults []apitest.Fault
		want   []status.Reason
		// reported is the number of calls of the handlers of utilruntime.
		reported int32
	}{
		"a list that fails": {[]apitest.Fault{fault(widgetsPath, "", 403)},
			[]status.Reason{status.ReasonForbidden}, 1},
		"a watch-list that is new": {[]apitest.Fault{fault(widgetsPath, "watch-list", 422)}, nil, 0},
		"throttling": {[]apitest.Fault{fault(widgetsPath, "watch-list", 429)},
			[]status.Reason{status.ReasonThrottled}, 0},
		"a watch that fails": {[]apitest.Fault{fault(widgetsPath, "watch-list", 422),
			fault(widgetsPath, "watch", 403)}, []status.Reason{status.ReasonForbidden}, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.AddFaults(tt.faults...)
				var mu sync.Mutex
				var got []status.Reason
				f := newVirtualFactory(t, server, Options{Listener: status.Listener{
					RequestFailed: func(f status.RequestFailure) {
						mu.Lock()
						defer mu.Unlock()
						if f.GVR != widgets || f.Err == nil {
							t.Errorf("the failure is %+v, want one of widgets with an error", f)
						}
						got = append(got, f.Reason)
					}}})
				mustInformer(t, f, widgets)
				reported.Store(0)
				start(t, f)
				if n := reported.Load(); n != tt.reported {
					t.Errorf("%d failures were reported, want %d", n, tt.reported)
				}
				mu.Lock()
				defer mu.Unlock()
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("the failures (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// servePages responds to lists with one object per page, and to watches without events.
func servePages(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case query.Get("sendInitialEvents") == "true":
		w.WriteHeader(http.StatusBadRequest) // as servers without watch-lists do
		fmt.Fprint(
			w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"BadRequest","code":400}`)
	case query.Has("watch"):
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	default:
		page, next := query.Get("continue"), ""
		switch page {
		case "":
			page, next = "first", `"continue":"second",`
		case "second":
			next = `"continue":"third",`
		}
		fmt.Fprintf(
			w, `{"apiVersion":"example.com/v1","kind":"WidgetList","metadata":{%s"resourceVersion":"7"},"items":[`+
				`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":%q,"namespace":"web","resourceVersion":"5"}}]}`, next, page)
	}
}

// TestListsInPages verifies that servers without a watch cache answer in pages.
func TestListsInPages(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(servePages))
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	for _, mode := range []StorageMode{StoragePacked, StorageObject, StorageMetadata} {
		t.Run(mode.String(), func(t *testing.T) {
			i := started(t, Options{Config: &rest.Config{Host: server.URL, QPS: -1}},
				ResourceOptions{Storage: Storage{Mode: mode}})
			keys := i.GetStore().ListKeys()
			slices.Sort(keys)
			if diff := cmp.Diff([]string{"web/first", "web/second", "web/third"}, keys); diff != "" {
				t.Errorf("keys (-want +got):\n%s", diff)
			}
			if got := i.LastSyncResourceVersion(); got != "7" {
				t.Errorf("LastSyncResourceVersion() = %q, want 7", got)
			}
		})
	}
}

// TestPageSizeAndWatchTimeout verifies that requests have the page size and timeout of the options, also for
// several namespaces.
func TestPageSizeAndWatchTimeout(t *testing.T) {
	for name, namespaces := range map[string]Namespaces{"all": AllNamespaces(),
		"some": InNamespaces("web", "db")} {
		lists, watches := make(chan string, 100), make(chan int, 100)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			query := r.URL.Query()
			switch {
			case query.Has("sendInitialEvents"):
			case query.Has("watch"):
				seconds, _ := strconv.Atoi(query.Get("timeoutSeconds"))
				watches <- seconds
			default:
				lists <- query.Get("limit")
			}
			servePages(w, r)
		}))
		t.Cleanup(func() {
			server.CloseClientConnections()
			server.Close()
		})
		started(t, Options{Config: &rest.Config{Host: server.URL, QPS: -1}},
			ResourceOptions{Namespaces: namespaces, PageSize: 17, MinWatchTimeout: time.Hour})
		if limit := <-lists; limit != "17" {
			t.Errorf("%s: the limit of a list = %q, want 17", name, limit)
		}
		if seconds := <-watches; seconds < 3600 || seconds > 7200 {
			t.Errorf("%s: the timeout of a watch = %d seconds, want 3600 to 7200", name, seconds)
		}
	}
}
