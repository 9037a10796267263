package informer

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer/delivery"
)

// rebuildingHandler is a handler that rebuilds the server's objects from its events, and checks each event
// against them.
type rebuildingHandler struct {
	t *testing.T
	// allowsLateInitial allows objects of an initial list after other events.
	allowsLateInitial bool

	mu      sync.Mutex
	objects map[string]*unstructured.Unstructured
	// initialEnded is true after an event that is not part of the initial list.
	initialEnded bool
	// calls is the number of running calls.
	calls int
}

func (m *rebuildingHandler) enter(initial bool) func() {
	m.mu.Lock()
	if m.calls++; m.calls != 1 {
		m.t.Error("two concurrent calls of the handler")
	}
	if initial && m.initialEnded && !m.allowsLateInitial {
		m.t.Error("an object of the initial list was added after other events")
	}
	m.initialEnded = m.initialEnded || !initial
	return func() {
		m.calls--
		m.mu.Unlock()
	}
}

func (m *rebuildingHandler) OnAdd(obj any, initial bool) {
	defer m.enter(initial)()
	u := obj.(*unstructured.Unstructured)
	if have := m.objects[u.GetName()]; have != nil {
		m.t.Errorf("OnAdd(%s) for the existing object %s", nameAndVersion(u), nameAndVersion(have))
	}
	m.objects[u.GetName()] = u
}

func (m *rebuildingHandler) OnUpdate(oldObj, newObj any) {
	defer m.enter(false)()
	previous, is := oldObj.(*unstructured.Unstructured), newObj.(*unstructured.Unstructured)
	if m.objects[is.GetName()] != previous {
		m.t.Errorf("OnUpdate from %s, which is not the last received state", nameAndVersion(previous))
	}
	if previous.GetUID() != is.GetUID() {
		m.t.Errorf("OnUpdate from %s to an object with another UID", nameAndVersion(previous))
	}
	m.objects[is.GetName()] = is
}

func (m *rebuildingHandler) OnDelete(obj any) {
	defer m.enter(false)()
	if lost, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		u := lost.Obj.(*unstructured.Unstructured)
		if lost.Key != "ns/"+u.GetName() || m.objects[u.GetName()] != u {
			m.t.Errorf("tombstone with %s and the key %s, which is not the last received state",
				nameAndVersion(u), lost.Key)
		}
		obj = u
	}
	u := obj.(*unstructured.Unstructured)
	if have := m.objects[u.GetName()]; have == nil || have.GetUID() != u.GetUID() {
		m.t.Errorf("OnDelete(%s) for an object that was not added", nameAndVersion(u))
	}
	delete(m.objects, u.GetName())
}

// expect compares the handler's objects with model.
func (m *rebuildingHandler) expect(model map[string]*unstructured.Unstructured) {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if !maps.Equal(m.objects, model) {
		m.t.Errorf("a handler has the objects %v, want %v", describe(m.objects), describe(model))
	}
}

func describe(objects map[string]*unstructured.Unstructured) []string {
	var list []string
	for _, u := range objects {
		list = append(list, nameAndVersion(u)+"@"+string(u.GetUID()))
	}
	slices.Sort(list)
	return list
}

// randomHistory applies random changes to the objects of a server (model), and passes the events to an
// informer with changing handlers.
type randomHistory struct {
	*feed
	random  *rand.Rand
	version int
	model   map[string]*unstructured.Unstructured
	// listed is true if the running informer has received a list.
	listed bool
	// forgets allows that the informer forgets its objects between two runs.
	forgets       bool
	registrations map[*rebuildingHandler]*delivery.Registration
}

func (h *randomHistory) addRebuildingHandler() {
	h.Helper()
	m := &rebuildingHandler{t: h.T, objects: map[string]*unstructured.Unstructured{},
		allowsLateInitial: h.forgets}
	handle, err := h.AddEventHandler(m)
	h.ok(err)
	h.registrations[m] = handle.(*delivery.Registration)
}

// change adds, updates or deletes a random object of the server, and returns its watch event.
func (h *randomHistory) change() (deleted bool, obj *unstructured.Unstructured) {
	h.version++
	name := fmt.Sprint("o", h.random.IntN(8))
	have := h.model[name]
	switch {
	case have == nil || h.random.IntN(6) == 0: // an object with a new UID
		obj = object(fmt.Sprintf("%s@uid-%d", name, h.version), h.version)
	case h.random.IntN(3) == 0:
		obj = object(fmt.Sprintf("%s@%s", name, have.GetUID()), h.version)
		delete(h.model, name)
		return true, obj
	default:
		obj = object(fmt.Sprintf("%s@%s", name, have.GetUID()), h.version)
	}
	h.model[name] = obj
	return false, obj
}

func (h *randomHistory) relist() {
	h.Helper()
	h.listed = true
	h.list(h.version, slices.Collect(maps.Values(h.model))...)
}

func (h *randomHistory) step() {
	h.Helper()
	switch op := h.random.IntN(40); {
	case !h.listed || op == 0:
		h.relist()
	case op < 28:
		if deleted, obj := h.change(); deleted {
			h.delete(obj)
		} else {
			h.put(obj)
		}
	case op < 30: // changes whose events are missed
		for range h.random.IntN(10) {
			h.change()
		}
		h.relist()
	case op < 32:
		h.ok(h.partition.Resync())
	case op < 34:
		h.addRebuildingHandler()
	case op < 35:
		for m, handle := range h.registrations {
			h.ok(h.RemoveEventHandler(handle))
			delete(h.registrations, m)
			break
		}
	case op < 36:
		h.ok(h.AddIndexers(cache.Indexers{fmt.Sprint("index", h.version,
			h.random.Int()): cache.MetaNamespaceIndexFunc}))
	case op < 37:
		h.version++
		h.ok(h.partition.Bookmark(fmt.Sprint(h.version)))
	case op < 38: // another incarnation
		h.stopIncarnation()
		if h.forgets && h.random.IntN(2) == 0 {
			h.forget()
			h.check(map[string]*unstructured.Unstructured{})
		}
		h.startIncarnation()
		h.listed = false
	default:
		h.flush()
	}
}

func (h *randomHistory) check(model map[string]*unstructured.Unstructured) {
	h.Helper()
	h.flush()
	for m := range h.registrations {
		m.expect(model)
	}
	stored := map[string]*unstructured.Unstructured{}
	for _, obj := range h.GetStore().List() {
		u := obj.(*unstructured.Unstructured)
		stored[u.GetName()] = u
	}
	if !maps.Equal(stored, model) {
		h.Errorf("the cache holds %v, want %v", describe(stored), describe(model))
	}
	for name := range h.GetIndexer().GetIndexers() {
		found, err := h.GetIndexer().ByIndex(name, "ns")
		if err != nil || len(found) != len(model) {
			h.Errorf("index %s holds %d objects (%v), want %d", name, len(found), err, len(model))
		}
	}
}

// TestHistories applies random histories. From its events, each handler must be able to rebuild the cache.
func TestHistories(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			h := &randomHistory{
				feed:          newIdleFeed(t, Options{}),
				random:        rand.New(rand.NewPCG(seed, 3)),
				model:         map[string]*unstructured.Unstructured{},
				forgets:       seed%2 == 0,
				registrations: map[*rebuildingHandler]*delivery.Registration{},
			}
			h.addRebuildingHandler()
			h.startIncarnation()
			for range 400 {
				h.step()
			}
			if !h.listed {
				h.relist()
			}
			h.check(h.model)
			for _, handle := range h.registrations {
				if !handle.HasSynced() || handle.Depth() != 0 {
					t.Errorf("HasSynced() = %v with %d queued events, want true, 0", handle.HasSynced(),
						handle.Depth())
				}
			}
		})
	}
}

// TestHandlersChangeDuringEvents verifies that handlers that are added and removed concurrently with events
// receive consistent events, while indexes and marks are added as well.
func TestHandlersChangeDuringEvents(t *testing.T) {
	h := &randomHistory{feed: newFeed(t, Options{}), random: rand.New(rand.NewPCG(4, 4)),
		model: map[string]*unstructured.Unstructured{}}
	h.relist()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() { // ended by stop
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				m := &rebuildingHandler{t: t, objects: map[string]*unstructured.Unstructured{}}
				handle, err := h.AddEventHandler(m)
				if err != nil {
					t.Error(err)
					return
				}
				if err := handle.(*delivery.Registration).WaitForSync(context.Background()); err != nil {
					t.Error(err)
				}
				if n < 5 {
					if err := h.AddIndexers(cache.Indexers{fmt.Sprint(w, "-",
						n): cache.MetaNamespaceIndexFunc}); err != nil {
						t.Error(err)
					}
					continue // this handler is not removed
				}
				if err := h.RemoveEventHandler(handle); err != nil {
					t.Error(err)
				}
				<-handle.(*delivery.Registration).ShutdownChan()
			}
		})
	}
	for n := range 3000 {
		if deleted, obj := h.change(); deleted {
			h.delete(obj)
		} else {
			h.put(obj)
		}
		if n%500 == 0 {
			h.relist()
		}
	}
	close(stop)
	wg.Wait()
	h.flush()
	registered := h.Registrations()
	for handler, r := range h.registrations {
		if slices.Contains(registered, r) {
			handler.expect(h.model)
		}
	}
}
