package informer

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	testclock "k8s.io/utils/clock/testing"

	"github.com/crdcache/crdcache/internal/informer/delivery"
)

func expect(t *testing.T, name string, got, want []string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", name, diff)
	}
}

func TestInitialListIsMarked(t *testing.T) {
	f := newIdleFeed(t, Options{})
	log, _ := f.recordEvents()
	f.startIncarnation()
	f.list(2, object("a", 1), object("b", 2))
	f.put(object("c", 3))
	f.list(4, object("a", 1), object("b", 2), object("c", 3), object("d", 4))
	f.flush()
	expect(t, "events", log.take(), []string{
		"initial a1", "initial b2", "add c3", "update a1 a1", "update b2 b2", "update c3 c3", "add d4",
	})
}

func TestHandlersSeeEveryChangeInOrder(t *testing.T) {
	f := newFeed(t, Options{})
	log, _ := f.recordEvents()
	f.list(1)
	var want []string
	for v := 1; v <= 2000; v++ {
		f.put(object("a", v))
		if v == 1 {
			want = append(want, "add a1")
			continue
		}
		want = append(want, fmt.Sprintf("update a%d a%d", v-1, v))
	}
	f.flush()
	expect(t, "events", log.take(), want)
}

func TestCacheIsUpdatedBeforeHandlers(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(1)
	found := make(chan int, 2)
	_, err := f.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(any) {
			indexed, _ := f.GetIndexer().ByIndex(cache.NamespaceIndex, "ns")
			found <- len(indexed)
		},
		DeleteFunc: func(any) { found <- len(f.GetIndexer().List()) },
	})
	f.ok(err)
	f.put(object("a", 2))
	f.flush()
	f.delete(object("a", 3))
	f.flush()
	if in, out := <-found, <-found; in != 1 || out != 0 {
		t.Errorf("the handlers found %d and %d objects in the cache, want 1 and 0", in, out)
	}
}

func TestSlowHandlerDelaysNoOther(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(1)
	gate := make(chan struct{})
	entered := make(chan struct{}, 100)
	slow, slowHandle := f.recordEventsWith(cache.HandlerOptions{}, func(string) {
		entered <- struct{}{}
		<-gate
	})
	fast, fastHandle := f.recordEvents()
	for v := range 50 {
		f.put(object(fmt.Sprint("o", v), v))
	}
	<-entered
	done := make(chan struct{})
	fastHandle.Mark(func() { close(done) })
	<-done
	if got := len(fast.take()); got != 50 {
		t.Errorf("the fast handler has seen %d events, want 50", got)
	}
	if got := slowHandle.Depth(); got != 50 {
		t.Errorf("the slow handler's queue is %d deep, want 50", got)
	}
	if got := len(f.keys()); got != 50 {
		t.Errorf("the cache holds %d objects, want 50", got)
	}
	close(gate)
	f.flush()
	if got := len(slow.take()); got != 50 || slowHandle.Depth() != 0 {
		t.Errorf("in the end the slow handler has seen %d events and %d wait, want 50 and 0", got,
			slowHandle.Depth())
	}
}

func TestHandlerIsSyncedAfterTheInitialList(t *testing.T) {
	f := newIdleFeed(t, Options{})
	gate := make(chan struct{})
	entered := make(chan struct{}, 2)
	_, handle := f.recordEventsWith(cache.HandlerOptions{}, func(string) {
		entered <- struct{}{}
		<-gate
	})
	f.startIncarnation()
	if f.HasSynced() || handle.HasSynced() {
		t.Error("HasSynced() = true before the first list")
	}
	f.list(1, object("a", 1))
	<-entered
	if !f.HasSynced() || !isClosed(f.Synced()) {
		t.Error("the informer has not synced after its first list was stored")
	}
	if handle.HasSynced() || isClosed(handle.Synced()) {
		t.Error("the handler has synced while it handles the first list")
	}
	close(gate)
	f.ok(f.WaitForSync(f.ctx))
	f.ok(handle.WaitForSync(f.ctx))
	if !handle.HasSynced() || !isClosed(handle.Synced()) {
		t.Error("the handler has not synced after the first list")
	}
	if name := handle.HasSyncedChecker().Name(); name != "informer of objects + event handler *informer.eventLog" {
		t.Errorf("the checker has the name %q, want the names of the informer and the handler", name)
	}
}

func TestTombstones(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(2, object("a", 1), object("b", 2))
	log, _ := f.recordEvents()
	f.list(5, object("b", 2))
	f.delete(object("b", 6))
	f.delete(object("never-seen", 7))
	f.flush()
	got := log.take()
	slices.Sort(got[:2])
	expect(t, "events", got, []string{"initial a1", "initial b2", "lost ns/a a1",
		"update b2 b2", "delete b6"})
}

func TestResync(t *testing.T) {
	clock := testclock.NewFakeClock(time.Unix(0, 0))
	f := newIdleFeed(t, Options{ResyncPeriod: 10 * time.Second, Clock: clock})
	period := func(d time.Duration) cache.HandlerOptions { return cache.HandlerOptions{ResyncPeriod: &d} }
	often, _ := f.recordEventsWith(period(10*time.Second), nil)
	rarely, _ := f.recordEventsWith(period(30*time.Second), nil)
	never, _ := f.recordEventsWith(period(0), nil)
	f.startIncarnation()
	f.list(1, object("a", 1))
	resync := func() []string {
		clock.Step(10 * time.Second)
		if f.partition.shouldResync() {
			f.ok(f.partition.Resync())
		}
		f.flush()
		return []string{fmt.Sprint(len(often.take()), len(rarely.take()), len(never.take()))}
	}
	f.flush()
	often.take()
	rarely.take()
	never.take()
	// The first resync calls all handlers.
	f.list(1, object("a", 1))
	f.flush()
	expect(t, "relist before any check", slices.Concat(often.take(), rarely.take(), never.take()),
		[]string{"update a1 a1", "update a1 a1", "update a1 a1"})
	expect(t, "first check", resync(), []string{"1 0 0"})
	// Later resyncs call only the handlers that are due.
	f.list(1, object("a", 1))
	f.flush()
	expect(t, "relist after a check", slices.Concat(often.take(), rarely.take(), never.take()),
		[]string{"update a1 a1"})
	expect(t, "second check", resync(), []string{"1 0 0"})
	expect(t, "third check", resync(), []string{"1 1 0"})
}

func TestRemoveBeforeFirstRun(t *testing.T) {
	f := newIdleFeed(t, Options{})
	_, handle := f.recordEvents()
	f.ok(f.RemoveEventHandler(handle))
	<-handle.ShutdownChan()
	if err := handle.WaitForSync(f.ctx); !errors.Is(err, delivery.ErrHandlerRemoved) {
		t.Errorf("WaitForSync() of a removed handler = %v, want ErrHandlerRemoved", err)
	}
}

func TestRemoveForeignHandles(t *testing.T) {
	f, other := newFeed(t, Options{}), newFeed(t, Options{})
	log, handle := f.recordEvents()
	f.ok(other.RemoveEventHandler(handle))
	f.list(1, object("a", 1))
	f.flush()
	expect(t, "events", log.take(), []string{"initial a1"})
	if err := f.RemoveEventHandler(nil); err == nil {
		t.Error("RemoveEventHandler(nil) succeeded, want an error")
	}
	if _, err := f.AddEventHandler(nil); !errors.Is(err, ErrNilHandler) {
		t.Errorf("AddEventHandler(nil) = %v, want ErrNilHandler", err)
	}
}

// TestPanickingHandler verifies that a handler that panicked receives the next event after a pause, and can
// be stopped during the pause. It changes settings of the process, so it does not run in parallel.
func TestPanickingHandler(t *testing.T) {
	crash, handlers := utilruntime.ReallyCrash, utilruntime.PanicHandlers
	t.Cleanup(func() { utilruntime.ReallyCrash, utilruntime.PanicHandlers = crash, handlers })
	utilruntime.ReallyCrash, utilruntime.PanicHandlers = false, nil

	synctest.Test(t, func(t *testing.T) {
		f := newIdleFeed(t, Options{})
		log, handle := f.recordEventsWith(cache.HandlerOptions{}, func(event string) {
			if event == "initial a1" {
				panic("handler trouble")
			}
		})
		f.startIncarnation()
		f.list(2, object("a", 1), object("b", 2))
		synctest.Wait()
		expect(t, "before the pause", log.take(), []string{"initial a1"})
		time.Sleep(time.Second)
		f.ok(handle.WaitForSync(f.ctx))
		expect(t, "after the pause", log.take(), []string{"initial b2"})
		// Stopping the handler ends its pause.
		f.ok(f.RemoveEventHandler(handle))
		for _, end := range []func(*delivery.Registration){
			func(r *delivery.Registration) { f.ok(f.RemoveEventHandler(r)) },
			func(*delivery.Registration) { f.Stop() },
		} {
			log, handle := f.recordEventsWith(cache.HandlerOptions{}, func(string) { panic("handler trouble") })
			synctest.Wait()
			before := time.Now()
			end(handle)
			<-handle.ShutdownChan()
			if events := log.take(); len(events) != 1 || time.Since(before) > 0 {
				t.Errorf("the handler stopped after %v with the events %q, want one event without a pause",
					time.Since(before), events)
			}
		}
	})
}

// TestDetachBetweenIncarnations checks that Detach returns the content's version even if no watch runs.
func TestDetachBetweenIncarnations(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(10, object("a", 5))
	f.put(object("a", 12))
	f.stopIncarnation()
	if d := f.Detach(nil); d.Version != "12" || !d.Synced {
		t.Errorf("Detach() = version %q, synced %v, want 12, true", d.Version, d.Synced)
	}
}
