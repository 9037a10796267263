package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

func TestStopDropsQueuedEvents(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(1)
	gate := make(chan struct{})
	entered := make(chan struct{}, 1)
	log, handle := f.recordEventsWith(cache.HandlerOptions{}, func(string) {
		entered <- struct{}{}
		<-gate
	})
	f.put(object("a", 2), object("b", 3), object("c", 4))
	<-entered
	flushed := make(chan error, 1)
	go func() { flushed <- f.Flush(f.ctx) }() // ended by Stop
	f.Stop()
	f.Stop()
	select {
	case <-f.Stopped():
		t.Error("Stopped is closed while a handler is still running")
	default:
	}
	close(gate)
	f.stopIncarnation()
	<-f.Stopped()
	if err := <-flushed; !errors.Is(err, ErrStopped) {
		t.Errorf("Flush() = %v, want ErrStopped", err)
	}
	expect(t, "events", log.take(), []string{"add a2"})
	if got := handle.Depth(); got != 2 {
		t.Errorf("%d events were discarded, want 2", got)
	}
	if got := len(f.keys()); got != 3 {
		t.Errorf("the cache holds %d objects after the stop, want 3", got)
	}
	<-handle.ShutdownChan()
}

func TestStopReleasesWaiters(t *testing.T) {
	f := newFeed(t, Options{})
	_, handle := f.recordEvents()
	results := make(chan error, 2)
	go func() { results <- f.WaitForSync(f.ctx) }()      // ended by Stop
	go func() { results <- handle.WaitForSync(f.ctx) }() // ended by Stop
	f.Stop()
	for range 2 {
		if err := <-results; !errors.Is(err, ErrStopped) {
			t.Errorf("WaitForSync() = %v, want ErrStopped", err)
		}
	}
	if f.HasSynced() || isClosed(f.Synced()) || isClosed(handle.Synced()) {
		t.Error("HasSynced of a stopped informer is true")
	}
}

func TestWaitersObeyTheirContext(t *testing.T) {
	f := newFeed(t, Options{})
	_, handle := f.recordEvents()
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(f.ctx)
	cancel(reason)
	if err := f.WaitForSync(ctx); !errors.Is(err, reason) {
		t.Errorf("WaitForSync() of the informer = %v, want the cause of the context", err)
	}
	if err := handle.WaitForSync(ctx); !errors.Is(err, reason) {
		t.Errorf("WaitForSync() of the handler = %v, want the cause of the context", err)
	}
}

func TestStoppedReturnsErrors(t *testing.T) {
	f := newFeed(t, Options{})
	g := f.partition
	f.Stop()
	_, added := f.AddEventHandler(&eventLog{})
	for operation, err := range map[string]error{
		"add handler":  added,
		"add indexers": f.AddIndexers(cache.Indexers{"x": cache.MetaNamespaceIndexFunc}),
		"run":          f.RunPartition(f.ctx, nil, Partition{ListerWatcher: reportedLists{}}),
		"forget":       f.Forget(),
	} {
		if !errors.Is(err, ErrStopped) {
			t.Errorf("%s after the stop: error %v, want ErrStopped", operation, err)
		}
	}
	if err := f.SetTransform(nil); !errors.Is(err, ErrStarted) {
		t.Errorf("SetTransform() after the stop = %v, want ErrStarted", err)
	}
	for operation, err := range map[string]error{
		"add": g.Add(object("a", 1)), "delete": g.Delete(object("a", 1)), "replace": g.Replace(nil, "1"),
		"resync": g.Resync(), "bookmark": g.Bookmark("1"),
	} {
		if !errors.Is(err, ErrIncarnationOver) {
			t.Errorf("%s by the reflector after the stop: error %v, want ErrIncarnationOver", operation, err)
		}
	}
	if got := f.keys(); len(got) != 0 {
		t.Errorf("the cache has the keys %v, want none", got)
	}
}

// TestRunNeedsAListerWatcher verifies that an informer without a source does not start, and that its
// controller runs nothing.
func TestRunNeedsAListerWatcher(t *testing.T) {
	reports := captureErrors(t)
	f := newIdleFeed(t, Options{})
	f.GetController().Run(nil)
	f.GetController().RunWithContext(f.ctx)
	f.RunWithContext(f.ctx)
	expect(t, "reports", reports(), []string{errNoListerWatcher.Error() + " []"})
	if err := f.RunPartition(f.ctx, nil, Partition{}); !errors.Is(err, errNoListerWatcher) ||
		f.State() != StateNew {
		t.Errorf("RunPartition() = %v in the state %v, want errNoListerWatcher in StateNew", err, f.State())
	}
}

func TestIncarnationsKeepHandlersAndIndexers(t *testing.T) {
	f := newIdleFeed(t, Options{})
	log, handle := f.recordEvents()
	f.startIncarnation()
	f.list(2, object("a", 1), object("b", 2))
	if err := f.RunPartition(f.ctx, nil, Partition{ListerWatcher: reportedLists{}}); !errors.Is(err,
		ErrRunning) {
		t.Errorf("RunPartition() during an incarnation = %v, want ErrRunning", err)
	}
	if err := f.Forget(); !errors.Is(err, ErrRunning) {
		t.Errorf("Forget() during an incarnation = %v, want ErrRunning", err)
	}
	old := f.partition
	f.stopIncarnation()
	if f.State() != StateIdle || !f.HasSynced() || len(f.keys()) != 2 {
		t.Error("the end of an incarnation changed HasSynced or the cache")
	}
	f.ok(f.AddIndexers(cache.Indexers{"again": cache.MetaNamespaceIndexFunc}))
	f.startIncarnation()
	if err := old.Add(object("ghost", 9)); !errors.Is(err, ErrIncarnationOver) {
		t.Errorf("Add() by the old incarnation = %v, want ErrIncarnationOver", err)
	}
	f.list(5, object("b", 4), object("c", 5))
	f.flush()
	expect(t, "events", log.takeSorted(), []string{"add c5", "initial a1", "initial b2", "lost ns/a a1",
		"update b2 b4"})
	found, err := f.GetIndexer().ByIndex("again", "ns")
	if f.ok(err); len(found) != 2 {
		t.Errorf("the index holds %d objects, want 2", len(found))
	}
	if !handle.HasSynced() {
		t.Error("the handler has not synced in the next incarnation")
	}
}

func TestForget(t *testing.T) {
	f := newFeed(t, Options{})
	f.list(2, object("a", 1), object("b", 2))
	log, handle := f.recordEvents()
	synced, handleSynced := f.HasSyncedChecker(), handle.HasSyncedChecker()
	f.put(object("c", 3))
	f.delete(object("a", 4))
	f.stopIncarnation()
	f.forget()

	got := log.take()
	slices.Sort(got[:2])
	slices.Sort(got[4:])
	expect(t, "events", got, []string{
		"initial a1", "initial b2", "add c3", "delete a4", "lost ns/b b2", "lost ns/c c3",
	})
	if keys := f.keys(); len(keys) != 0 {
		t.Errorf("after Forget, the cache has the keys %v, want none", keys)
	}
	if f.HasSynced() || handle.HasSynced() || isClosed(synced.Done()) || isClosed(handleSynced.Done()) {
		t.Error("HasSynced is true after Forget")
	}
	f.forget()
	expect(t, "events when nothing is left to forget", log.take(), nil)

	f.startIncarnation()
	f.list(9, object("b", 9))
	f.ok(handle.WaitForSync(f.ctx))
	expect(t, "events of the next incarnation", log.take(), []string{"initial b9"})
	if !isClosed(synced.Done()) || !isClosed(handleSynced.Done()) {
		t.Error("the checkers do not report the sync of the next incarnation")
	}
}

func isClosed(channel <-chan struct{}) bool {
	select {
	case <-channel:
		return true
	default:
		return false
	}
}

// TestReadersDoNotWaitForLists verifies that reads succeed while a list is being prepared, and while another
// goroutine holds the informer's lock.
func TestReadersDoNotWaitForLists(t *testing.T) {
	reads := 0
	var i *Informer
	read := func() {
		reads++
		objects, err := i.GetIndexer().ByIndex("all", "")
		_, exists, _ := i.GetStore().GetByKey("ns/object-7")
		if err != nil || len(objects) != 100 || !exists || len(i.GetStore().List()) != 100 ||
			len(i.GetStore().ListKeys()) != 100 {
			t.Errorf("%d objects by index (%v), want 100 from each read method", len(objects), err)
		}
	}
	relists := false
	i = New(nil, Options{Format: store.NewPacked(nil, nil),
		Indexers: cache.Indexers{"all": func(any) ([]string, error) {
			if relists {
				read()
			}
			return []string{""}, nil
		}}})
	list := func(spec string) []any {
		var all []any
		for n := range 100 {
			o, err := i.store.Format().Packer().Pack(fmt.Appendf(nil,
				`{"apiVersion":"v1","kind":"A","metadata":{"namespace":"ns","name":"object-%d"},"spec":%q}`,
				n, spec))
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, o)
		}
		return all
	}
	g, err := i.beginIncarnation(t.Context(), func() {})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { i.endIncarnation(g); i.Stop(); <-i.Stopped() }()
	p := g.partition(&Partition{ListerWatcher: reportedLists{}})
	g.runSinglePartition(p)
	if err := p.Replace(list("a"), "1"); err != nil {
		t.Fatal(err)
	}
	relists = true
	if err := p.Replace(list("b"), "2"); err != nil || reads < 100 {
		t.Errorf("%d reads while a list was being prepared (%v), want at least 100", reads, err)
	}
	i.mu.Lock()
	read()
	i.mu.Unlock()
}

// TestGetByKeyAllocatesNothing verifies that GetStore().GetByKey of a decoded object does not allocate.
func TestGetByKeyAllocatesNothing(t *testing.T) {
	f := New(nil, Options{Format: store.NewPacked(nil, nil)})
	o, err := f.store.Format().Packer().Pack([]byte(
		`{"apiVersion":"v1","kind":"A","metadata":{"namespace":"ns","name":"object"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.GetIndexer().Add(o); err != nil {
		t.Fatal(err)
	}
	hot, _, _ := f.GetStore().GetByKey("ns/object") // is kept in memory by the comparison below
	allocations := testing.AllocsPerRun(100, func() {
		if found, exists, _ := f.GetStore().GetByKey("ns/object"); !exists || found != hot {
			t.Error("GetByKey did not return the decoded object")
		}
	})
	if allocations > 0 {
		t.Errorf("GetByKey makes %v allocations, want 0", allocations)
	}
}
