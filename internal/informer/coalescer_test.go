package informer

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/store"
)

// coalescingHandler chooses whether its events are merged. It waits for a turn before each call if turns is
// not nil.
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

// stalled is a feed with a handler that is stalled in its first call, the addition of x.
type stalled struct {
	*feed
	log    *eventLog
	handle *Registration
	turns  chan struct{}
}

func newStalled(t *testing.T, options Options) *stalled {
	s := &stalled{feed: newFeed(t, options), log: &eventLog{}, turns: make(chan struct{})}
	handle, err := s.AddEventHandler(coalescingHandler{s.log, s.turns, true})
	s.ok(err)
	s.handle = handle.(*Registration)
	s.list(1, object("x", 1))
	synctest.Wait()
	return s
}

// rest ends the stall and returns the events after the first.
func (s *stalled) rest() []string {
	close(s.turns)
	s.flush()
	return s.log.take()[1:]
}

func TestCoalesce(t *testing.T) {
	type steps = func(s *stalled)
	put := func(name string, version int) steps { return func(s *stalled) { s.put(object(name, version)) } }
	remove := func(name string, version int) steps {
		return func(s *stalled) { s.delete(object(name, version)) }
	}
	list := func(version int, objects ...*unstructured.Unstructured) steps {
		return func(s *stalled) {
			x := s.stored("x")
			if x == nil {
				x = object("x", 9)
			}
			s.list(version, append(objects, x)...)
		}
	}
	leave := func(name string) steps { // the shard
		return func(s *stalled) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.notifyLocked(newShardExit(s.store.Remove("ns/"+name, "")))
		}
	}
	known := func(s *stalled) { // the handler is stalled in the update of x instead
		s.put(object("a", 2), object("x", 3))
		s.turns <- struct{}{}
		s.turns <- struct{}{}
		synctest.Wait()
		s.log.take()
	}
	restart := func(s *stalled) {
		s.finish()
		s.ok(s.Forget())
		s.next()
	}
	for name, tt := range map[string]struct {
		steps      []steps
		want       []string
		coalesced  int64
		inAnyOrder bool // lists are in any order
	}{
		"updates":             {[]steps{known, put("a", 4), put("a", 5), put("a", 6)}, []string{"update a2 a6"}, 2, false},
		"added":               {[]steps{put("a", 4), put("a", 5)}, []string{"add a5"}, 1, false},
		"added and deleted":   {[]steps{put("a", 4), put("a", 5), remove("a", 6)}, nil, 3, false},
		"updated and deleted": {[]steps{known, put("a", 4), remove("a", 6)}, []string{"delete a6"}, 1, false},
		"updated and lost": {[]steps{known, put("a", 4), list(5)},
			[]string{"lost ns/a a4", "update x3 x3"}, 1, true},
		"deleted":  {[]steps{known, remove("a", 6)}, []string{"delete a6"}, 0, false},
		"returned": {[]steps{known, remove("a", 4), put("a", 5)}, []string{"update a2 a5"}, 1, false},
		"updated and returned": {[]steps{known, put("a", 4), remove("a", 5), put("a", 6)},
			[]string{"update a2 a6"}, 2, false},
		"returned and deleted": {[]steps{known, remove("a", 4), put("a", 5), remove("a", 6)},
			[]string{"delete a6"}, 2, false},
		"left, returned and deleted": {[]steps{known, leave("a"), put("a", 5), remove("a", 6)},
			[]string{"delete a6"}, 2, false},
		"left, replaced and deleted": {[]steps{known, leave("a"), put("a@b", 5), remove("a@b", 6)}, nil, 2, false},
		"replaced":                   {[]steps{known, put("a@b", 4), put("a@b", 5)}, []string{"lost ns/a a2", "add a5"}, 1, false},
		"deleted and replaced": {[]steps{known, remove("a", 4), put("a@b", 5)},
			[]string{"delete a4", "add a5"}, 0, false},
		"replaced twice":        {[]steps{known, put("a@b", 4), put("a@c", 5)}, []string{"lost ns/a a2", "add a5"}, 2, false},
		"replaced and deleted":  {[]steps{known, put("a@b", 4), remove("a@b", 5)}, []string{"lost ns/a a2"}, 2, false},
		"order of first events": {[]steps{put("a", 4), put("b", 5), put("a", 6)}, []string{"add a6", "add b5"}, 1, false},
		"lists": {[]steps{known, list(4, object("a", 4)), list(5, object("a", 5))},
			[]string{"update a2 a5", "update x3 x3"}, 2, true},
		"a list after an addition": {[]steps{put("a", 4), list(5, object("a", 5), object("b", 5))},
			[]string{"add a5", "add b5", "update x1 x1"}, 1, true},
		"a list and later events": {[]steps{list(4, object("a", 4)), put("a", 5), put("b", 6), remove("b", 7)},
			[]string{"add a5", "update x1 x1"}, 3, true},
		"a list of a deleted object": {[]steps{list(4, object("a", 4)), remove("a", 5)},
			[]string{"update x1 x1"}, 2, true},
		"forgotten, not known": {[]steps{put("a", 4), restart, list(5)},
			[]string{"lost ns/x x1", "initial x9"}, 2, false},
		"forgotten and listed": {[]steps{known, restart, list(5, object("a", 2)), put("a", 6)},
			[]string{"lost ns/a a2", "initial a6", "lost ns/x x3", "initial x9"}, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newStalled(t, Options{})
				for _, step := range tt.steps {
					step(s)
				}
				got := s.rest()
				if tt.inAnyOrder { // of names; they are before the version
					slices.SortStableFunc(got,
						func(a, b string) int { return int(a[len(a)-2]) - int(b[len(b)-2]) })
				}
				expect(t, "events", got, append([]string{}, tt.want...))
				if n := s.handle.Coalesced(); n != tt.coalesced {
					t.Errorf("%d events were merged, want %d", n, tt.coalesced)
				}
			})
		})
	}
}

// TestStalledHandlerIsBounded: with a stalled handler and 5,000 updates a second for an hour of virtual time,
// one update per key waits, and memory does not grow. The 18 million updates are notifications of two states
// for each of 1,000 keys, so that the test takes seconds. With -short or -race it plays a minute. A second
// part sends updates, additions and deletions through the store.
func TestStalledHandlerIsBounded(t *testing.T) {
	const keys, perSecond = 1000, 5000
	seconds := 3600
	if testing.Short() || underRace {
		seconds = 60
	}
	synctest.Test(t, func(t *testing.T) {
		s := newStalled(t, Options{Form: store.NewPacked(nil, nil)})
		s.ctx = t.Context() // the feed's ends after a minute
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
				s.notifyLocked(newUpdate(states[turn/keys%2][turn%keys], states[(turn/keys+1)%2][turn%keys],
					false))
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
			t.Errorf("%d events wait, the oldest for %v", depth, lag)
		}
		if grown := int(heap()) - int(before); grown > 100*keys {
			t.Errorf("%d updates took %d bytes", seconds*perSecond, grown)
		}
		if got, want := s.handle.Coalesced(), int64((seconds+1)*perSecond-keys); got != want {
			t.Errorf("%d events were merged, want %d", got, want)
		}
		// objects that are added and deleted leave nothing behind
		for n := range 10 * keys {
			s.put(object(fmt.Sprint("short", n), n), object("long", n))
			s.delete(object(fmt.Sprint("short", n), n+1))
		}
		if depth := s.handle.Depth(); depth != keys+2 {
			t.Errorf("%d events wait", depth)
		}
		if grown := int(heap()) - int(before); grown > 1000*keys {
			t.Errorf("additions and deletions took %d bytes", grown)
		}
		if got := s.rest(); len(got) != keys+1 {
			t.Errorf("%d events arrived", len(got))
		}
	})
}

func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// TestCoalescingIsTheDefaultForKeys: for handlers that take undecoded objects, unless they choose or the
// informer selects objects.
func TestCoalescingIsTheDefaultForKeys(t *testing.T) {
	keys := undecodedFuncs{}
	for _, tt := range []struct {
		handler cache.ResourceEventHandler
		selects bool
		want    bool
	}{
		{keys, false, true}, {keys, true, false}, {cache.ResourceEventHandlerFuncs{}, false, false},
		{coalescingHandler{keys, nil, false}, false, false},
		{coalescingHandler{&eventLog{}, nil, true}, true, true},
	} {
		i := New(nil, Options{SelectsObjects: tt.selects})
		handle, err := i.AddEventHandler(tt.handler)
		if err != nil {
			t.Fatal(err)
		}
		if got := handle.(*Registration).coalescer != nil; got != tt.want {
			t.Errorf("%T coalesces: %v", tt.handler, got)
		}
	}
}

// TestRemovedWhileCoalescing: the queue's length is the number of discarded events.
func TestRemovedWhileCoalescing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStalled(t, Options{})
		s.put(object("a", 2), object("b", 3), object("a", 4))
		s.ok(s.RemoveEventHandler(s.handle))
		s.put(object("a", 5))
		close(s.turns)
		synctest.Wait()
		if depth := s.handle.Depth(); depth != 2 || len(s.log.take()) != 1 || s.handle.Lag() != 0 {
			t.Errorf("%d events were discarded, want 2", depth)
		}
	})
}

// TestCoalescerGoexit: a handler that ends its goroutine leaves no pending events.
func TestCoalescerGoexit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFeed(t, Options{})
		handler := cache.ResourceEventHandlerFuncs{AddFunc: func(any) { runtime.Goexit() }}
		handle, err := f.AddEventHandler(coalescingHandler{handler, nil, true})
		f.ok(err)
		f.list(1, object("x", 1), object("y", 1))
		<-handle.(*Registration).ShutdownChan()
		f.put(object("z", 2))
		time.Sleep(time.Minute)
		r := handle.(*Registration)
		if lag := r.Lag(); lag != 0 || len(r.coalescer.mu.entries) > 0 || r.coalescer.mu.first != nil {
			t.Errorf("events are pending for %v", lag)
		}
	})
}
