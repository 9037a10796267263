package dynamicinformer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
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
	time.Sleep(25 * time.Minute) // silent watches are tried again after 10 minutes
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

// shardHistory applies random changes, and compares the objects on the server with the events of a handler.
type shardHistory struct {
	*shardStage
	random *rand.Rand
	serial int
	// live are the objects on the server, by key. delivered are the resource versions that the handler
	// received, by key and UID.
	live      map[string]*unstructured.Unstructured
	delivered map[string]string
	// deleted are the UIDs of objects deleted on the server; deletedInHandler the UIDs that the handler
	// received as deleted.
	deleted, deletedInHandler sync.Map
}

func identity(obj any) string {
	o := obj.(metav1.Object)
	return o.GetNamespace() + "/" + o.GetName() + " " + string(o.GetUID())
}

// version returns the resource version, which is a number on this server.
func (h *shardHistory) version(obj any) int {
	version, err := strconv.Atoi(obj.(metav1.Object).GetResourceVersion())
	if err != nil {
		h.Error(err)
	}
	return version
}

// handler returns a handler that checks its events. No object is added twice or after its deletion, no
// version decreases, and no existing object is deleted.
func (h *shardHistory) handler() cache.ResourceEventHandler {
	forget := func(event string, obj any) {
		id := identity(obj)
		if _, known := h.delivered[id]; !known {
			h.Errorf("the handler received %s of %s without an earlier add", event, id)
		}
		delete(h.delivered, id)
	}
	return WithLeftShard(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if _, known := h.delivered[identity(obj)]; known {
				h.Errorf("the handler received add of %s twice", identity(obj))
			}
			if _, deletedBefore := h.deletedInHandler.Load(obj.(metav1.Object).GetUID()); deletedBefore {
				h.Errorf("the handler received add of %s after its deletion", identity(obj))
			}
			h.delivered[identity(obj)] = obj.(metav1.Object).GetResourceVersion()
		},
		UpdateFunc: func(before, obj any) {
			if h.delivered[identity(obj)] != before.(metav1.Object).GetResourceVersion() {
				h.Errorf("the handler received update of %s from %s, want from its last version %s",
					identity(obj),
					before.(metav1.Object).GetResourceVersion(), h.delivered[identity(obj)])
			}
			if h.version(obj) < h.version(before) {
				h.Errorf("the handler received update of %s from version %d to the older %d", identity(obj),
					h.version(before), h.version(obj))
			}
			h.delivered[identity(obj)] = obj.(metav1.Object).GetResourceVersion()
		},
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			forget("delete", obj)
			if _, deleted := h.deleted.Load(obj.(metav1.Object).GetUID()); !deleted {
				h.Errorf("the handler received delete of %s, which exists", identity(obj))
			}
			h.deletedInHandler.Store(obj.(metav1.Object).GetUID(), true)
		},
	}, func(obj any) { forget("left shard", obj) })
}

// key returns one of a few keys, so that names are reused.
func (h *shardHistory) key() (namespace, name string) {
	return string(rune('a' + h.random.IntN(3))), string(rune('p' + h.random.IntN(4)))
}

// change creates, updates or deletes an object.
func (h *shardHistory) change() {
	namespace, name := h.key()
	key := namespace + "/" + name
	switch old := h.live[key]; {
	case old == nil:
		h.serial++
		u := widgetInQuarter(fmt.Sprintf("%s%d", name, h.serial), h.random.IntN(4)) // with a new UID
		u.SetNamespace(namespace)
		u.SetName(name)
		h.server.Create(h.T, widgets, u)
		h.live[key] = u
	case h.random.IntN(3) == 0:
		h.deleted.Store(old.GetUID(), true)
		h.server.Delete(h.T, widgets, namespace, name)
		delete(h.live, key)
	default:
		old.SetLabels(map[string]string{"n": fmt.Sprint(h.random.Int())})
		h.server.Update(h.T, widgets, old)
	}
}

// move sets random ranges.
func (h *shardHistory) move() {
	ranges := []sharding.Range{}
	for _, r := range sharding.Split(16) {
		if h.random.IntN(2) == 0 {
			ranges = append(ranges, r)
		}
	}
	h.shard.SetRanges(ranges...)
	h.checkRange("after SetRanges")
}

// checkRange verifies that all cached objects are in the shard.
func (h *shardHistory) checkRange(when string) {
	for _, obj := range h.informer.GetStore().List() {
		if !h.shard.Contains(obj.(metav1.Object)) {
			h.Errorf("%s: the cache has %s, which is not in the shard", when, identity(obj))
		}
	}
}

// compareRecovered waits until the informer has recovered, and compares its cache and events with the server.
func (h *shardHistory) compareRecovered(step string) {
	h.sharding.Disabled.Store(h.random.IntN(2) == 0)
	time.Sleep(2 * time.Minute) // longer than the pauses after failures
	synctest.Wait()
	want, cached := map[string]string{}, map[string]string{}
	for _, u := range h.live {
		if h.shard.Contains(u) {
			current, err := h.server.Client(h.T).Resource(widgets).Namespace(u.GetNamespace()).
				Get(context.Background(), u.GetName(), metav1.GetOptions{})
			if err != nil {
				h.Fatal(err)
			}
			want[identity(u)] = current.GetResourceVersion()
		}
	}
	for _, obj := range h.informer.GetStore().List() {
		cached[identity(obj)] = obj.(metav1.Object).GetResourceVersion()
	}
	if diff := cmp.Diff(want, cached); diff != "" {
		h.Errorf("%s: cached versions (-want +got):\n%s", step, diff)
	}
	if !maps.Equal(want, h.delivered) {
		h.Errorf("%s: versions according to the handler's events (-want +got):\n%s", step,
			cmp.Diff(want, h.delivered))
	}
	if err := h.informer.WaitForShard(context.Background()); err != nil {
		h.Errorf("%s: WaitForShard: %v", step, err)
	}
	namespaces := 1
	if !h.informer.options.Namespaces.set.IsAll() {
		namespaces = 3
	}
	if open := int(h.sharding.Watches.Load()); open > namespaces {
		h.Errorf("%s: %d watches are open, want at most %d", step, open, namespaces)
	}
}

// TestShardHistories verifies for random histories that the cache, and the objects that a handler rebuilds
// from its events, equal the shard's objects on the server, and that no existing object is reported as
// deleted.
func TestShardHistories(t *testing.T) {
	for seed := range uint64(24) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			options := ResourceOptions{}
			if seed%3 == 1 {
				options.Namespaces = InNamespaces("a", "b", "c")
			}
			if seed%4 == 2 {
				options.Storage = Storage{Mode: StorageObject}
			}
			h := &shardHistory{random: rand.New(rand.NewPCG(seed, 7)),
				live: map[string]*unstructured.Unstructured{}, delivered: map[string]string{}}
			prepare := func(s *shardStage) {
				h.shardStage = s
				for k := range fourShards {
					s.server.Delete(s.T, widgets, "ns", fmt.Sprint("x", k))
				}
			}
			withShard(t, options, prepare, func(s *shardStage) {
				if _, err := s.informer.AddEventHandler(h.handler()); err != nil {
					t.Fatal(err)
				}
				for round := range 12 {
					for range h.random.IntN(12) {
						h.step()
					}
					h.server.Repair()
					h.compareRecovered(fmt.Sprint("round ", round))
				}
			}, 0, 1)
		})
	}
}

// step applies one random change.
func (h *shardHistory) step() {
	switch h.random.IntN(12) {
	case 0, 1, 2:
		h.move()
	case 3:
		h.server.Compact()
		h.server.CloseClientConnections()
		synctest.Wait() // so that no closed connection counts as idle
	case 4:
		h.sharding.Disabled.Store(!h.sharding.Disabled.Load())
	case 5:
		h.server.AddFaults(fault(widgetsPath, "watch-list", 422))
	case 6:
		time.Sleep(time.Duration(h.random.IntN(5000)) * time.Millisecond)
	default:
		h.change()
	}
	h.checkRange("after a step")
}
