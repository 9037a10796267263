// Package feed hands what changes in informers, and what becomes of their types, to any number of readers,
// each with bounded queues.
package feed

import (
	"sync"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Change is a change of an object. It never changes itself, and keeps both states as they are in the cache.
type Change struct {
	Time     time.Time
	Informer *dynamicinformer.Informer
	Key      string
	// Before is nil for an object that came, After for one that went.
	Before, After any
	// Departed says of an object that went that it has left the shard, and exists.
	Departed bool
}

// Feed follows informers for as long as somebody reads. It is safe for concurrent use, and made by New.
type Feed struct {
	mu struct {
		sync.Mutex
		follows map[*dynamicinformer.Informer]*follow
	}
}

// follow is an informer that somebody wants to hear of.
type follow struct {
	readers      map[*Reader]bool
	registration cache.ResourceEventHandlerRegistration
}

// New returns a Feed that follows nothing.
func New() *Feed {
	f := &Feed{}
	f.mu.follows = map[*dynamicinformer.Informer]*follow{}
	return f
}

// Reader takes changes from a feed. It is safe for concurrent use.
type Reader struct {
	feed *Feed
	// wants says which objects the reader asks for.
	wants func(informer *dynamicinformer.Informer, key string) bool
	ready chan<- struct{}
	// listener is set by Listen, before the reader is used by several goroutines.
	listener *dynamicinformer.ListenerHandle
	mu       struct {
		sync.Mutex
		changes queue[Change]
		states  queue[State]
	}
}

// Read returns a reader of the objects for which wants returns true. Many goroutines call wants; no lock is
// held. The reader receives nothing before Follow. When changes or states wait, it sends to ready, unless the
// buffer of ready is full; several readers may share one channel.
func (f *Feed) Read(ready chan<- struct{}, wants func(informer *dynamicinformer.Informer,
	key string) bool) *Reader {
	return &Reader{feed: f, wants: wants, ready: ready}
}

// Follow has the reader hear of informers, besides those that it hears of already.
func (r *Reader) Follow(informers ...*dynamicinformer.Informer) error {
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, informer := range informers {
		if known := f.mu.follows[informer]; known != nil {
			known.readers[r] = true
			continue
		}
		// What is there already is told as well, and passed over; nothing is decoded for that.
		registration, err := informer.AddEventHandler(dynamicinformer.Named("web",
			dynamicinformer.MetadataOnly(&handler{f, informer})))
		if err != nil {
			return err
		}
		f.mu.follows[informer] = &follow{map[*Reader]bool{r: true}, registration}
	}
	return nil
}

// Close ends the reader. Informers that nobody else hears of are followed no longer.
func (r *Reader) Close() {
	if r.listener != nil {
		r.listener.Remove()
	}
	f := r.feed
	f.mu.Lock()
	defer f.mu.Unlock()
	for informer, known := range f.mu.follows {
		delete(known.readers, r)
		if len(known.readers) == 0 {
			_ = informer.RemoveEventHandler(known.registration) // of a stopped one there is nothing to remove
			delete(f.mu.follows, informer)
		}
	}
}

// Take returns the changes that wait, and how many had to make way before that.
func (r *Reader) Take() (changes []Change, skipped int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.mu.changes.take()
}

func (r *Reader) put(c Change) {
	r.mu.Lock()
	r.mu.changes.put(c)
	r.mu.Unlock()
	r.wake()
}

func (r *Reader) wake() {
	select {
	case r.ready <- struct{}{}:
	default:
	}
}

// handler hears of one informer.
type handler struct {
	feed     *Feed
	informer *dynamicinformer.Informer
}

// OnAdd implements cache.ResourceEventHandler.
func (h *handler) OnAdd(object any, isInInitialList bool) {
	if !isInInitialList {
		h.tell(object, Change{After: object})
	}
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *handler) OnUpdate(before, after any) {
	h.tell(after, Change{Before: before, After: after})
}

// OnDelete implements cache.ResourceEventHandler.
func (h *handler) OnDelete(object any) {
	if gone, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = gone.Obj
	}
	h.tell(object, Change{Before: object})
}

// OnDeparted implements dynamicinformer.Departed.
func (h *handler) OnDeparted(object any) { h.tell(object, Change{Before: object, Departed: true}) }

func (h *handler) tell(object any, c Change) {
	key, err := cache.MetaNamespaceKeyFunc(object)
	if err != nil {
		return // no object of the API
	}
	c.Time, c.Informer, c.Key = time.Now(), h.informer, key
	h.feed.mu.Lock()
	var readers []*Reader
	if known := h.feed.mu.follows[h.informer]; known != nil {
		for r := range known.readers {
			readers = append(readers, r)
		}
	}
	h.feed.mu.Unlock()
	for _, r := range readers {
		if r.wants(c.Informer, c.Key) {
			r.put(c)
		}
	}
}
