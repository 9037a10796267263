package web

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// objectChange is a change of an object. It is immutable, and has both states as they are cached.
type objectChange struct {
	Time     time.Time
	Informer *dynamicinformer.Informer
	Key      string
	// Before is nil for a created object, After for a deleted one.
	Before, After any
	// LeftShard: the object left the shard, and still exists.
	LeftShard bool
}

// feed distributes the changes of informers and of their status to readers with bounded queues. It watches
// informers while they have readers. It is safe for concurrent use.
type feed struct {
	mu struct {
		sync.Mutex
		follows map[*dynamicinformer.Informer]*feedSubscription
	}
}

type feedSubscription struct {
	readers      map[*feedReader]bool
	registration cache.ResourceEventHandlerRegistration
}

func newFeed() *feed {
	f := &feed{}
	f.mu.follows = map[*dynamicinformer.Informer]*feedSubscription{}
	return f
}

// feedReader receives changes from a feed. It is safe for concurrent use.
type feedReader struct {
	feed *feed
	// matches reports whether the reader wants an object.
	matches func(informer *dynamicinformer.Informer, key string) bool
	ready   chan<- struct{}
	// listener is set by Listen, which must be called before several goroutines use the reader.
	listener *dynamicinformer.ListenerHandle
	// States have a separate queue, so that changes of objects cannot displace them.
	changes boundedQueue[objectChange]
	states  boundedQueue[stateUpdate]
}

// Read returns a reader of the objects for which selects returns true. selects is called concurrently,
// without locks. The reader receives nothing before Follow. When changes or states are waiting, it sends to
// ready, unless the buffer of ready is full; several readers may share one channel.
func (f *feed) Read(ready chan<- struct{}, matches func(informer *dynamicinformer.Informer,
	key string) bool) *feedReader {
	return &feedReader{feed: f, matches: matches, ready: ready}
}

// Follow adds informers to the reader.
func (r *feedReader) Follow(informers ...*dynamicinformer.Informer) error {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, informer := range informers {
		if known := f.mu.follows[informer]; known != nil {
			known.readers[r] = true
			continue
		}
		// The events of existing objects are ignored without decoding.
		registration, err := informer.AddEventHandler(dynamicinformer.Named("web",
			dynamicinformer.EveryEvent(dynamicinformer.MetadataOnly(&feedHandler{f, informer}))))
		if err != nil {
			return err
		}
		f.mu.follows[informer] = &feedSubscription{map[*feedReader]bool{r: true}, registration}
	}
	return nil
}

// Close ends the reader. Informers without readers are no longer watched.
func (r *feedReader) Close() {
	if r.listener != nil {
		r.listener.Close()
	}
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for informer, known := range f.mu.follows {
		delete(known.readers, r)
		if len(known.readers) == 0 {
			_ = informer.RemoveEventHandler(known.registration) // fails only if the informer has stopped
			delete(f.mu.follows, informer)
		}
	}
}

func (r *feedReader) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

type feedHandler struct {
	feed     *feed
	informer *dynamicinformer.Informer
}

func (h *feedHandler) OnAdd(object any, isInInitialList bool) {
	if !isInInitialList {
		h.publish(object, objectChange{After: object})
	}
}

func (h *feedHandler) OnUpdate(before, after any) {
	h.publish(after, objectChange{Before: before, After: after})
}

func (h *feedHandler) OnDelete(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	h.publish(object, objectChange{Before: object})
}

func (h *feedHandler) OnLeftShard(object any) {
	h.publish(object, objectChange{Before: object, LeftShard: true})
}

func (h *feedHandler) publish(object any, c objectChange) {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return // not an API object
	}
	c.Time, c.Informer, c.Key = time.Now(), h.informer, key
	h.feed.mu.Lock()
	var readers []*feedReader
	if known := h.feed.mu.follows[h.informer]; known != nil {
		for r := range known.readers {
			readers = append(readers, r)
		}
	}
	h.feed.mu.Unlock()
	for _, r := range readers {
		if r.matches(c.Informer, c.Key) {
			r.changes.put(c)
			r.wake()
		}
	}
}

// maxQueue limits the waiting items of a reader; the oldest are dropped and counted.
const maxQueue = 1000

// boundedQueue has the waiting items. It is safe for concurrent use.
type boundedQueue[T any] struct {
	mu struct {
		sync.Mutex
		waiting []T
		skipped int
	}
}

func (q *boundedQueue[T]) put(value T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.waiting) >= maxQueue {
		var none T
		q.mu.waiting[0] = none // release the objects
		q.mu.waiting = q.mu.waiting[1:]
		q.mu.skipped++
	}
	q.mu.waiting = append(q.mu.waiting, value)
}

// take returns the waiting items, and the number of items dropped since the last call.
func (q *boundedQueue[T]) take() (waiting []T, skipped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting, skipped = q.mu.waiting, q.mu.skipped
	q.mu.waiting, q.mu.skipped = nil, 0
	return waiting, skipped
}
