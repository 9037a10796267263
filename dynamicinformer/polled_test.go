package dynamicinformer

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// listOnlyServer answers like an aggregated API server without watches: its objects and lists have neither
// UIDs nor resource versions.
type listOnlyServer struct {
	mu    sync.Mutex
	items []string // "name=value", or "namespace/name=value"
}

func (s *listOnlyServer) set(items ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.items = items
}

func (s *listOnlyServer) faults() []apitest.Fault {
	return []apitest.Fault{
		{Path: widgetsPath, Verb: "list", Effect: s.list},
		fault(widgetsPath, "watch", http.StatusMethodNotAllowed),
		fault(widgetsPath, "watch-list", http.StatusMethodNotAllowed),
	}
}

func (s *listOnlyServer) list(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var items []string
	for _, item := range s.items {
		key, value, _ := strings.Cut(item, "=")
		items = append(items, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"web"},"usage":%q}`, key, value))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"kind":"WidgetList","apiVersion":"example.com/v1","metadata":{},"items":[`+
		strings.Join(items, ",")+`]}`)
}

// TestPolled verifies that a type that can be listed but not watched is polled, with pauses that grow while
// nothing changes: with and without a source of types, and in each kind of storage.
func TestPolled(t *testing.T) {
	for name, types := range map[string]typesource.Source{"no source of types": nil,
		"list only": listOnlyRegistry(true), "a source that is wrong": listOnlyRegistry(false)} {
		for _, mode := range []StorageMode{StoragePacked, StorageObject, StorageNone} {
			t.Run(fmt.Sprint(name, ", ", mode), func(t *testing.T) {
				onFakeClock(t, func(t *testing.T, server *apitest.Server) {
					polled := &listOnlyServer{}
					polled.set("a=1", "b=1")
					server.AddFaults(polled.faults()...)
					f := newVirtualFactory(t, server, Options{Types: types,
						Defaults: ResourceOptions{Storage: Storage{Mode: mode}}})
					checkPolled(t, f, server, polled)
				})
			})
		}
	}
}

func listOnlyRegistry(listOnly bool) *registry {
	types := newRegistry()
	types.set("widgets", func(t *typesource.Type) {
		if listOnly {
			t.Versions, t.ListOnly = nil, t.Versions
		}
	})
	return types
}

func checkPolled(t *testing.T, f *Factory, server *apitest.Server, polled *listOnlyServer) {
	t.Helper()
	i := mustInformer(t, f, widgets)
	var events eventLog
	if _, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { events.add("add") },
		UpdateFunc: func(any, any) { events.add("update") },
		DeleteFunc: func(any) { events.add("delete") },
	}); err != nil {
		t.Fatal(err)
	}
	expect := func(step string, want ...string) {
		t.Helper()
		// StorageNone has no content to compare without resource versions: each list may be a change.
		observe(t, i, step, time.Minute, briefStatus{State: status.Synced, Reason: status.ReasonPolled})
		if got := fmt.Sprint(events.all()); got != fmt.Sprint(want) && i.options.Storage.Mode != StorageNone {
			t.Errorf("%s: the handler received %v, want %v", step, got, want)
		}
	}
	start(t, f)
	all := []string{"add", "add"}
	expect("at first", all...)
	if s := i.Status(); !strings.Contains(s.Message, "cannot be watched") || s.Relists.Total() > 0 {
		t.Errorf("Status() = %+v, want the reason and no relists", s)
	}
	lists := count(server, "list "+widgetsPath)
	time.Sleep(time.Hour)
	expect("quiet", all...)
	if polls := count(server, "list "+widgetsPath) - lists; polls < 60 || polls > 110 {
		t.Errorf("%d lists in a quiet hour, want one in 45 s", polls)
	}
	polled.set("b=1", "a=2")
	all = append(all, "update")
	expect("after a change", all...)
	polled.set("b=1")
	all = append(all, "delete")
	expect("after a deletion", all...)
	server.AddFaults(fault(widgetsPath, "", http.StatusServiceUnavailable))
	observe(t, i, "failing", 2*time.Minute,
		briefStatus{State: status.Degraded, Reason: status.ReasonRequestFailed, Stale: true})
	server.Repair()
	server.AddFaults(polled.faults()...)
	expect("repaired", all...)
	polled.set("b=1", "c=1")
	synctest.Wait()
	if err := i.Relist(longContext(t)); err != nil || len(i.GetStore().ListKeys()) != 2 {
		t.Errorf("Relist() = %v, and the cache has %v", err, i.GetStore().ListKeys())
	}
	if watches := count(server, "watch "+widgetsPath); watches > 10 {
		t.Errorf("%d watches were tried in an hour, want one in ten minutes", watches)
	}
}

// TestPolledTypeBecomesWatchable verifies that a type is watched as soon as the server supports that.
func TestPolledTypeBecomesWatchable(t *testing.T) {
	for _, types := range []*registry{nil, listOnlyRegistry(true)} {
		onFakeClock(t, func(t *testing.T, server *apitest.Server) {
			server.AddFaults(fault(widgetsPath, "watch", http.StatusMethodNotAllowed),
				fault(widgetsPath, "watch-list", http.StatusMethodNotAllowed))
			server.Create(t, widgets, widget("web", "a"))
			options := Options{}
			if types != nil {
				options.Types = types
			}
			f := newVirtualFactory(t, server, options)
			i := mustInformer(t, f, widgets)
			start(t, f)
			observe(t, i, "at first", time.Minute, briefStatus{State: status.Synced, Reason: status.ReasonPolled})
			server.Repair()
			if types != nil {
				types.set("widgets", nil)
			}
			observe(t, i, "watchable", 11*time.Minute, briefStatus{State: status.Synced})
			server.Create(t, widgets, widget("web", "b"))
			synctest.Wait()
			if keys := i.GetStore().ListKeys(); len(keys) != 2 {
				t.Errorf("the cache has %v, want the new object at once", keys)
			}
		})
	}
}

// TestRepeatedKeys verifies that the status names objects that a list has under the key of another object.
func TestRepeatedKeys(t *testing.T) {
	for name, options := range map[string]ResourceOptions{"all namespaces": {},
		"two namespaces": {Namespaces: InNamespaces("web", "db")}} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				polled := &listOnlyServer{}
				polled.set("a=1", "b=1", "a=2")
				path := widgetsPath
				if name == "two namespaces" {
					path = "/apis/example.com/v1/namespaces/web/widgets"
				}
				server.AddFaults(fault(path, "watch", http.StatusMethodNotAllowed),
					fault(path, "watch-list", http.StatusMethodNotAllowed),
					apitest.Fault{Path: path, Verb: "list", Effect: polled.list})
				f := newVirtualFactory(t, server, Options{Defaults: options})
				i := mustInformer(t, f, widgets)
				start(t, f)
				observe(t, i, "repeated", 5*time.Minute,
					briefStatus{State: status.Synced, Reason: status.ReasonRepeatedKeys})
				if s := i.Status(); !strings.Contains(s.Message, "3 objects with only 2 different names, for example web/a twice") ||
					!strings.Contains(s.Message, "cannot be watched") {
					t.Errorf("Status().Message = %q", s.Message)
				}
				polled.set("a=1", "b=1")
				observe(t, i, "repaired", 5*time.Minute,
					briefStatus{State: status.Synced, Reason: status.ReasonPolled})
			})
		})
	}
}
