package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/internal/testkit/apitest"
)

// acquireSynced returns synced informers of widgets, one for each set of options.
func acquireSynced(t *testing.T, f *Factory, options ...ResourceOptions) (informers []*Informer) {
	t.Helper()
	for _, o := range options {
		h, err := f.Acquire(widgets, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := h.WaitForSync(t.Context()); err != nil {
			t.Fatal(err)
		}
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
		if err != nil {
			t.Fatal(err)
		}
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
				if err := f.Start(longContext(t)); err != nil {
					t.Fatal(err)
				}
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
					return max(slices.Index([]string{"a", "b"},
						namespace), 0)
				}
				if err := MoveHandlers(t.Context(), func() {}, move); err != nil {
					t.Fatal(err)
				}
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

// TestMoveHandlersFails verifies that if the new informer does not catch up, the handler continues with the
// old one.
func TestMoveHandlersFails(t *testing.T) {
	onFakeClock(t, func(t *testing.T, server *apitest.Server) {
		server.Create(t, widgets, widget("a", "x"), widget("b", "x"))
		f := newFactory(t, server, Options{})
		if err := f.Start(longContext(t)); err != nil {
			t.Fatal(err)
		}
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
		if err := f.Start(longContext(t)); err != nil {
			t.Fatal(err)
		}
		from := acquireSynced(t, f, ResourceOptions{})
		e, registrations := recordAll(t, from)
		expectEvents(t, "start", e, "add ns/x0", "add ns/x1")
		to := acquireSynced(t, f, ResourceOptions{Prune: Prune{Presets: []PrunePreset{PruneManagedFields}}})
		move := &HandlerMove{From: from, To: to,
			Handlers: [][]cache.ResourceEventHandlerRegistration{registrations}}
		if err := MoveHandlers(t.Context(), func() { shard.SetRanges(fourShards[0]) }, move); err != nil {
			t.Fatal(err)
		}
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
		if err := f.Start(longContext(t)); err != nil {
			t.Fatal(err)
		}
		short, long := 2*time.Second, 20*time.Second
		from := acquireSynced(t, f, ResourceOptions{Resync: &short})
		to := acquireSynced(t, f, ResourceOptions{Resync: &long, Namespaces: InNamespaces("a")})
		move := &HandlerMove{From: from, To: to}
		var resyncs [2]atomic.Int64
		for k, period := range []*time.Duration{nil, &short} {
			r, err := from[0].AddEventHandlerWithOptions(cache.ResourceEventHandlerFuncs{
				UpdateFunc: func(any, any) { resyncs[k].Add(1) }}, cache.HandlerOptions{ResyncPeriod: period})
			if err != nil {
				t.Fatal(err)
			}
			move.Handlers = append(move.Handlers, []cache.ResourceEventHandlerRegistration{r})
		}
		if err := MoveHandlers(t.Context(), func() {}, move); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Second) // on the virtual clock
		synctest.Wait()
		if without, with := resyncs[0].Load(), resyncs[1].Load(); without != 2 || with < 20 || with > 25 {
			t.Errorf("%d resyncs without an own period, want 2; %d with an own period, want 20 to 25",
				without, with)
		}
	})
}
