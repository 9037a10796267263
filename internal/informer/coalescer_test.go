package informer

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer/delivery"
	"github.com/crdcache/crdcache/internal/store"
	"github.com/crdcache/crdcache/internal/testkit"
)

// coalescingHandler is a handler that merges waiting events if coalesce is set. If turns is not nil, each
// call first receives from turns.
type coalescingHandler struct {
	cache.ResourceEventHandler
	turns    chan struct{}
	coalesce bool
}

func (h coalescingHandler) CoalescesEvents() bool { return h.coalesce }

func (h coalescingHandler) OnAdd(obj any, initial bool) {
	h.wait()
	h.ResourceEventHandler.OnAdd(obj, initial)
}

func (h coalescingHandler) OnUpdate(oldObj, newObj any) {
	h.wait()
	h.ResourceEventHandler.OnUpdate(oldObj, newObj)
}

func (h coalescingHandler) OnDelete(obj any) {
	h.wait()
	h.ResourceEventHandler.OnDelete(obj)
}

func (h coalescingHandler) wait() {
	if h.turns != nil {
		<-h.turns
	}
}

// stalledFeed is a feed with a handler that is stalled in its first call, the addition of x.
type stalledFeed struct {
	*feed
	log    *eventLog
	handle *delivery.Registration
	turns  chan struct{}
}

func newStalledFeed(t *testing.T, options Options) *stalledFeed {
	s := &stalledFeed{feed: newFeed(t, options), log: &eventLog{}, turns: make(chan struct{})}
	handle, err := s.AddEventHandler(coalescingHandler{s.log, s.turns, true})
	s.ok(err)
	s.handle = handle.(*delivery.Registration)
	s.list(1, object("x", 1))
	synctest.Wait()
	return s
}

// resume ends the stall and returns the events after the first.
func (s *stalledFeed) resume() []string {
	close(s.turns)
	s.flush()
	return s.log.take()[1:]
}

// TestStalledHandlerIsBounded stalls a handler for ten minutes of virtual time with 5,000 updates a second.
// One update per key is queued, and memory does not grow. The three million updates bypass the store and
// alternate between two states of each of 1,000 objects. With -short or -race the stall lasts a minute. Then
// the test sends updates, additions and deletions through the store.
func TestStalledHandlerIsBounded(t *testing.T) {
	const keys, perSecond = 1000, 5000
	seconds := 600
	if testing.Short() || underRace {
		seconds = 60
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStalledFeed(t, Options{Format: store.NewPacked(nil, nil)})
		s.ctx = t.Context() // the default context ends after a minute
		var states [2][keys]Item
		for k := range keys {
			for v := range states {
				states[v][k] = packedNamed(t, fmt.Sprint("o", k), strconv.Itoa(v+2), fmt.Sprint("uid-o", k))
			}
		}
		send := func(second int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			for n := range perSecond {
				turn := second*perSecond + n
				old, next := states[turn/keys%2][turn%keys], states[(turn/keys+1)%2][turn%keys]
				s.notifyLocked(nil, delivery.Updated(old, next, false))
			}
		}
		send(0)
		before := heap()
		for second := range seconds {
			send(second + 1)
			time.Sleep(time.Second)
		}
		if depth, lag := s.handle.Depth(), s.handle.Lag(); depth != keys+1 ||
			lag != time.Duration(seconds)*time.Second {
			t.Errorf("%d events are queued, the oldest for %v; want %d for %v", depth, lag, keys+1,
				time.Duration(seconds)*time.Second)
		}
		if grown := int(heap()) - int(before); grown > 100*keys {
			t.Errorf("%d updates increased the heap by %d bytes, want at most %d", seconds*perSecond, grown,
				100*keys)
		}
		if got, want := s.handle.Coalesced(), int64((seconds+1)*perSecond-keys); got != want {
			t.Errorf("%d events were merged, want %d", got, want)
		}
		// Objects that are added and deleted leave no queued events.
		for n := range 10 * keys {
			s.put(object(fmt.Sprint("short", n), n), object("long", n))
			s.delete(object(fmt.Sprint("short", n), n+1))
		}
		if depth := s.handle.Depth(); depth != keys+2 {
			t.Errorf("%d events are queued, want %d", depth, keys+2)
		}
		if grown := int(heap()) - int(before); grown > 1000*keys {
			t.Errorf("additions and deletions increased the heap by %d bytes, want at most %d", grown,
				1000*keys)
		}
		if got := s.resume(); len(got) != keys+1 {
			t.Errorf("%d events were delivered, want %d", len(got), keys+1)
		}
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// formatChanges returns the changes of a history, each formatted as version, key and kind.
func formatChanges(h History) []string {
	lines := []string{}
	for _, c := range h.Changes {
		operation := "updated"
		switch {
		case c.Old == nil:
			operation = "added"
		case c.New == nil:
			operation = "deleted"
		}
		lines = append(lines, fmt.Sprint(c.Version, " ", c.Key, " ", operation))
	}
	return lines
}

// TestHistoryHasEveryChangeOfTheWatch checks that the history has the change of each event, and the versions
// of bookmarks.
func TestHistoryHasEveryChangeOfTheWatch(t *testing.T) {
	f := newFeed(t, Options{})
	f.KeepHistory(100)
	if h := f.History(); h.Synced || h.Version != 0 {
		t.Errorf("before the list, History() = %+v, want not synced", h)
	}
	f.list(10, object("a", 5))
	before := f.History()
	f.put(object("b", 11), object("a", 12), object("a", 12))
	f.delete(object("b", 13))
	f.delete(object("stranger", 14))
	f.ok(f.partition.Bookmark("20"))
	h := f.History()
	want := []string{"11 ns/b added", "12 ns/a updated", "13 ns/b deleted"}
	if diff := cmp.Diff(want, formatChanges(h)); diff != "" {
		t.Errorf("changes (-want +got):\n%s", diff)
	}
	if !h.Synced || h.Oldest != 10 || h.Version != 20 || h.Snapshot.Len() != 1 {
		t.Errorf("the history has the versions %d to %d, synced: %v, want 10 to 20, true", h.Oldest,
			h.Version, h.Synced)
	}
	select {
	case <-before.Next:
	default:
		t.Error("Next is not closed after a change")
	}
	if len(before.Changes) != 0 || before.Version != 10 {
		t.Errorf("the earlier history has changed to %+v", before)
	}
}

// TestHistoryRestartsWithoutOrder checks that the history restarts at a change that is not the next event of
// the same watch.
func TestHistoryRestartsWithoutOrder(t *testing.T) {
	for name, happens := range map[string]func(*feed){
		"relist":            func(f *feed) { f.list(30, object("a", 30)) },
		"missed deletion":   func(f *feed) { f.put(object("a@other", 30)) },
		"another order":     func(f *feed) { f.ok(f.partition.Bookmark("30")); f.put(object("b", 29)) },
		"no version":        func(f *feed) { f.ok(f.partition.Bookmark("30")); f.put(object("a", 0)) },
		"type that is gone": func(f *feed) { f.stopIncarnation(); f.ok(f.Forget()); f.startIncarnation(); f.list(30) },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFeed(t, Options{})
			f.KeepHistory(100)
			f.list(10, object("a", 5))
			f.put(object("a", 11))
			happens(f)
			if h := f.History(); h.Oldest != 30 || h.Version != 30 || len(h.Changes) != 0 {
				t.Errorf("the history has the versions %d to %d and the changes %q, want only version 30",
					h.Oldest, h.Version, formatChanges(h))
			}
		})
	}
}

// TestHistoryIsBounded checks that the oldest changes are dropped, and that Oldest is updated.
func TestHistoryIsBounded(t *testing.T) {
	f := newFeed(t, Options{})
	f.KeepHistory(2)
	f.list(10)
	for version := 11; version < 20; version++ {
		f.put(object("a", version))
		h := f.History()
		if len(h.Changes) > 4 || int(h.Version) != version || int(h.Oldest) != version-len(h.Changes) {
			t.Fatalf("at version %d the history has the versions %d to %d and the changes %q", version,
				h.Oldest, h.Version, formatChanges(h))
		}
	}
}

// TestForeign verifies that the types have every method of client-go's interfaces.
func TestForeign(t *testing.T) {
	for name, missing := range map[string][]string{
		"Informer": testkit.Unimplemented[foreignInformer](&Informer{}),
		"indexer":  testkit.Unimplemented[foreignIndexer](&indexer{}),
	} {
		if missing != nil {
			t.Errorf("%s lacks the methods %q", name, missing)
		}
	}
	type incomplete struct{ foreignIndexer }
	if got := testkit.Unimplemented[foreignIndexer](&incomplete{}); len(got) < 2 {
		t.Errorf("a type without methods lacks only the methods %q", got)
	}
}
