package web

import (
	"maps"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// objectChange is a change of an object with its cached states. It is immutable.
type objectChange struct {
	Time     time.Time
	Informer *dynamicinformer.Informer
	Key      string
	// Before is nil for a created object, After for a deleted one.
	Before, After any
	// LeftShard is set if the object left the shard and still exists.
	LeftShard bool
}

// feed distributes the changes of informers and of their status to readers with bounded queues. It subscribes
// to informers that have readers. It is safe for concurrent use.
type feed struct {
	mu struct {
		sync.Mutex
		subscriptions map[*dynamicinformer.Informer]*feedSubscription
	}
}

type feedSubscription struct {
	readers      map[*feedReader]bool
	registration cache.ResourceEventHandlerRegistration
}

func newFeed() *feed {
	f := &feed{}
	f.mu.subscriptions = map[*dynamicinformer.Informer]*feedSubscription{}
	return f
}

// feedReader receives changes from a feed. It is safe for concurrent use.
type feedReader struct {
	feed *feed
	// matches reports whether the reader receives the changes of an object.
	matches func(informer *dynamicinformer.Informer, key string) bool
	ready   chan<- struct{}
	// listener is set by Listen, which must be called before several goroutines use the reader.
	listener status.ListenerHandle
	// States have a separate queue, so that changes of objects cannot displace them.
	changes boundedQueue[objectChange]
	states  boundedQueue[stateUpdate]
}

// NewReader returns a reader of the objects for which matches returns true. matches is called concurrently,
// without locks. The reader receives nothing before Follow. When changes or states are queued, it sends to
// ready unless the buffer of ready is full. Several readers may share one channel.
func (f *feed) NewReader(ready chan<- struct{}, matches func(informer *dynamicinformer.Informer,
	key string) bool) *feedReader {
	return &feedReader{feed: f, matches: matches, ready: ready}
}

// Follow adds informers to the reader.
func (r *feedReader) Follow(informers ...*dynamicinformer.Informer) error {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, informer := range informers {
		if subscription := f.mu.subscriptions[informer]; subscription != nil {
			subscription.readers[r] = true
			continue
		}
		// The events of existing objects are ignored without decoding.
		registration, err := informer.AddEventHandler(dynamicinformer.Named("web",
			dynamicinformer.EveryEvent(dynamicinformer.MetadataOnly(&feedHandler{f, informer}))))
		if err != nil {
			return err
		}
		f.mu.subscriptions[informer] = &feedSubscription{map[*feedReader]bool{r: true}, registration}
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
	for informer, subscription := range f.mu.subscriptions {
		delete(subscription.readers, r)
		if len(subscription.readers) == 0 {
			// It fails only if the informer has stopped.
			_ = informer.RemoveEventHandler(subscription.registration)
			delete(f.mu.subscriptions, informer)
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
	if tombstone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = tombstone.Obj
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
	if subscription := h.feed.mu.subscriptions[h.informer]; subscription != nil {
		readers = slices.Collect(maps.Keys(subscription.readers))
	}
	h.feed.mu.Unlock()
	for _, r := range readers {
		if r.matches(c.Informer, c.Key) {
			r.changes.put(c)
			r.wake()
		}
	}
}

// maxQueueLength limits the queued items of a reader. The oldest items are dropped and counted.
const maxQueueLength = 1000

// boundedQueue is safe for concurrent use.
type boundedQueue[T any] struct {
	mu struct {
		sync.Mutex
		items   []T
		skipped int
	}
}

func (q *boundedQueue[T]) put(value T) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.mu.items) >= maxQueueLength {
		var zero T
		q.mu.items[0] = zero // release the objects
		q.mu.items = q.mu.items[1:]
		q.mu.skipped++
	}
	q.mu.items = append(q.mu.items, value)
}

// take empties the queue. skipped is the number of items that were dropped since the last call.
func (q *boundedQueue[T]) take() (items []T, skipped int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	items, skipped = q.mu.items, q.mu.skipped
	q.mu.items, q.mu.skipped = nil, 0
	return items, skipped
}
