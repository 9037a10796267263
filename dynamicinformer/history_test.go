package dynamicinformer

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// TestHistories changes objects at random while the server fails at random. After the server has recovered,
// the cache, and the objects that a handler rebuilds from its events, must equal the server's content.
func TestHistories(t *testing.T) {
	views := map[string]ResourceOptions{
		"all":            {},
		"one namespace":  {Namespaces: InNamespaces("b")},
		"several":        {Namespaces: InNamespaces("a", "b", "d")},
		"all but":        {Namespaces: ExceptNamespaces("c")},
		"object storage": {Namespaces: InNamespaces("a", "c"), Storage: Storage{Mode: StorageObject}},
	}
	for name, view := range views {
		for seed := range uint64(8) {
			t.Run(fmt.Sprintf("%s/%d", name, seed), func(t *testing.T) {
				onFakeClock(t, func(t *testing.T, server *apitest.Server) {
					h := newHistory(t, server, view, seed)
					for range 60 {
						h.step()
					}
					h.recover()
				})
			})
		}
	}
}

type randomHistory struct {
	*testing.T
	random  *rand.Rand
	server  *apitest.Server
	options ResourceOptions
	i       *Informer
	steps   []string

	mu sync.Mutex
	// delivered holds the UID and resource version of each object that the handler received, by key.
	delivered map[string]string
}

func newHistory(t *testing.T, server *apitest.Server, view ResourceOptions, seed uint64) *randomHistory {
	h := &randomHistory{T: t, random: rand.New(rand.NewPCG(seed, 1)), server: server, options: view,
		delivered: map[string]string{}}
	f := newVirtualFactory(t, server, Options{Defaults: view, ListConcurrency: 1 + int(seed%3)})
	h.i = mustInformer(t, f, widgets)
	if _, err := h.i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { h.record("add", obj) }, UpdateFunc: func(_,
			obj any) {
			h.record("update", obj)
		}, DeleteFunc: func(obj any) { h.record("delete", obj) },
	}); err != nil {
		t.Fatal(err)
	}
	if seed%2 == 0 {
		start(t, f)
	} else {
		time.AfterFunc(time.Minute, func() { _ = f.Start(context.Background()) })
	}
	return h
}

// record checks that an event continues the handler's earlier events.
func (h *randomHistory) record(event string, obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = lost.Obj
	}
	u := obj.(*unstructured.Unstructured)
	key, identity := u.GetNamespace()+"/"+u.GetName(), string(u.GetUID())
	h.mu.Lock()
	defer h.mu.Unlock()
	known, exists := h.delivered[key]
	if exists != (event != "add") || exists && known != identity {
		h.Errorf("%s of %s with UID %s; the known UID is %q", event, key, identity, known)
	}
	if event == "delete" {
		delete(h.delivered, key)
		return
	}
	h.delivered[key] = identity
}

func pickRandom[T any](h *randomHistory, values ...T) T { return values[h.random.IntN(len(values))] }

func (h *randomHistory) step() {
	ns, name := pickRandom(h, "a", "b", "c", "d"), pickRandom(h, "x", "y", "z")
	objects := h.server.Client(h.T).Resource(widgets).Namespace(ns)
	ctx := context.Background()
	kind := h.random.IntN(12)
	switch {
	case kind < 4:
		_, _ = objects.Create(ctx, widget(ns, name), metav1.CreateOptions{}) // fails if the object exists
	case kind < 6:
		label := fmt.Appendf(nil, `{"metadata":{"labels":{"step":"%d"}}}`, len(h.steps))
		// fails if the object does not exist
		_, _ = objects.Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{})
	case kind < 8:
		_ = objects.Delete(ctx, name, metav1.DeleteOptions{}) // fails if the object does not exist
	case kind == 8:
		h.server.AddFaults(apitest.Fault{
			Path: pickRandom(h, widgetsPath, inNamespace(ns)), Verb: pickRandom(h, "list", "watch", "watch-list"),
			Status: pickRandom(h, 0, http.StatusOK, http.StatusForbidden, http.StatusNotFound,
				http.StatusUnprocessableEntity, http.StatusTooManyRequests, http.StatusInternalServerError),
			RetryAfter: pickRandom(h, "", "1", "30"),
		})
	case kind == 9:
		h.server.Repair()
	case kind == 10:
		h.server.CloseClientConnections()
	default:
		h.server.Compact()
	}
	h.steps = append(h.steps, fmt.Sprintf("%d %s/%s", kind, ns, name))
	most := pickRandom(h, time.Millisecond, time.Second, 2*time.Minute)
	time.Sleep(time.Duration(h.random.Int64N(int64(most))))
}

// recover removes the server's faults, and compares the content.
func (h *randomHistory) recover() {
	h.server.Repair()
	h.server.CloseClientConnections() // to end unanswered requests
	h.i.Retry()
	time.Sleep(5 * time.Minute)
	synctest.Wait()
	list, err := h.server.Client(h.T).Resource(widgets).List(context.Background(), metav1.ListOptions{})
	if err != nil {
		h.Fatal(err)
	}
	want, delivered := map[string]string{}, map[string]string{}
	for _, u := range list.Items {
		if h.options.Namespaces.set.Has(u.GetNamespace()) {
			want[u.GetNamespace()+"/"+u.GetName()] = u.GetResourceVersion()
			delivered[u.GetNamespace()+"/"+u.GetName()] = string(u.GetUID())
		}
	}
	got := map[string]string{}
	for _, obj := range h.i.GetStore().List() {
		u := obj.(*unstructured.Unstructured)
		got[u.GetNamespace()+"/"+u.GetName()] = u.GetResourceVersion()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		h.Errorf("the cache (-server +cache):\n%s", diff)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if diff := cmp.Diff(delivered, h.delivered); diff != "" {
		h.Errorf("the events of the handler (-server +handler):\n%s", diff)
	}
	if s := h.i.Status(); s.State != status.Synced || s.Reason != status.ReasonNone || s.Stale {
		h.Errorf("Status() = %+v, want Synced", s)
	}
	if h.Failed() {
		h.Logf("the steps were %q", h.steps)
	}
}
