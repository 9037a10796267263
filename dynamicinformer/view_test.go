package dynamicinformer

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"

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
