package dynamicinformer

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// eventJournal records the calls of a handler.
type eventJournal struct {
	mu     sync.Mutex
	events []string
}

func (j *eventJournal) record(event string, obj any) {
	if last, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = last.Obj
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	o := obj.(*unstructured.Unstructured)
	j.events = append(j.events, fmt.Sprintf("%s %s %v", event, o.GetName(), o.Object["spec"]))
}

// take returns the events since the last call, sorted by text.
func (j *eventJournal) take() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	events := j.events
	j.events = nil
	slices.Sort(events)
	return events
}

func addJournal(t *testing.T, i *Informer, j *eventJournal) {
	t.Helper()
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { j.record("add", obj) },
		UpdateFunc: func(old, obj any) { // A list also returns objects with an unchanged version.
			if old.(*unstructured.Unstructured).GetResourceVersion() != obj.(*unstructured.Unstructured).
				GetResourceVersion() {
				j.record("update", obj)
			}
		},
		DeleteFunc: func(obj any) { j.record("delete", obj) },
	})
	must(t, err)
}

func setSpec(u *unstructured.Unstructured, spec string) *unstructured.Unstructured {
	u.Object["spec"] = spec
	return u
}

// restoredClients returns factory options with and without a client.
var restoredClients = map[string]func(*testing.T, *apitest.Server) Options{
	"own client": func(*testing.T, *apitest.Server) Options { return Options{} },
	"other client": func(t *testing.T, s *apitest.Server) Options {
		return Options{Client: s.Client(t)}
	},
}

// TestRestoredServer verifies that caches get the content of a server that was restored from a backup by a
// relist, even of a type whose version the restored server has exceeded. Such a server accepts watches from
// versions that it has not reached, and sends nothing. One list of one object detects the restore for all
// types.
func TestRestoredServer(t *testing.T) {
	for name, options := range restoredClients {
		t.Run(name, func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, setSpec(widget("web", "changed"), "before"),
					widget("web", "deleted"), widget("web", "same"))
				server.Create(t, gadgets, gadget("web", "same"))
				restore := server.Backup(t)

				f := newVirtualFactory(t, server, options(t, server))
				i, g := mustInformer(t, f, widgets), mustInformer(t, f, gadgets)
				var ofWidgets, ofGadgets eventJournal
				addJournal(t, i, &ofWidgets)
				addJournal(t, g, &ofGadgets)
				start(t, f)
				server.Create(t, gadgets, gadget("web", "lost"))
				server.Update(t, widgets, setSpec(widget("web", "changed"), "after"))
				server.Delete(t, widgets, "web", "deleted")
				for n := range 10 {
					server.Create(t, widgets, widget("web", fmt.Sprint("lost", n)))
				}
				synctest.Wait()
				if len(i.GetStore().ListKeys()) != 12 || len(g.GetStore().ListKeys()) != 2 {
					t.Fatal("the informers did not receive the changes before the restore")
				}
				ofWidgets.take()
				ofGadgets.take()

				restore()
				server.Create(t, gadgets, gadget("web", "new1"), gadget("web", "new2"), gadget("web", "new3"))
				before := len(server.Requests())
				server.CloseClientConnections()
				time.Sleep(time.Minute)
				synctest.Wait()

				want := []string{"add deleted <nil>"}
				for n := range 10 {
					want = append(want, fmt.Sprintf("delete lost%d <nil>", n))
				}
				if got := ofWidgets.take(); !slices.Equal(got, append(want, "update changed before")) {
					t.Errorf("handlers of widgets got the events %q, want %q and the update of changed", got,
						want)
				}
				if got := ofGadgets.take(); !slices.Equal(got, []string{"add new1 <nil>", "add new2 <nil>",
					"add new3 <nil>", "delete lost <nil>"}) {
					t.Errorf("handlers of gadgets got the events %q", got)
				}
				checks := slices.DeleteFunc(server.Requests()[before:],
					func(r string) bool { return !strings.HasSuffix(r, "?limit=1") })
				// one shared check, and two by a type whose version the server has not reached
				if len(checks) > 3 {
					t.Errorf("one outage caused the checks %q, want at most 3", checks)
				}
				for _, s := range f.Status() {
					if s.State != status.Synced || s.Reason != status.ReasonNone || s.Stale ||
						name == "own client" && s.Relists != (status.Relists{Restored: 1}) {
						t.Errorf("Status() = %+v, want Synced", s)
					}
				}
				server.Create(t, widgets, widget("web", "newer"))
				synctest.Wait()
				if got := ofWidgets.take(); !slices.Equal(got, []string{"add newer <nil>"}) {
					t.Errorf("after the restore, handlers of widgets got the events %q, want add newer", got)
				}
			})
		})
	}
}

// TestOutagesCostOneCheck verifies that if the watches of many types break, one request gets the server's
// version for all types.
func TestOutagesCostOneCheck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var types []apitest.Type
		for n := range 50 {
			gvr := schema.GroupVersionResource{Group: "example.com", Version: "v1",
				Resource: fmt.Sprintf("t%ds", n)}
			types = append(types, apitest.Type{GVR: gvr, Kind: fmt.Sprint("T", n), Namespaced: true})
		}
		server := apitest.NewInMemory(t, types...)
		f := newVirtualFactory(t, server, Options{})
		for _, typ := range types {
			mustInformer(t, f, typ.GVR)
		}
		start(t, f)
		time.Sleep(3 * time.Minute) // then the check after the end of silent watches is too old
		before := len(server.Requests())
		server.CloseClientConnections()
		time.Sleep(time.Minute)
		checks, watches := 0, 0
		for _, r := range server.Requests()[before:] {
			switch {
			case strings.HasPrefix(r, "watch "):
				watches++
			case strings.HasSuffix(r, "?limit=1"):
				checks++
			default:
				t.Errorf("an outage caused the request %q", r)
			}
		}
		if watches != 50 || checks == 0 || checks > 2 {
			t.Errorf("%d watches and %d checks, want 50 and 1 or 2", watches, checks)
		}
	})
}

// awaitKeys waits until a cache has a number of objects.
func awaitKeys(t *testing.T, i *Informer, want int) {
	t.Helper()
	must(t, i.KeepHistory(10))
	ctx := longContext(t)
	for h := i.History(); h.Snapshot.Len() != want; h = i.History() {
		select {
		case <-h.Next:
		case <-ctx.Done():
			t.Fatalf("timed out with the keys %q; Status() = %+v", i.GetStore().ListKeys(), i.Status())
		}
	}
}

// TestRestoredServerAndPersistence verifies that after a restore, the persisted content equals the server's.
// A process that was not running during the restore lists everything, because its version is larger than the
// server's.
func TestRestoredServerAndPersistence(t *testing.T) {
	server, backend := newServer(t), newMemoryBackend()
	server.Create(t, widgets, widget("web", "same"), widget("web", "deleted"))
	restore := server.Backup(t)
	server.Delete(t, widgets, "web", "deleted")
	server.Create(t, widgets, widget("web", "lost1"), widget("web", "lost2"))

	f := newFactory(t, server, Options{Persistence: backend})
	i := startSynced(t, f)
	server.AwaitRequest(t, widgetsPath, "watch")
	restore()
	server.CloseClientConnections()
	awaitKeys(t, i, 2)
	must(t, f.Shutdown(longContext(t)))
	want := []string{"web/deleted", "web/same"}
	resumed := resume(t, server, backend, ResourceOptions{})
	if got := slices.Sorted(slices.Values(resumed.GetStore().ListKeys())); !slices.Equal(got, want) ||
		!resumed.Persistence().Resumed {
		t.Errorf("the cache has the keys %q and Persistence() = %+v, want the server's keys, resumed", got,
			resumed.Persistence())
	}
	server.Create(t, widgets, widget("web", "lost3"), widget("web", "lost4"))
	awaitKeys(t, resumed.Informer, 4)
	must(t, resumed.factory.Shutdown(longContext(t)))
	restore()
	last := resume(t, server, backend, ResourceOptions{})
	if got := slices.Sorted(slices.Values(last.GetStore().ListKeys())); !slices.Equal(got, want) {
		t.Errorf("the cache has the keys %q, want the server's", got)
	}
}
