package requests

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
)

// hold is what has not been sent yet. Initial events are held until there are so many that waking the reader for them is
// worth it: it can do nothing with them before the last one has come. What follows them is not held at all.
type hold struct {
	events []watch.Event
	bytes  int
	since  time.Time // of the first event
}

// What is held at most; a single event may have more bytes.
const (
	holdEvents = buffered
	holdBytes  = heldBytes / 2
	// holdTime is how old an event may be when the next one comes, so that readers see slow streams move.
	holdTime = 100 * time.Millisecond
)

func (h *hold) add(event watch.Event) {
	if len(h.events) == 0 {
		h.since = time.Now()
	}
	h.events = append(h.events, event)
	h.bytes += sizeOf(event.Object)
}

// due reports whether it is time to send, the last event being new. initial says that there are initial events to come.
func (h *hold) due(initial bool) bool {
	return !initial || h.events[len(h.events)-1].Type == watch.Error ||
		len(h.events) >= holdEvents || h.bytes >= holdBytes || time.Since(h.since) > holdTime
}

// window knows the sizes of the events that wait for the reader.
type window struct {
	sizes [buffered]int // of the last events that were sent
	next  int           // in sizes
	held  int           // bytes that wait at most, as far as was counted
}

// fits reports whether an event of some size may wait with those that do already.
func (w *window) fits(size, waiting int) bool {
	if w.held+size <= heldBytes {
		return true
	}
	w.held = 0
	for k := range waiting {
		w.held += w.sizes[(w.next+buffered-1-k)%buffered]
	}
	return w.held == 0 || w.held+size <= heldBytes
}

// add takes in that an event was sent.
func (w *window) add(size int) {
	w.sizes[w.next] = size
	w.next = (w.next + 1) % buffered
	w.held += size
}

// unknownSize is what objects are taken for that do not tell: so large that few wait.
const unknownSize = heldBytes / 16

// sizeOf returns the size of an object.
func sizeOf(object runtime.Object) int {
	if sized, ok := object.(interface{ Len() int }); ok {
		return sized.Len()
	}
	return unknownSize
}
