package dynamicinformer

import (
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
	"github.com/crdcache/crdcache/internal/testkit"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestOddServers verifies that with each of these servers, an informer syncs, stays synced for hours, shows
// changes, and does not list repeatedly, unless lists replace watches that a proxy holds back.
func TestOddServers(t *testing.T) {
	for name, tt := range map[string]struct {
		proxy func(http.Handler) http.Handler
		// synced is the maximum duration of the first list, shown the maximum time until the cache shows a
		// change.
		synced, shown time.Duration
		// lists is the maximum number of lists and watch-lists in three hours.
		lists  int
		reason status.Reason
	}{
		"buffers bodies": {proxy: bufferResponses(true), synced: requests.InitialEventsTimeout,
			shown: 21 * time.Second, lists: 6},
		"buffers bodies and headers": {proxy: bufferResponses(false), synced: requests.InitialEventsTimeout,
			shown: 30 * time.Second, lists: 600, reason: status.ReasonPolled},
		"compresses":      {proxy: testkit.Compress(true), lists: 1},
		"drops bookmarks": {proxy: dropBookmarks, synced: requests.InitialEventsTimeout, lists: 6},
		"closes idle connections": {proxy: cutIdle(30 * time.Second),
			shown: 2 * time.Second, lists: 6},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("web", "a"))
				f := newVirtualFactory(t, server, Options{HTTPClient: server.ProxyClient(t, tt.proxy)})
				i := mustInformer(t, f, widgets)
				start(t, f)
				observe(t, i, "at first", tt.synced+2*time.Second, briefStatus{State: status.Synced})
				var states eventLog
				if _, err := f.AddListener(status.Listener{StateChanged: func(_, after status.Status) {
					states.add("%s", after.State)
				}}); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Minute)
				for change := range 9 {
					server.Create(t, widgets, widget("web", strings.Repeat("b", change+1)))
					time.Sleep(tt.shown)
					synctest.Wait()
					if got := len(i.GetStore().ListKeys()); got != change+2 {
						t.Errorf("change %d: there are %d widgets, want %d; the status is %+v", change, got,
							change+2, i.Status())
					}
					time.Sleep(20 * time.Minute)
					observe(t, i, "after 20 minutes", 0, briefStatus{State: status.Synced, Reason: tt.reason})
				}
				if all := states.all(); slices.Contains(all, string(status.Degraded)) {
					t.Errorf("the states are %v, want no Degraded", all)
				}
				// one check for each aborted watch
				checks := count(server, "list "+widgetsPath+"?limit=1")
				lists := count(server, "list "+widgetsPath) - checks +
					count(server, "watch-list "+widgetsPath)
				if lists > tt.lists {
					t.Errorf("%d lists in three hours, want %d at most", lists, tt.lists)
				}
			})
		})
	}
}

// TestThrottledForMinutes verifies that requests pause for as long as the server asks, also for minutes, and
// then continue.
func TestThrottledForMinutes(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		f := newVirtualFactory(t, server, Options{})
		i, throttled := mustInformer(t, f, widgets), mustInformer(t, f, gadgets)
		server.Create(t, widgets, widget("web", "a"))
		throttle := func(path string) {
			busy := fault(path, "", http.StatusTooManyRequests)
			busy.RetryAfter = "120"
			server.AddFaults(busy)
		}
		throttle(gadgetsPath)
		start(t, f)
		observe(t, i, "before", 0, briefStatus{State: status.Synced})
		throttle(widgetsPath)
		server.CloseClientConnections()
		time.Sleep(time.Hour)
		synctest.Wait()
		for _, path := range []string{widgetsPath, gadgetsPath} {
			requests := 0
			for _, verb := range []string{"list ", "watch-list ", "watch "} {
				requests += count(server, verb+path)
			}
			if requests > 32 { // one every two minutes, and the first one
				t.Errorf("%d requests for %s in an hour, want at most 32", requests, path)
			}
		}
		if s := throttled.Status(); s.State != status.Syncing && s.State != status.Degraded ||
			s.Reason != status.ReasonThrottled {
			t.Errorf("after the pause, Status() = %+v, want Synced", s)
		}
		server.Repair()
		observe(t, i, "afterwards", 3*time.Minute, briefStatus{State: status.Synced})
		observe(t, throttled, "afterwards", 0, briefStatus{State: status.Synced})
		if got := len(i.GetStore().ListKeys()); got != 1 {
			t.Errorf("the cache has %d objects, want 1", got)
		}
	})
}

// TestInvalidResponseIsNoContact verifies that a response that cannot be decoded, such as the login page of a
// proxy, does not count as contact with the API server, even with status 200 and a JSON content type.
func TestInvalidResponseIsNoContact(t *testing.T) {
	for name, body := range map[string]string{"a page": "<html>\n<body>Log in\n</html>\n", "a line": "Log in",
		"another object": `{"ok":true}` + "\n"} {
		for _, from := range []string{"once synced", "at startup"} {
			t.Run(name+" "+from, func(t *testing.T) {
				onFakeClock(t, func(t *testing.T, server *apitest.Server) {
					f := newVirtualFactory(t, server, Options{})
					i := mustInformer(t, f, widgets)
					if from == "once synced" {
						start(t, f)
						time.Sleep(time.Minute)
					}
					before := time.Now()
					server.AddFaults(apitest.Fault{Path: widgetsPath, Effect: func(w http.ResponseWriter,
						_ *http.Request, _ http.Handler) {
						w.Header().Set("Content-Type", "application/json")
						_, _ = io.WriteString(w, body)
					}})
					server.CloseClientConnections()
					if from == "at startup" {
						start(t, f)
					}
					time.Sleep(2 * time.Minute)
					for range 60 {
						time.Sleep(1777 * time.Millisecond)
						synctest.Wait()
						s := i.Status()
						if s.State != status.Degraded || s.LastError == nil || s.LastContact.After(before) ||
							s.Stale != (from == "once synced") {
							t.Fatalf("after %v: Status() = %+v, want Degraded without contact",
								time.Since(before), s)
						}
					}
					server.Repair()
					time.Sleep(time.Minute)
					synctest.Wait()
					if s := i.Status(); s.State != status.Synced || s.Stale || !s.LastContact.After(before) {
						t.Errorf("after the recovery: Status() = %+v, want Synced with contact", s)
					}
				})
			})
		}
	}
}

// TestWatchListsStall verifies that what one stalled watch-list has shown holds for the connection: the other
// types are listed without a delay, whatever the traffic, and watch-lists are used again once they work.
func TestWatchListsStall(t *testing.T) {
	for name, proxy := range map[string]func(http.Handler) http.Handler{"drops bookmarks": dropBookmarks,
		"buffers bodies": bufferResponses(true), "buffers bodies and headers": bufferResponses(false)} {
		if testing.Short() && name != "buffers bodies" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var types []apitest.Type
				for n := range 24 {
					gvr := widgets
					gvr.Resource = fmt.Sprintf("widgets%d", n)
					types = append(types, apitest.Type{GVR: gvr, Kind: fmt.Sprint("Widget", n), Namespaced: true})
				}
				server := apitest.NewInMemory(t, types...)
				var healed atomic.Bool
				f := newVirtualFactory(t, server,
					Options{HTTPClient: server.ProxyClient(t, func(next http.Handler) http.Handler {
						odd := proxy(next)
						return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
							if healed.Load() {
								odd = next
							}
							odd.ServeHTTP(w, r)
						})
					})})
				var informers []*Informer
				for _, typ := range types {
					u := widget("web", "a")
					u.SetKind(typ.Kind)
					server.Create(t, typ.GVR, u)
					informers = append(informers, mustInformer(t, f, typ.GVR))
				}
				start(t, f)
				for k := range int(requests.InitialEventsTimeout/time.Second) + 6 {
					time.Sleep(time.Second)
					for n, typ := range types {
						u := widget("web", fmt.Sprint("b", k))
						if u.SetKind(typ.Kind); n%2 == 0 {
							server.Create(t, typ.GVR, u)
						}
					}
				}
				synctest.Wait()
				for _, i := range informers {
					if s := i.Status(); s.State != status.Synced || !strings.Contains(s.Message, "lists replace watch-lists") {
						t.Fatalf("Status() = %+v, want Synced with the reason of the list", s)
					}
				}
				healed.Store(true)
				time.Sleep(61 * time.Minute)
				for _, i := range informers {
					if err := i.Relist(t.Context()); err != nil {
						t.Fatal(err)
					}
					if s := i.Status(); s.State != status.Synced || s.Message != "" {
						t.Errorf("healed: Status() = %+v, want Synced without a message", s)
					}
				}
			})
		})
	}
}
