package dynamicinformer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
)

// shardHistory plays a random history. It records the objects on the server and the events of a handler.
type shardHistory struct {
	*shardStage
	random *rand.Rand
	serial int
	// live are the objects on the server, by key; told what the handler was told, the versions by key and
	// UID.
	live map[string]*unstructured.Unstructured
	told map[string]string
	// deleted are the UIDs of what was deleted on the server, buried those of what the handler was told to be
	// deleted.
	deleted, buried sync.Map
}

func identity(obj any) string {
	o := obj.(metav1.Object)
	return o.GetNamespace() + "/" + o.GetName() + " " + string(o.GetUID())
}

// version is that of an object; those of the server are numbers.
func (h *shardHistory) version(obj any) int {
	version, err := strconv.Atoi(obj.(metav1.Object).GetResourceVersion())
	if err != nil {
		h.Error(err)
	}
	return version
}

// handler checks that what it is told adds up: nothing twice, nothing older than before, and nothing deleted
// that exists.
func (h *shardHistory) handler() cache.ResourceEventHandler {
	gone := func(what string, obj any) {
		id := identity(obj)
		if _, known := h.told[id]; !known {
			h.Errorf("%s %s, of which nobody was told", what, id)
		}
		delete(h.told, id)
	}
	return WithLeftShard(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) {
			if _, known := h.told[identity(obj)]; known {
				h.Errorf("added %s twice", identity(obj))
			}
			if _, buried := h.buried.Load(obj.(metav1.Object).GetUID()); buried {
				h.Errorf("added %s, after it was deleted", identity(obj))
			}
			h.told[identity(obj)] = obj.(metav1.Object).GetResourceVersion()
		},
		UpdateFunc: func(before, obj any) {
			if h.told[identity(obj)] != before.(metav1.Object).GetResourceVersion() {
				h.Errorf("updated %s, told of %s before", identity(obj), h.told[identity(obj)])
			}
			if h.version(obj) < h.version(before) {
				h.Errorf("updated %s from %d to %d", identity(obj), h.version(before), h.version(obj))
			}
			h.told[identity(obj)] = obj.(metav1.Object).GetResourceVersion()
		},
		DeleteFunc: func(obj any) {
			if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = lost.Obj
			}
			gone("deleted", obj)
			if _, deleted := h.deleted.Load(obj.(metav1.Object).GetUID()); !deleted {
				h.Errorf("deleted %s, which exists", identity(obj))
			}
			h.buried.Store(obj.(metav1.Object).GetUID(), true)
		},
	}, func(obj any) { gone("departed", obj) })
}

// key is one of few, so that names are used again.
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
		u := inShard(fmt.Sprintf("%s%d", name, h.serial), h.random.IntN(4)) // whose UID is new
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

// move has the shard consist of other ranges.
func (h *shardHistory) move() {
	ranges := []sharding.Range{}
	for _, r := range sharding.Split(16) {
		if h.random.IntN(2) == 0 {
			ranges = append(ranges, r)
		}
	}
	h.shard.SetRanges(ranges...)
	h.inside("at once")
}

// inside checks that the cache has nothing from outside the shard.
func (h *shardHistory) inside(when string) {
	for _, obj := range h.informer.GetStore().List() {
		if !h.shard.Contains(obj.(metav1.Object)) {
			h.Errorf("%s the cache has %s", when, identity(obj))
		}
	}
}

// settle waits until all is well, and compares.
func (h *shardHistory) settle(step string) {
	h.sharding.Disabled.Store(h.random.IntN(2) == 0)
	time.Sleep(2 * time.Minute) // pauses after failures
	synctest.Wait()
	want, has := map[string]string{}, map[string]string{}
	for _, u := range h.live {
		if h.shard.Contains(u) {
			now, err := h.server.Client(h.T).Resource(widgets).Namespace(u.GetNamespace()).
				Get(context.Background(), u.GetName(), metav1.GetOptions{})
			if err != nil {
				h.Fatal(err)
			}
			want[identity(u)] = now.GetResourceVersion()
		}
	}
	for _, obj := range h.informer.GetStore().List() {
		has[identity(obj)] = obj.(metav1.Object).GetResourceVersion()
	}
	if diff := cmp.Diff(want, has); diff != "" {
		h.Errorf("%s: the cache (-want +got):\n%s", step, diff)
	}
	if !maps.Equal(want, h.told) {
		h.Errorf("%s: what was told (-want +got):\n%s", step, cmp.Diff(want, h.told))
	}
	if err := h.informer.WaitForShard(context.Background()); err != nil {
		h.Error(err)
	}
	namespaces := 1
	if !h.informer.options.Namespaces.set.IsAll() {
		namespaces = 3
	}
	if open := int(h.sharding.Watches.Load()); open > namespaces {
		h.Errorf("%s: %d watches are open", step, open)
	}
}

// TestShardHistories: after any history, the cache and the sum of the handler's events equal the shard's
// objects on the server. No existing object is reported as deleted.
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
				live: map[string]*unstructured.Unstructured{}, told: map[string]string{}}
			prepare := func(s *shardStage) {
				h.shardStage = s
				for k := range fourShards {
					s.server.Delete(s.T, widgets, "ns", fmt.Sprint("x", k))
				}
			}
			onShard(t, options, prepare, func(s *shardStage) {
				if _, err := s.informer.AddEventHandler(h.handler()); err != nil {
					t.Fatal(err)
				}
				for round := range 12 {
					for range h.random.IntN(12) {
						h.step()
					}
					h.server.Repair()
					h.settle(fmt.Sprint("round ", round))
				}
			}, 0, 1)
		})
	}
}

// step has one thing happen.
func (h *shardHistory) step() {
	switch h.random.IntN(12) {
	case 0, 1, 2:
		h.move()
	case 3:
		h.server.Compact()
		h.server.CloseClientConnections()
		synctest.Wait() // until nobody takes a closed connection for an idle one
	case 4:
		h.sharding.Disabled.Store(!h.sharding.Disabled.Load())
	case 5:
		h.server.AddFaults(fault(widgetsPath, "watch-list", 422))
	case 6:
		time.Sleep(time.Duration(h.random.IntN(5000)) * time.Millisecond)
	default:
		h.change()
	}
	h.inside("meanwhile")
}
