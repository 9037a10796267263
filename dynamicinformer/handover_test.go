package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// acquireSynced returns synced informers of widgets, one for each set of options.
func acquireSynced(t *testing.T, f *Factory, options ...ResourceOptions) (informers []*Informer) {
	t.Helper()
	for _, o := range options {
		h, err := f.Acquire(widgets, o)
		must(t, err)
		must(t, h.WaitForSync(t.Context()))
		informers = append(informers, h.Informer())
	}
	return informers
}

// recordAll adds one handler to several informers.
func recordAll(t *testing.T, informers []*Informer) (*events, []cache.ResourceEventHandlerRegistration) {
	t.Helper()
	e := &events{}
	var all []cache.ResourceEventHandlerRegistration
	for _, i := range informers {
		r, err := i.AddEventHandler(WithLeftShard(cache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { e.record("add", obj) },
			UpdateFunc: func(before, obj any) { // a relist also delivers unchanged objects
				if before.(metav1.Object).GetResourceVersion() != obj.(metav1.Object).GetResourceVersion() {
					e.record("update", obj)
				}
			},
			DeleteFunc: func(obj any) { e.record("delete", obj) },
		}, func(obj any) { e.record("left", obj) }))
		must(t, err)
		all = append(all, r)
	}
	return e, all
}

func setLabel(value int, u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetLabels(map[string]string{"changed": fmt.Sprint(value)})
	return u
}

// TestMoveHandlers moves a handler from two namespaces to all objects, and to other namespaces, in all
// storage modes. It receives the differences and then the events.
func TestMoveHandlers(t *testing.T) {
	for _, mode := range []StorageMode{StoragePacked, StorageObject, StorageMetadata} {
		t.Run(mode.String(), func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				server.Create(t, widgets, widget("a", "x"), widget("b", "x"), widget("c", "x"))
				f := newFactory(t, server, Options{})
				must(t, f.Start(longContext(t)))
				first := acquireSynced(t, f, ResourceOptions{Namespaces: InNamespaces("a")},
					ResourceOptions{Namespaces: InNamespaces("b")})
				e, registrations := recordAll(t, first)
				expectEvents(t, "start", e, "add a/x", "add b/x")
				move := &HandlerMove{From: first,
					Handlers: [][]cache.ResourceEventHandlerRegistration{registrations},
					To:       acquireSynced(t, f, ResourceOptions{Storage: Storage{Mode: mode}})}
				server.Update(t, widgets, setLabel(1, widget("b", "x")))
				calls := 0
				if err := MoveHandlers(t.Context(), func() { calls++ }, move); err != nil || calls != 1 {
					t.Fatalf("MoveHandlers() = %v with %d calls of ready, want 1", err, calls)
				}
				expectEvents(t, "all", e, "add c/x", "update b/x")
				server.Delete(t, widgets, "a", "x")
				server.Create(t, widgets, widget("a", "y"))
				expectEvents(t, "later", e, "add a/y", "delete a/x")
				move.From, move.To = move.To,
					acquireSynced(t, f, ResourceOptions{Namespaces: InNamespaces("a")},
						ResourceOptions{Namespaces: InNamespaces("b")})
				move.Owner = func(namespace string) int {
					return max(slices.Index([]string{"a", "b"}, namespace), 0)
				}
				must(t, MoveHandlers(t.Context(), func() {}, move))
				expectEvents(t, "two namespaces", e, "gone c/x")
				server.Update(t, widgets, setLabel(2, widget("b", "x")), widget("c", "x"))
				expectEvents(t, "at the end", e, "update b/x")
				if all := move.Handlers[0]; len(all) != 2 || !all[0].HasSynced() ||
					len(move.From[0].Handlers()) != 0 {
					t.Errorf("%d registrations after the move, want 2 that have synced", len(all))
				}
			})
		})
	}
}

// TestMoveHandlersHistories moves a handler between sets of informers while objects change, and while the CRD
// is deleted, created, served and not served. The informers of a move may not have begun to run. The handler
// must receive no addition of a known object, no update of an unchanged one, no update or deletion of an
// unknown one, no deletion of an object that exists, and no deletion that no watch has seen while the version
// is not served. In the end, it has the objects of the server.
func TestMoveHandlersHistories(t *testing.T) {
	for seed := range uint64(60) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			onFakeClock(t, func(t *testing.T, server *apitest.Server) {
				h := newMoveHistory(t, server, rand.New(rand.NewPCG(seed, 0)))
				h.move = h.moveHandlers
				if diff := cmp.Diff(h.play(), h.live); diff != "" || len(h.problems) > 0 {
					h.Errorf("the objects of the handler (-want +got):\n%s; wrong events: %q", diff, h.problems)
				}
			})
		})
	}
}

// moveHistory is a random history of one handler. live has the resource versions of its objects by key.
type moveHistory struct {
	*testing.T
	*rand.Rand
	server  *apitest.Server
	types   *registry
	factory *Factory
	uid     int

	mu       sync.Mutex
	live     map[string]string
	unserved bool // no version is served, and the CRD exists
	// wasUnserved is set after that: a list then delivers unchanged objects as updates.
	wasUnserved bool
	ended       bool // the watches have ended since unserved was set
	// deleted has each object that the test has deleted. A watch ends shortly after its version is no longer
	// served, and delivers the deletions before. The value is true while such an event may be on its way.
	deleted  map[types.UID]bool
	problems []string
	// selects are the conditions of the options in use; the last one is current.
	selects []func(key string) bool

	move          func()
	current       []*Informer
	handles       []*Handle
	registrations []cache.ResourceEventHandlerRegistration
}

func newMoveHistory(t *testing.T, server *apitest.Server, random *rand.Rand) *moveHistory {
	h := &moveHistory{T: t, Rand: random, server: server, types: newRegistry(), live: map[string]string{},
		deleted: map[types.UID]bool{}}
	h.factory = newFactory(t, server, Options{Types: h.types, Linger: -1})
	must(t, h.factory.Start(longContext(t)))
	return h
}

func (h *moveHistory) handle(event string, obj any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if gone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		obj = gone.Obj
	}
	o := obj.(metav1.Object)
	key := o.GetNamespace() + "/" + o.GetName()
	before, known := h.live[key]
	watched, deleted := h.deleted[o.GetUID()]
	deselected := slices.ContainsFunc(h.selects, func(has func(string) bool) bool { return !has(key) })
	if known == (event == "add") || event == "delete" && !deselected && (!deleted || h.unserved && !watched) ||
		event == "update" && (naming.IsOlder(o.GetResourceVersion(), before) ||
			before == o.GetResourceVersion() && !h.wasUnserved) {
		h.problems = append(h.problems, fmt.Sprintf("%s %s, known at version %q, deleted: %t, not served: %t",
			event, key, before, deleted, h.unserved))
	}
	h.live[key] = o.GetResourceVersion()
	if event == "delete" {
		delete(h.live, key)
	}
}

// acquire acquires informers that together select all objects.
func (h *moveHistory) acquire() (informers []*Informer, handles []*Handle) {
	sets := [][]ResourceOptions{
		{{}}, {{Storage: Storage{Mode: StorageObject}}}, {{Storage: Storage{Mode: StorageMetadata}}},
		{{Namespaces: InNamespaces("a")}, {Namespaces: InNamespaces("b")}},
		{{Namespaces: InNamespaces("a", "b")}}, {{Namespaces: MatchingNamespaces([]string{"a", "b"}, nil)}},
	}
	for _, o := range sets[h.IntN(len(sets))] {
		handle, err := h.factory.Acquire(widgets, o)
		if err != nil {
			h.Fatal(err)
		}
		informers, handles = append(informers, handle.Informer()), append(handles, handle)
	}
	return informers, handles
}

func (h *moveHistory) moveHandlers() {
	to, handles := h.acquire()
	if h.current == nil {
		for _, i := range to {
			r, err := i.AddEventHandler(cache.ResourceEventHandlerFuncs{
				AddFunc:    func(obj any) { h.handle("add", obj) },
				UpdateFunc: func(_, obj any) { h.handle("update", obj) },
				DeleteFunc: func(obj any) { h.handle("delete", obj) },
			})
			if err != nil {
				h.Fatal(err)
			}
			h.registrations = append(h.registrations, r)
		}
		h.current, h.handles = to, handles
		return
	}
	m := &HandlerMove{From: h.current, To: to,
		Handlers: [][]cache.ResourceEventHandlerRegistration{h.registrations},
		Owner:    func(namespace string) int { return min(len(to)-1, map[string]int{"b": 1}[namespace]) }}
	if MoveHandlers(h.Context(), func() {}, m) == nil {
		h.current, h.handles, handles = to, handles, h.handles
	}
	for _, old := range handles {
		old.Release()
	}
	h.registrations = m.Handlers[0]
}

// settle waits until the watches of a version that is not served have ended, and all events are handled.
func (h *moveHistory) settle() {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = h.unserved
	for uid := range h.deleted {
		h.deleted[uid] = false
	}
}

// delete deletes an object, which the handler may learn from a watch.
func (h *moveHistory) delete(objects map[string]types.UID, key string) {
	h.mu.Lock()
	h.deleted[objects[key]] = !h.unserved || !h.ended
	h.mu.Unlock()
	delete(objects, key)
	namespace, name, _ := strings.Cut(key, "/")
	h.server.Delete(h.T, widgets, namespace, name)
}

func (h *moveHistory) serve(versions ...string) {
	h.settle()
	h.mu.Lock()
	h.unserved = len(versions) == 0
	h.wasUnserved = h.wasUnserved || h.unserved
	h.mu.Unlock()
	h.types.set("widgets", func(t *typesource.Type) {
		t.Versions, t.UID = versions, types.UID(fmt.Sprint(h.uid))
	})
}

// step makes a random change.
func (h *moveHistory) step(objects map[string]types.UID, exists bool) bool {
	key := []string{"a", "b"}[h.IntN(2)] + "/" + fmt.Sprint(h.IntN(3))
	namespace, name, _ := strings.Cut(key, "/")
	switch n := h.IntN(12); {
	case n < 3 && objects[key] != "":
		h.server.Update(h.T, widgets, setLabel(h.Int(), widget(namespace, name)))
	case n < 3 && exists:
		u := widget(namespace, name)
		u.SetUID(types.UID(fmt.Sprintf("%s-%d-%d", key, h.uid, len(h.deleted))))
		h.server.Create(h.T, widgets, u)
		objects[key] = u.GetUID()
	case n < 5 && objects[key] != "":
		h.delete(objects, key)
	case n < 6 && exists: // a deleted CRD has no objects
		for key := range objects {
			h.delete(objects, key)
		}
		h.mu.Lock()
		h.unserved = false
		h.mu.Unlock()
		h.types.remove("widgets")
		return false
	case n < 8 && !exists:
		h.uid++
		h.serve("v1")
		return true
	case n < 8 && exists:
		h.serve([][]string{{"v1"}, {}}[h.IntN(2)]...)
	case n < 10:
		h.move()
	default:
		time.Sleep(time.Duration(h.IntN(2000)) * time.Millisecond)
		h.settle()
	}
	return exists
}

// play returns the versions of the objects of the server, after all events.
func (h *moveHistory) play() map[string]string {
	objects, exists, versions := map[string]types.UID{}, false, map[string]string{}
	h.move()
	for range 60 {
		exists = h.step(objects, exists)
	}
	if !exists {
		h.uid++
	}
	h.serve("v1")
	time.Sleep(time.Minute)
	synctest.Wait()
	list, err := h.server.Client(h.T).Resource(widgets).List(h.Context(), metav1.ListOptions{})
	must(h.T, err)
	for _, u := range list.Items {
		versions[u.GetNamespace()+"/"+u.GetName()] = u.GetResourceVersion()
	}
	return versions
}

// TestMoveHandlersFails verifies that if the new informer does not catch up, the handler continues with the
// old one.
func TestMoveHandlersFails(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("a", "x"), widget("b", "x"))
		f := newFactory(t, server, Options{})
		must(t, f.Start(longContext(t)))
		from := acquireSynced(t, f, ResourceOptions{})
		to := acquireSynced(t, f, ResourceOptions{Namespaces: InNamespaces("a")})
		e, registrations := recordAll(t, from)
		expectEvents(t, "start", e, "add a/x", "add b/x")
		server.AddFaults(unansweredRequests(inNamespace("a")))
		server.Create(t, widgets, widget("b", "y"))
		expectEvents(t, "before", e, "add b/y")
		move := &HandlerMove{From: from, To: to,
			Handlers: [][]cache.ResourceEventHandlerRegistration{registrations}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		ended := make(chan error, 1)
		go func() {
			ended <- MoveHandlers(ctx,
				func() { t.Error("ready was called although the new informer has not caught up") }, move)
		}()
		synctest.Wait()
		server.Create(t, widgets, widget("b", "z")) // while events are delayed
		if err := <-ended; !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		expectEvents(t, "after the failure", e, "add b/z")
		server.Update(t, widgets, setLabel(3, widget("b", "x")))
		expectEvents(t, "at the end", e, "update b/x")
		if all := move.Handlers[0]; len(all) != 1 || from[0].RemoveEventHandler(all[0]) != nil ||
			len(from[0].Handlers()) != 0 {
			t.Errorf("%d registrations after the failed move, want 1 at the old informer", len(all))
		}
		server.Repair()
	})
}

// TestMoveHandlersOfShard verifies that objects that leave the shard during a move are not reported as
// deleted, also if the shard regains them.
func TestMoveHandlersOfShard(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widgetInQuarter("x0", 0), widgetInQuarter("x1", 1))
		shard := NewShard(sharding.ByUID, fourShards...)
		f := newFactory(t, server, Options{Defaults: ResourceOptions{Shard: shard}})
		must(t, f.Start(longContext(t)))
		from := acquireSynced(t, f, ResourceOptions{})
		e, registrations := recordAll(t, from)
		expectEvents(t, "start", e, "add ns/x0", "add ns/x1")
		to := acquireSynced(t, f, ResourceOptions{Prune: Prune{Presets: []PrunePreset{PruneManagedFields}}})
		move := &HandlerMove{From: from, To: to,
			Handlers: [][]cache.ResourceEventHandlerRegistration{registrations}}
		must(t, MoveHandlers(t.Context(), func() { shard.SetRanges(fourShards[0]) }, move))
		expectEvents(t, "moved", e, "left ns/x1")
		shard.SetRanges(fourShards...)
		expectEvents(t, "regained", e, "add ns/x1")
		move.From, move.To = to, from
		if err := MoveHandlers(t.Context(), func() {
			shard.SetRanges()
			shard.SetRanges(fourShards...)
			if err := from[0].WaitForShard(t.Context(), fourShards[1]); err != nil {
				t.Error(err)
			}
			shard.SetRanges(fourShards[1:]...)
		}, move); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		e.mu.Lock()
		if slices.Index(e.all, "left ns/x1") > slices.Index(e.all, "add ns/x1") {
			t.Errorf("left was delivered after add: %v", e.all)
		}
		e.mu.Unlock()
		expectEvents(t, "moved back", e, "add ns/x1", "left ns/x0", "left ns/x1")
		if n := len(shard.mu.recorders); n != 0 {
			t.Errorf("%d recorders remain, want 0", n)
		}
	})
}

// TestMoveHandlersKeepsResyncs verifies that a handler keeps its own resync period if the new informer has a
// longer one. A handler without one has the period of its informer.
func TestMoveHandlersKeepsResyncs(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("a", "x"))
		f := newFactory(t, server, Options{})
		must(t, f.Start(longContext(t)))
		short, long := 2*time.Second, 20*time.Second
		from := acquireSynced(t, f, ResourceOptions{Resync: &short})
		to := acquireSynced(t, f, ResourceOptions{Resync: &long, Namespaces: InNamespaces("a")})
		move := &HandlerMove{From: from, To: to}
		var resyncs [2]atomic.Int64
		for k, period := range []*time.Duration{nil, &short} {
			r, err := from[0].AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(any, any) { resyncs[k].Add(1) }}, cache.HandlerOptions{ResyncPeriod: period})
			must(t, err)
			move.Handlers = append(move.Handlers, []cache.ResourceEventHandlerRegistration{r})
		}
		must(t, MoveHandlers(t.Context(), func() {}, move))
		time.Sleep(50 * time.Second) // on the virtual clock
		synctest.Wait()
		if without, with := resyncs[0].Load(), resyncs[1].Load(); without != 2 || with < 20 || with > 25 {
			t.Errorf("%d resyncs without an own period, want 2; %d with an own period, want 20 to 25",
				without, with)
		}
	})
}
