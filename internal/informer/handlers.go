package informer

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/queue"
)

// AddEventHandler adds a handler with the informer's default resync period. See AddEventHandlerWithOptions.
func (i *Informer) AddEventHandler(
	handler cache.ResourceEventHandler) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod is AddEventHandlerWithOptions with a resync period; zero means none.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler cache.ResourceEventHandler,
	resyncPeriod time.Duration) (cache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, cache.HandlerOptions{ResyncPeriod: &resyncPeriod})
}

// AddEventHandlerWithOptions adds a handler, and returns a *Registration. It fails after the stop. A handler
// that is added while the informer runs first receives the cached objects as an initial list.
//
// Resync periods follow client-go's rules. The least is a second. A period shorter than the check period of
// the informer shortens that before the start, and is raised to it afterwards. An informer with a default
// period of zero does no resyncs.
func (i *Informer) AddEventHandlerWithOptions(handler cache.ResourceEventHandler,
	options cache.HandlerOptions) (cache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, ErrNilHandler
	}
	if options.ResyncPeriod != nil && *options.ResyncPeriod > 0 && !i.store.StoresObjects() {
		return nil,
			fmt.Errorf("add a handler with the resync period %v: %w: call Relist to receive all objects again",
				*options.ResyncPeriod, ErrNotStored)
	}
	r := i.newRegistration(handler, options)
	if err := i.addHandler(r); err != nil {
		return nil, err
	}
	i.ListMissing()
	return r, nil
}

func (i *Informer) newRegistration(handler cache.ResourceEventHandler,
	options cache.HandlerOptions) *Registration {
	traits := collectTraits(handler)
	r := &Registration{
		informer:        i,
		added:           handler,
		options:         options,
		handler:         traits.handler,
		name:            traits.name,
		project:         i.projectionFor(traits),
		logger:          *i.options.Logger,
		queue:           queue.New(i.clock.Now, (*notification).eventCount, (*notification).next),
		ending:          make(chan struct{}),
		finished:        make(chan struct{}),
		inResync:        true,
		requestedPeriod: i.options.ResyncPeriod,
	}
	if traits.coalescing && !(traits.coalescingByDefault && i.selectsObjects.Load()) {
		r.coalescer = newCoalescer(r.queue, i.clock.Now)
	}
	r.synced.Store(newSyncPoint())
	if options.Logger != nil {
		r.logger = *options.Logger
	}
	if options.ResyncPeriod != nil {
		r.requestedPeriod = *options.ResyncPeriod
	}
	return r
}

// addHandler adds a handler unless the informer has stopped.
func (i *Informer) addHandler(r *Registration) error {
	i.registering.Lock()
	defer i.registering.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.state == StateStopped {
		text := fmt.Sprintf("handler %v was not added to shared informer because it has stopped already",
			r.added)
		return &explainedError{text: text, cause: ErrStopped}
	}
	if i.mu.state != StateNew && !i.store.StoresObjects() {
		return i.addLateLocked(r)
	}
	i.addLocked(r)
	if i.mu.state != StateNew {
		i.pushInitialContentLocked(r)
	}
	i.startLocked(r)
	return nil
}

func (i *Informer) addLocked(r *Registration) {
	i.planResyncsLocked(r)
	r.nextResync = i.clock.Now().Add(r.period)
	i.mu.handlers = append(i.mu.handlers, r)
}

// pushInitialContentLocked queues the cached objects of a running informer as the initial list of a handler.
func (i *Informer) pushInitialContentLocked(r *Registration) {
	content := &initialContent{snapshot: i.store.Snapshot()}
	if i.mu.unconfirmed.any() {
		content = &initialContent{items: slices.DeleteFunc(content.snapshot.Items(), i.mu.unconfirmed.has)}
	}
	var batch []notification
	if n := content.Len(); n > 0 {
		l := listChanges{changes: content, initial: true, additionsOnly: true}
		batch = append(batch, newList(l, n, false))
	}
	if i.synced.Load().reached() {
		batch = append(batch, newMark(r.synced.Load().markReached))
	}
	r.push(batch...)
}

// startLocked calls the handler until its queue is closed.
func (i *Informer) startLocked(r *Registration) {
	i.workers.Add(1)
	r.start(i.workers.Done)
}

// RemoveEventHandler removes a handler and discards its queue. It does not wait for a running call of the
// handler (see cache.ShutDownEventHandler), so the handler can call it. It ignores a handler that is not
// registered, and returns an error if the handle is not a *Registration.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*Registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	i.registering.Lock()
	defer i.registering.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	at := slices.Index(i.mu.handlers, r)
	if at < 0 {
		return nil
	}
	i.mu.handlers = slices.Delete(i.mu.handlers, at, at+1)
	if i.mu.state != StateStopped { // or Stop has ended it
		r.end()
	}
	return nil
}

// end discards the queues of the handler and of the registrations that it continues. It is idempotent.
func (r *Registration) end() {
	r.ended.Do(func() {
		r.queue.Close()
		if r.coalescer != nil {
			r.coalescer.close()
		}
		close(r.ending)
	})
	if previous := r.previous.Load(); previous != nil {
		for _, p := range *previous {
			p.end()
		}
	}
}

// Registrations returns the handlers in the order in which they were added.
func (i *Informer) Registrations() []*Registration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return slices.Clone(i.mu.handlers)
}

// notifyLocked queues notifications for every handler, resyncs only for the handlers that take part. It drops
// notifications of unconfirmed objects, and overwrites the slice. p is the partition of the objects; nil if
// they belong to several.
func (i *Informer) notifyLocked(p *partition, notifications ...notification) {
	if i.mu.unconfirmed.any() {
		notifications = slices.DeleteFunc(notifications,
			func(n notification) bool { return i.mu.unconfirmed.has(n.item()) })
	}
	for k := range notifications {
		i.mu.events.add(&notifications[k])
	}
	for _, r := range i.mu.handlers {
		if r.coalescer != nil && r.knowsLocked(p) {
			r.coalescer.push(r.inResync, notifications...)
		}
	}
	for k := range notifications {
		if notifications[k].kind == kindDelete {
			notifications[k].current = nil
		}
	}
	for _, r := range i.mu.handlers {
		switch {
		case r.coalescer != nil, !r.knowsLocked(p):
		case r.inResync:
			r.queue.Push(notifications...)
		default:
			r.queue.Push(withoutResyncs(notifications)...)
		}
	}
}

// notifyListLocked queues the notifications of the changes of a list for every handler, as one element each.
// It reports whether an object has changed.
func (i *Informer) notifyListLocked(l listChanges) (changed bool) {
	if i.mu.unconfirmed.any() {
		l.changes = i.mu.unconfirmed.filterChanges(l.changes)
	}
	all, resyncs := l.countEvents(&i.mu.events)
	for _, r := range i.mu.handlers {
		if !r.knowsLocked(l.partition) {
			r.pushFirstListLocked(l)
			continue
		}
		left, wantsResyncs := all, r.inResync && !l.withoutResyncs
		if !wantsResyncs {
			left -= resyncs
		}
		if left > 0 {
			r.push(newList(l, left, wantsResyncs))
		}
	}
	return all > resyncs
}

func withoutResyncs(notifications []notification) []notification {
	if !slices.ContainsFunc(notifications, notification.isResync) {
		return notifications
	}
	return slices.DeleteFunc(slices.Clone(notifications), notification.isResync)
}
