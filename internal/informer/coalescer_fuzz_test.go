package informer

import (
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/naming"
)

// replicaHandler is a rebuildingHandler that records the states that it receives.
type replicaHandler struct {
	rebuildingHandler
	events int
	// states are the received states of each object, in order.
	states map[string][]string
	// initial contains the objects that were added with isInInitialList.
	initial map[string]bool
}

func (r *replicaHandler) receive(event string, obj any) {
	u := obj.(*unstructured.Unstructured)
	id := u.GetName() + "@" + string(u.GetUID())
	r.events++
	r.states[id] = append(r.states[id], event+u.GetResourceVersion())
}

func (r *replicaHandler) OnAdd(obj any, initial bool) {
	r.rebuildingHandler.OnAdd(obj, initial)
	r.receive("", obj)
	if u := obj.(*unstructured.Unstructured); initial {
		r.initial[u.GetName()+"@"+string(u.GetUID())] = true
	}
}

func (r *replicaHandler) OnUpdate(oldObj, newObj any) {
	r.rebuildingHandler.OnUpdate(oldObj, newObj)
	r.receive("", newObj)
}

func (r *replicaHandler) OnDelete(obj any) {
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok { // its state may have been merged
		obj = lost.Obj
	}
	r.rebuildingHandler.OnDelete(obj)
	r.receive("deleted ", obj)
}

func newReplicaHandler(t *testing.T) *replicaHandler {
	r := &replicaHandler{states: map[string][]string{}, initial: map[string]bool{}}
	r.t, r.allowsLateInitial, r.objects = t, true, map[string]*unstructured.Unstructured{}
	return r
}

// FuzzCoalesce applies a history of changes of four names to a handler that coalesces. Each byte of the input
// is a step. It compares the handler with one that gets every event. Each update must start from the last
// received state, and additions and deletions must alternate. At the end, both handlers must have the same
// objects. The received states of each object (name and UID) must be a subsequence of all states, and merged
// events must be counted. When a mark is called, all events before it must have arrived.
func FuzzCoalesce(f *testing.F) {
	for n := range uint64(200) {
		r := rand.New(rand.NewPCG(n, 1))
		steps := make([]byte, 10+r.IntN(60))
		for k := range steps {
			steps[k] = byte(r.Uint32())
		}
		f.Add(steps)
	}
	f.Fuzz(func(t *testing.T, steps []byte) {
		synctest.Test(t, func(t *testing.T) { playCoalesced(t, steps) })
	})
}

func playCoalesced(t *testing.T, steps []byte) {
	f := newIdleFeed(t, Options{})
	reference, coalesced, turns := newReplicaHandler(t), newReplicaHandler(t), make(chan struct{})
	_, err := f.AddEventHandler(coalescingHandler{reference, nil, false})
	f.ok(err)
	handle, err := f.AddEventHandler(coalescingHandler{coalesced, turns, true})
	f.ok(err)
	coalescing := handle.(*delivery.Registration)
	f.startIncarnation()
	version, uids := 1, 0
	serverObjects := map[string]*unstructured.Unstructured{}
	deletions := map[string]int{} // by name
	change := func(name string, withNewUID bool) *unstructured.Unstructured {
		version++
		uid := ""
		if u := serverObjects[name]; u != nil && !withNewUID {
			uid = string(u.GetUID())
		} else {
			uids++
			uid = strconv.Itoa(uids)
			deletions[name]++ // of the object that it replaces
		}
		serverObjects[name] = object(name+"@"+uid, version)
		return serverObjects[name]
	}
	list := func() {
		version++
		f.list(version, slices.Collect(maps.Values(serverObjects))...)
	}
	remaining := map[string]*unstructured.Unstructured{}
	for _, step := range steps {
		synctest.Wait() // the handlers run only during this wait
		name, choice := string(rune('a'+step%4)), step/4%16
		switch {
		case choice < 5:
			f.put(change(name, false))
		case choice == 5:
			f.put(change(name, true))
		case choice <= 7 && serverObjects[name] != nil: // deleted, or leaves the selection
			version++
			if u := serverObjects[name]; choice == 7 {
				remaining[name] = u
			}
			final := object(name+"@"+string(serverObjects[name].GetUID()), version)
			delete(serverObjects, name)
			deletions[name]++
			f.delete(final)
		case choice == 8 && remaining[name] != nil && serverObjects[name] == nil: // returns with its UID
			version++
			serverObjects[name] = object(name+"@"+string(remaining[name].GetUID()), version)
			f.put(serverObjects[name])
		case choice == 9: // a list after missed changes
			change(name, step&64 != 0)
			if step&128 != 0 {
				delete(serverObjects, "b")
				deletions["b"]++
			}
			list()
		case choice == 10:
			f.ok(f.partition.Resync())
		case choice == 11 && step&64 != 0:
			f.stopIncarnation()
			f.ok(f.Forget())
			f.startIncarnation()
			for name := range serverObjects {
				deletions[name]++
			}
		case choice == 12:
			list()
		case choice == 13:
			want, before := maps.Clone(reference.objects), maps.Clone(deletions)
			coalescing.Mark(func() {
				for name, u := range want {
					have := coalesced.objects[name]
					if deletions[name] == before[name] && (have == nil ||
						have.GetUID() == u.GetUID() &&
							naming.IsOlder(have.GetResourceVersion(), u.GetResourceVersion())) {
						t.Errorf("at the mark, the handler has %s, want %s", describe(coalesced.objects),
							nameAndVersion(u))
					}
				}
			})
			synctest.Wait()
		default:
			for range step % 4 {
				synctest.Wait()
				select {
				case turns <- struct{}{}:
				default:
				}
			}
		}
	}
	synctest.Wait()
	waiting, events := coalescing.Depth(), reference.events
	if got := coalesced.events + int(coalescing.Coalesced()) + waiting; got != events {
		t.Errorf("%d events were delivered, %d merged and %d are queued; want %d in total", coalesced.events,
			coalescing.Coalesced(),
			waiting, events)
	}
	if most := 2*5 + 1; waiting > 4*most {
		t.Errorf("%d events are queued, want at most %d", waiting, 4*most)
	}
	close(turns)
	f.flush()
	if coalesced.events+int(coalescing.Coalesced()) != reference.events || coalescing.Depth() != 0 ||
		coalescing.Lag() != 0 {
		t.Errorf("%d events were delivered and %d merged, want %d in total; %d are queued for %v, want 0",
			coalesced.events,
			coalescing.Coalesced(), reference.events, coalescing.Depth(), coalescing.Lag())
	}
	if !maps.Equal(reference.objects, coalesced.objects) {
		t.Errorf("the handler knows %v, want %v", describe(coalesced.objects), describe(reference.objects))
	}
	for id, states := range coalesced.states {
		rest := reference.states[id]
		for _, state := range states {
			at := slices.Index(rest, state)
			if at < 0 {
				t.Fatalf("%s: state %q never existed or arrived out of order: got %q of %q", id, state,
					states, reference.states[id])
			}
			rest = rest[at+1:]
		}
	}
	for id := range coalesced.initial {
		if !reference.initial[id] {
			t.Errorf("%s was not in the initial list", id)
		}
	}
	if handle.HasSynced() != f.HasSynced() {
		t.Errorf("HasSynced() of the handler = %v, of the informer = %v, want equal results",
			handle.HasSynced(), f.HasSynced())
	}
}
