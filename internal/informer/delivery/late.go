package delivery

import (
	"iter"
	"slices"

	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// A late handler is a handler that is added after the start to an informer that stores no objects. The
// informer therefore lists its partitions again. The handler receives the objects of the next list of each
// partition as additions, and then further events of the partition. Registration.addedAt is the number of the
// first list that the handler receives. It is zero for other handlers, and when all partitions have been
// listed. Other handlers are notified of the differences only.

// AddLate adds a late handler. The informer calls RecordCaughtUp, starts the handler, and lists.
func (h *Handlers) AddLate(r *Registration) {
	r.addedAt = h.Lists + 1
	h.Add(r, true)
}

// HasLate reports whether a handler has not received the objects of a partition with that list number.
func (h *Handlers) HasLate(listNumber int) bool {
	return slices.ContainsFunc(h.registered, func(r *Registration) bool { return r.addedAt > listNumber })
}

// pushFirstList queues the additions of the first list of a partition that the handler receives.
func (r *Registration) pushFirstList(l List) {
	if !l.Complete {
		return
	}
	l.HandlersLackOld, l.Initial = true, true
	if count, _ := l.count(&status.EventStats{}); count > 0 {
		r.push(l.element(count, false))
	}
}

// RecordCaughtUp ends the state of late handlers that have received the objects of all partitions. least is
// the least of their list numbers. synced is HasSynced of the informer.
func (h *Handlers) RecordCaughtUp(least int, synced bool) {
	for _, r := range h.registered {
		if r.addedAt == 0 || r.addedAt > least {
			continue
		}
		r.addedAt = 0
		for _, mark := range r.onCaughtUp {
			r.Mark(mark)
		}
		r.onCaughtUp = nil
		if synced {
			r.pushSynced()
		}
	}
}

// MarkFilled is Registration.Mark, after the cached objects that the handler receives when it is added.
func (h *Handlers) MarkFilled(r *Registration, mark func()) {
	if r.addedAt > 0 {
		r.onCaughtUp = append(r.onCaughtUp, mark)
		return
	}
	r.Mark(mark)
}

// RestartLate makes late handlers receive all objects of the next incarnation. It deletes the objects that
// they have received: deletions has the deletion of each cached object, and the list number of its partition.
func (h *Handlers) RestartLate(deletions iter.Seq2[int, Notification]) {
	for _, r := range h.registered {
		if r.addedAt == 0 {
			continue
		}
		for listNumber, deletion := range deletions {
			if r.addedAt <= listNumber {
				r.push(deletion)
			}
		}
		r.addedAt = h.Lists + 1
	}
}

// ForgetLate ends the state of late handlers.
func (h *Handlers) ForgetLate() {
	for _, r := range h.registered {
		r.addedAt, r.onCaughtUp = 0, nil
	}
}
