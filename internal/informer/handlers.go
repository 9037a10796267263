package informer

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/internal/queue"
)

// minResyncPeriod is the shortest resync period of a handler.
const minResyncPeriod = time.Second

// AddEventHandler adds a handler with the informer's default resync period. See AddEventHandlerWithOptions.
func (i *Informer) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with its own resync period; zero means no resyncs. See
// AddEventHandlerWithOptions.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler,
	resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions adds a handler at any time before the stop. A handler that is added while the
// informer runs is first told what the cache holds, as additions of an initial list.
//
// Resync periods follow client-go's rules: at least a second; not more often than the informer checks; before
// the start a shorter period makes the informer check more often, afterwards it is raised to that; an
// informer whose default period is zero does no resyncs at all.
//
// The result is a *Registration.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler,
	options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, ErrNilHandler
	}
	how := unwrap(handler)
	r := &Registration{
		informer:  i,
		handler:   how.handler,
		name:      how.name,
		view:      i.viewFor(how),
		logger:    *i.options.Logger,
		queue:     queue.New(i.clock.Now, (*notification).count, (*notification).next),
		dismissed: make(chan struct{}),
		finished:  make(chan struct{}),
		resyncing: true,
		requested: i.options.ResyncPeriod,
	}
	r.synced.Store(newSyncPoint())
	if options.Logger != nil {
		r.logger = *options.Logger
	}
	if options.ResyncPeriod != nil {
		r.requested = *options.ResyncPeriod
	}
	if !i.admit(r) {
		text := fmt.Sprintf("handler %v was not added to shared informer because it has stopped already",
			handler)
		return nil, &refusal{text: text, cause: ErrStopped}
	}
	return r, nil
}

// admit adds a handler unless the informer has stopped.
func (i *Informer) admit(r *Registration) bool {
	now := i.clock.Now()
	i.joining.Lock()
	defer i.joining.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.state == StateStopped {
		return false
	}
	i.planResyncsLocked(r)
	r.next = now.Add(r.period)
	i.mu.handlers = append(i.mu.handlers, r)
	if i.mu.state != StateFresh {
		i.joinLocked(r)
	}
	return true
}

// joinLocked lets a handler in on a running informer: what is there first, then what happens next.
func (i *Informer) joinLocked(r *Registration) {
	content := &present{snapshot: i.store.Snapshot()}
	if i.mu.unconfirmed.any() {
		content = &present{items: slices.DeleteFunc(content.snapshot.Items(), i.mu.unconfirmed.has)}
	}
	var batch []notification
	if n := content.Len(); n > 0 {
		batch = append(batch, notification{kind: kindList,
			current: &cursor{listing: listing{changes: content, initial: true}, left: n}})
	}
	if i.synced.Load().reached() {
		batch = append(batch, marker(r.synced.Load().reach))
	}
	r.queue.Push(batch...)
	i.startLocked(r)
}

// startLocked has the handler called, until its queue is closed.
func (i *Informer) startLocked(r *Registration) {
	i.workers.Add(1)
	r.start(i.workers.Done)
}

// planResyncsLocked settles the resync period of a new handler and, before the start, how often to check.
func (i *Informer) planResyncsLocked(r *Registration) {
	if r.requested > 0 && r.requested < minResyncPeriod {
		r.logger.Info("Raising the resync period to the least that is allowed", "requested", r.requested,
			"least", minResyncPeriod)
		r.requested = minResyncPeriod
	}
	if r.requested > 0 && r.requested < i.mu.resyncCheck {
		if i.mu.state == StateFresh {
			i.mu.resyncCheck = r.requested
			for _, other := range i.mu.handlers {
				other.period = effectivePeriod(other.logger, other.requested, i.mu.resyncCheck)
			}
		} else {
			r.logger.Info("Raising the resync period to what the running informer checks", "requested",
				r.requested, "check", i.mu.resyncCheck)
			r.requested = i.mu.resyncCheck
		}
	}
	r.period = effectivePeriod(r.logger, r.requested, i.mu.resyncCheck)
}

// effectivePeriod is the resync period that a request comes to when the informer checks every check.
func effectivePeriod(logger klog.Logger, requested, check time.Duration) time.Duration {
	switch {
	case requested == 0:
		return 0
	case check == 0:
		logger.Info("Ignoring the resync period, because this informer does no resyncs",
			"requested", requested)
		return 0
	default:
		return max(requested, check)
	}
}

// RemoveEventHandler removes a handler by what AddEventHandler returned. Its queue is thrown away; a call
// that is under way goes on (see cache.ShutDownEventHandler to wait for it). Removing twice, or from inside
// the handler, is fine; a handle of another informer is ignored, one of another kind is an error.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*Registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	i.joining.Lock()
	defer i.joining.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.mu.handlers, r)
	if at < 0 {
		return nil
	}
	i.mu.handlers = slices.Delete(i.mu.handlers, at, at+1)
	if i.mu.state != StateStopped { // or Stop has dismissed it
		i.dismissLocked(r)
	}
	return nil
}

// dismissLocked ends a handler, whether or not its goroutine was ever started.
func (i *Informer) dismissLocked(r *Registration) {
	r.queue.Close()
	close(r.dismissed)
	if i.mu.state == StateFresh {
		close(r.finished)
	}
}

// Registrations returns the present handlers, in the order in which they were added.
func (i *Informer) Registrations() []*Registration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.mu.handlers)
}

// tellLocked queues notifications for every handler; those of a resync only for the handlers that take part.
// Of what is not confirmed nobody is told.
func (i *Informer) tellLocked(notifications ...notification) {
	if i.mu.unconfirmed.any() {
		notifications = i.mu.unconfirmed.without(notifications)
	}
	i.events.count(notifications...)
	for _, r := range i.mu.handlers {
		if !r.resyncing {
			notifications := withoutResyncs(notifications)
			r.queue.Push(notifications...)
			continue
		}
		r.queue.Push(notifications...)
	}
}

// tellOfLocked is tellLocked for the changes of a list.
func (i *Informer) tellOfLocked(l listing) {
	if i.mu.unconfirmed.any() {
		l.changes = i.mu.unconfirmed.changesWithout(l.changes)
	}
	all, resyncs := l.count(&i.events)
	for _, r := range i.mu.handlers {
		left := all
		if !r.resyncing {
			left -= resyncs
		}
		if left > 0 {
			r.queue.Push(notification{kind: kindList, current: &cursor{listing: l, left: left,
				resyncs: r.resyncing}})
		}
	}
}

func withoutResyncs(notifications []notification) []notification {
	if !slices.ContainsFunc(notifications, notification.isResync) {
		return notifications
	}
	return slices.DeleteFunc(slices.Clone(notifications), notification.isResync)
}
