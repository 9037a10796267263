package dynamicinformer

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// events records the calls of a handler.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) record(event string, obj any) {
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		event, obj = "gone", gone.Obj
	}
	o := obj.(*unstructured.Unstructured)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event+" "+o.GetNamespace()+"/"+o.GetName())
}

// take returns the events since the last call, sorted.
func (e *events) take() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	all := e.all
	e.all = nil
	slices.Sort(all)
	return all
}

func record(t *testing.T, i *Informer) *events {
	t.Helper()
	e := &events{}
	_, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(obj any) { e.record("add", obj) },
		UpdateFunc: func(_, obj any) { e.record("update", obj) },
		DeleteFunc: func(obj any) { e.record("delete", obj) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func expectEvents(t *testing.T, step string, e *events, want ...string) {
	t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, e.take()); diff != "" {
		t.Errorf("%s: the events (-want +got):\n%s", step, diff)
	}
}

func keysOf(i *Informer) []string {
	keys := i.GetStore().ListKeys()
	slices.Sort(keys)
	return keys
}

// TestNamespaces verifies that each set of namespaces has its objects, existing and new ones, with servers
// with and without watch-lists.
func TestNamespaces(t *testing.T) {
	tests := map[string]struct {
		namespaces Namespaces
		want       []string // namespaces
		paths      []string // paths of the expected requests
	}{
		"all":     {AllNamespaces(), []string{"a", "b", "c"}, []string{widgetsPath}},
		"one":     {InNamespaces("a"), []string{"a"}, []string{inNamespace("a")}},
		"several": {InNamespaces("a", "c"), []string{"a", "c"}, []string{inNamespace("a"), inNamespace("c")}},
		"all but": {ExceptNamespaces("b"), []string{"a", "c"}, []string{widgetsPath}},
	}
	for name, tt := range tests {
		for _, verb := range []string{"watch-list", "list"} {
			t.Run(name+" by "+verb, func(t *testing.T) {
				onFakeClock(t, func(t *testing.T, server *apitest.Server) {
					if verb == "list" {
						for _, path := range tt.paths {
							server.AddFaults(fault(path, "watch-list", 422))
						}
					}
					var initial, added, deleted []string
					for _, ns := range tt.want {
						initial, added, deleted = append(initial, "add "+ns+"/x"), append(added,
							"add "+ns+"/y"), append(deleted, "delete "+ns+"/x")
					}
					all := []string{"a", "b", "c"}
					for _, ns := range all {
						server.Create(t, widgets, widget(ns, "x"))
					}
					f := newVirtualFactory(t, server,
						Options{Defaults: ResourceOptions{Namespaces: tt.namespaces}})
					i := mustInformer(t, f, widgets)
					e := record(t, i)
					start(t, f)
					expectEvents(t, "initial objects", e, initial...)
					if s := i.Status(); s.State != status.Synced || !i.HasSynced() ||
						i.LastSyncResourceVersion() == "" {
						t.Errorf("Status() = %+v, the resource version %q, want Synced", s,
							i.LastSyncResourceVersion())
					}
					for _, ns := range all {
						server.Create(t, widgets, widget(ns, "y"))
					}
					expectEvents(t, "created objects", e, added...)
					for _, ns := range all {
						server.Delete(t, widgets, ns, "x")
					}
					expectEvents(t, "deleted objects", e, deleted...)
					for _, path := range tt.paths {
						if count(server, verb+" "+path+"?") != 1 {
							t.Errorf("the requests are %v, want one for each path", server.Requests())
						}
					}
				})
			})
		}
	}
}

func inNamespace(ns string) string { return "/apis/example.com/v1/namespaces/" + ns + "/widgets" }

// TestOneOfSeveralNamespacesFails verifies that the other namespaces are still watched, and the cache keeps
// the objects of the failing namespace.
func TestOneOfSeveralNamespacesFails(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("a", "x"), widget("b", "x"))
		deny := []apitest.Fault{fault(inNamespace("b"), "list", 403), fault(inNamespace("b"), "watch", 403),
			fault(inNamespace("b"), "watch-list", 403)}
		server.AddFaults(deny...)
		f := newVirtualFactory(t, server,
			Options{Defaults: ResourceOptions{Namespaces: InNamespaces("a", "b")}})
		i := mustInformer(t, f, widgets)
		e := record(t, i)
		start(t, f)
		expectEvents(t, "b is forbidden", e, "add a/x")
		if s := i.Status(); s.State != status.Degraded || s.Reason != status.ReasonForbidden ||
			i.HasSynced() {
			t.Errorf("Status() = %+v, synced: %v, want Degraded with reason Forbidden", s, i.HasSynced())
		}
		server.Repair()
		i.Retry()
		time.Sleep(10 * time.Millisecond)
		expectEvents(t, "b is granted", e, "add b/x")
		if s := i.Status(); s.State != status.Synced || !i.HasSynced() {
			t.Errorf("Status() = %+v, synced: %v, want Synced", s, i.HasSynced())
		}

		// The watch of b ends, and b is denied again; a continues.
		server.AddFaults(deny...)
		server.CloseClientConnections()
		time.Sleep(10 * time.Second)
		e.take() // drop the events of the relist of a
		server.Create(t, widgets, widget("a", "y"), widget("b", "y"))
		expectEvents(t, "b is denied again", e, "add a/y")
		if s := i.Status(); s.State != status.Degraded || !s.Stale || !i.HasSynced() {
			t.Errorf("Status() = %+v, want Degraded", s)
		}
		if diff := cmp.Diff([]string{"a/x", "a/y", "b/x"}, keysOf(i)); diff != "" {
			t.Errorf("the keys (-want +got):\n%s", diff)
		}
		server.Delete(t, widgets, "b", "x")
		server.Repair()
		i.Retry()
		time.Sleep(10 * time.Millisecond)
		expectEvents(t, "b is back", e, "add b/y", "gone b/x")
	})
}
