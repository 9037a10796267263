package informer

import (
	"fmt"
	"slices"
	"strings"
)

// A late handler is a handler that is added after the start to an informer that stores no objects. The
// informer therefore lists its partitions again. The handler receives the objects of the next list of each
// partition as additions, and then further events of the partition. Registration.addedAt is the number of the
// first list that the handler receives. It is zero for other handlers, and when all partitions have been
// listed. Other handlers are notified of the differences only.

// errLateHandler is returned if the informer cannot list again.
var errLateHandler = fmt.Errorf("add a handler to a running informer: %w; or add handlers before the start", ErrNotStored)

// addLateLocked adds a late handler.
func (i *Informer) addLateLocked(r *Registration) error {
	for _, p := range i.mu.partitions {
		if i.inlineWatcher(p.ListerWatcher) == nil {
			return errLateHandler
		}
	}
	r.addedAt = i.mu.lists + 1
	i.addLocked(r)
	i.recordCaughtUpLocked()
	i.startLocked(r)
	return nil
}

// knowsLocked reports whether the handler has received the objects of a partition. For a nil partition, it
// reports whether it has received those of any.
func (r *Registration) knowsLocked(p *partition) bool {
	if p == nil {
		return r.addedAt <= r.informer.mu.lists
	}
	return r.addedAt <= p.listNumber
}

// pushFirstListLocked queues the additions of the first list of a partition that the handler receives.
func (r *Registration) pushFirstListLocked(l listChanges) {
	if !l.complete {
		return
	}
	l.handlersLackOld, l.initial = true, true
	if count, _ := l.countEvents(&Events{}); count > 0 {
		r.push(newList(l, count, false))
	}
}

// recordCaughtUpLocked ends the state of late handlers that have received the objects of all partitions.
func (i *Informer) recordCaughtUpLocked() {
	if len(i.mu.partitions) == 0 && i.store.Snapshot().Len() > 0 { // between two incarnations
		return
	}
	for _, r := range i.mu.handlers {
		if r.addedAt == 0 || i.lagsLocked(r) {
			continue
		}
		r.addedAt = 0
		for _, mark := range r.onCaughtUp {
			r.Mark(mark)
		}
		r.onCaughtUp = nil
		if i.synced.Load().reached() {
			r.push(newMark(r.synced.Load().markReached))
		}
	}
}

// lagsLocked reports whether a handler has not received the objects of a partition.
func (i *Informer) lagsLocked(r *Registration) bool {
	for _, p := range i.mu.partitions {
		if !r.knowsLocked(p) {
			return true
		}
	}
	return false
}

// ownersLocked returns the partitions of the objects by key, if there are late handlers.
func (i *Informer) ownersLocked() map[string]*partition {
	if !slices.ContainsFunc(i.mu.handlers, func(r *Registration) bool { return r.addedAt > 0 }) {
		return nil
	}
	owners := map[string]*partition{}
	for key, item := range i.store.Snapshot().All {
		for _, p := range i.mu.partitions {
			if strings.HasPrefix(key, p.prefix()) && p.selects(item) {
				owners[key] = p
			}
		}
	}
	return owners
}

// resetLateHandlersLocked makes late handlers receive all objects of the next incarnation. The objects that
// they have received are deleted before.
func (i *Informer) resetLateHandlersLocked() {
	owners := i.ownersLocked()
	for _, r := range i.mu.handlers {
		if r.addedAt == 0 {
			continue
		}
		for key, owner := range owners {
			if item, _ := i.store.Snapshot().Get(key); r.knowsLocked(owner) {
				r.push(deletedUnobserved(key, item))
			}
		}
		r.addedAt = i.mu.lists + 1
	}
}

// hasLateHandlerLocked reports whether the partition has to be listed for a handler.
func (p *partition) hasLateHandlerLocked() bool {
	return slices.ContainsFunc(p.informer.mu.handlers,
		func(r *Registration) bool { return !r.knowsLocked(p) })
}
