package requests

import (
	"time"

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
