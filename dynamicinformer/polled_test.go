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

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
	if polls := count(server, "list "+widgetsPath) - lists; polls < 140 || polls > 190 {
		t.Errorf("%d lists in a quiet hour, want one in 25 s", polls)
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
				for _, order := range [][]string{{"a=1", "b=1", "a=2"}, {"a=2", "a=1", "b=1"}} {
					polled.set(order...)
					observe(t, i, "repeated", 11*time.Minute,
						briefStatus{State: status.Synced, Reason: status.ReasonRepeatedKeys})
					s := i.Status()
					object, _ := i.Snapshot().Get("web/a")
					if !strings.Contains(s.Message, "3 objects with only 2 different names: the cache has one object of each name, and lacks another web/a") ||
						!strings.Contains(s.Message, "cannot be watched") || object.(*unstructured.Unstructured).Object["usage"] != "2" {
						t.Errorf("%q: Status().Message = %q, object %v", order, s.Message, object)
					}
				}
				polled.set("a=1", "b=1")
				observe(t, i, "repaired", 5*time.Minute,
					briefStatus{State: status.Synced, Reason: status.ReasonPolled})
			})
		})
	}
}

// workspaces answers like the endpoint of several workspaces: objects of different UIDs have one key.
type workspaces struct {
	mu      sync.Mutex
	objects []string // UIDs of widgets named a
	events  chan string
	version int
}

func (s *workspaces) object(uid string) string {
	return fmt.Sprintf(`{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"a","namespace":"web","uid":%q,"resourceVersion":"%d"}}`,
		uid, s.version)
}

// send changes the objects, and sends an event about one of them.
func (s *workspaces) send(event, uid string, objects ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.version++
	s.objects = objects
	s.events <- fmt.Sprintf(`{"type":%q,"object":%s}`+"\n", event, s.object(uid))
}

func (s *workspaces) watch(w http.ResponseWriter, r *http.Request, _ http.Handler) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Query().Get("sendInitialEvents") != "" {
		s.mu.Lock()
		for _, uid := range s.objects {
			_, _ = fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", s.object(uid))
		}
		_, _ = fmt.Fprintf(w, `{"type":"BOOKMARK","object":{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}`+"\n", s.version)
		s.mu.Unlock()
	}
	for {
		w.(http.Flusher).Flush()
		select {
		case event := <-s.events:
			_, _ = io.WriteString(w, event)
		case <-r.Context().Done():
			return
		}
	}
}

// TestUIDsWithOneKey verifies that events of one object never remove another one with the same key, and that
// they cause one list, after which the status states whether there are several objects with one key.
func TestUIDsWithOneKey(t *testing.T) {
	for name, test := range map[string]struct {
		objects    []string // the first list
		event, uid string
		after      []string // the objects after the event
		cached     string
		reason     status.Reason
		lists      int
	}{
		"deletion of the object":              {[]string{"1"}, "DELETED", "1", nil, "", "", 0},
		"deletion of an unknown object":       {[]string{"1"}, "DELETED", "2", []string{"1"}, "1", "", 1},
		"deletion after a lost addition":      {[]string{"1"}, "DELETED", "2", nil, "", "", 1},
		"addition of another object":          {[]string{"1"}, "ADDED", "2", []string{"1", "2"}, "2", status.ReasonRepeatedKeys, 1},
		"replacement":                         {[]string{"1"}, "ADDED", "2", []string{"2"}, "2", "", 1},
		"deletion of one of two listed":       {[]string{"1", "2"}, "DELETED", "1", []string{"2"}, "2", "", 1},
		"deletion of the cached one of two":   {[]string{"1", "2"}, "DELETED", "2", []string{"1"}, "1", "", 1},
		"modification of one of two listed":   {[]string{"1", "2"}, "MODIFIED", "1", []string{"1", "2"}, "1", status.ReasonRepeatedKeys, 0},
		"modification of an object once more": {[]string{"1"}, "MODIFIED", "1", []string{"1"}, "1", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				s := &workspaces{objects: test.objects, version: 1, events: make(chan string, 1)}
				server.AddFaults(apitest.Fault{Path: widgetsPath, Verb: "watch-list", Effect: s.watch},
					apitest.Fault{Path: widgetsPath, Verb: "watch", Effect: s.watch})
				f := newVirtualFactory(t, server, Options{})
				i := mustInformer(t, f, widgets)
				start(t, f)
				time.Sleep(time.Minute)
				s.send(test.event, test.uid, test.after...)
				observe(t, i, "after the event", 5*time.Minute,
					briefStatus{State: status.Synced, Reason: test.reason})
				cached := ""
				for _, o := range i.Snapshot().All() {
					cached += string(o.(interface{ GetUID() types.UID }).GetUID())
				}
				if lists := i.Status().Relists.Total(); cached != test.cached || lists != test.lists {
					t.Errorf("the cache has %q after %d relists, want %q after %d", cached, lists, test.cached, test.lists)
				}
			})
		})
	}
}
