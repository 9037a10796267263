package delivery

import (
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Handlers are the event handlers of an informer, in the order in which they were added. The informer's lock
// guards its methods and fields. The zero value has no handlers and does no resyncs.
type Handlers struct {
	registered []*Registration
	// Events are the numbers of events, also without handlers.
	Events status.EventStats
	// Lists is the number of complete lists of partitions.
	Lists int
	// Resyncs is the schedule of resyncs.
	Resyncs ResyncSchedule
}

// Add adds a handler. isRunning is true after the start of the informer. The caller then queues its
// content, and starts the handler.
func (h *Handlers) Add(r *Registration, isRunning bool) {
	h.planResyncs(r, isRunning)
	r.nextResync = r.config.Clock.Now().Add(r.period)
	h.registered = append(h.registered, r)
}

// All returns the handlers.
func (h *Handlers) All() []*Registration { return slices.Clone(h.registered) }

// Len returns the number of handlers.
func (h *Handlers) Len() int { return len(h.registered) }

// Remove ends a handler and discards its queue. It ignores a handler that is not registered.
func (h *Handlers) Remove(r *Registration) {
	if at := slices.Index(h.registered, r); at >= 0 {
		h.registered = slices.Delete(h.registered, at, at+1)
		r.end()
	}
}

// Detach removes handlers. Each processes its queue, and then its registration ends.
func (h *Handlers) Detach(detached []*Registration) {
	h.registered = slices.DeleteFunc(h.registered, func(r *Registration) bool {
		if !slices.Contains(detached, r) {
			return false
		}
		r.Mark(r.end)
		return true
	})
}

// End ends all handlers and discards their queues. The handlers stay registered.
func (h *Handlers) End() {
	for _, r := range h.registered {
		r.end()
	}
}

// Notify queues notifications for every handler, resyncs only for the handlers that take part. It overwrites
// the slice. listNumber is the number of the last list of the objects' partition, or Lists.
func (h *Handlers) Notify(listNumber int, notifications ...Notification) {
	for k := range notifications {
		countEvent(&h.Events, &notifications[k])
	}
	for _, r := range h.registered {
		if r.coalescer != nil && r.addedAt <= listNumber {
			r.coalescer.push(r.inResync, notifications...)
		}
	}
	for k := range notifications {
		if notifications[k].kind == kindDelete {
			notifications[k].current = nil
		}
	}
	for _, r := range h.registered {
		switch {
		case r.coalescer != nil, r.addedAt > listNumber:
		case r.inResync:
			r.queue.Push(notifications...)
		default:
			r.queue.Push(withoutResyncs(notifications)...)
		}
	}
}

func withoutResyncs(notifications []Notification) []Notification {
	if !slices.ContainsFunc(notifications, Notification.isResync) {
		return notifications
	}
	return slices.DeleteFunc(slices.Clone(notifications), Notification.isResync)
}

// NotifyList queues the notifications of the changes of a list for every handler, as one element each. It
// reports whether an object has changed. listNumber is that of Notify, before this list.
func (h *Handlers) NotifyList(listNumber int, l List) (changed bool) {
	all, resyncs := l.count(&h.Events)
	for _, r := range h.registered {
		if r.addedAt > listNumber {
			r.pushFirstList(l)
			continue
		}
		left, wantsResyncs := all, r.inResync && !l.WithoutResyncs
		if !wantsResyncs {
			left -= resyncs
		}
		if left > 0 {
			r.push(l.element(left, wantsResyncs))
		}
	}
	return all > resyncs
}

// PushSynced makes HasSynced of the handlers true after their queued notifications, except for late ones.
func (h *Handlers) PushSynced() {
	for _, r := range h.registered {
		if r.addedAt == 0 {
			r.pushSynced()
		}
	}
}

// ResetSynced makes HasSynced of the handlers false.
func (h *Handlers) ResetSynced() {
	for _, r := range h.registered {
		r.synced.Store(NewSyncPoint())
	}
}
