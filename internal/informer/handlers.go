package informer

import (
	"context"
	"fmt"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/internal/informer/delivery"
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

// AddEventHandlerWithOptions adds a handler. It returns a *Registration. It fails after the stop. A handler
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
	r := delivery.NewRegistration(&i.delivery, handler, options, i.selectsObjects.Load())
	if err := i.addHandler(handler, r); err != nil {
		return nil, err
	}
	i.ListMissing()
	return r, nil
}

// addHandler adds a handler unless the informer has stopped.
func (i *Informer) addHandler(handler cache.ResourceEventHandler, r *delivery.Registration) error {
	i.registering.Lock()
	defer i.registering.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	isRunning := i.mu.state != StateNew
	switch {
	case i.mu.state == StateStopped:
		text := fmt.Sprintf("handler %v was not added to shared informer because it has stopped already",
			handler)
		return &explainedError{text: text, cause: ErrStopped}
	case isRunning && !i.store.StoresObjects():
		i.mu.handlers.AddLate(r)
		i.recordCaughtUpLocked()
		r.Start()
		return nil
	}
	i.mu.handlers.Add(r, isRunning)
	if isRunning {
		var hidden func(Item) bool
		if i.mu.unconfirmed.any() {
			hidden = i.mu.unconfirmed.has
		}
		r.PushContent(i.store.Snapshot(), hidden, i.HasSynced())
	}
	r.Start()
	return nil
}

// RemoveEventHandler removes a handler and discards its queue. It does not wait for a running call of the
// handler (see cache.ShutDownEventHandler), so the handler can call it. It ignores a handler that is not
// registered, and returns an error if the handle is not a *delivery.Registration.
func (i *Informer) RemoveEventHandler(handle cache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*delivery.Registration)
	if !ok {
		return fmt.Errorf("invalid key type %T", handle)
	}
	i.registering.Lock()
	defer i.registering.Unlock()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.handlers.Remove(r)
	return nil
}

// Registrations returns the handlers in the order in which they were added.
func (i *Informer) Registrations() []*delivery.Registration {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.handlers.All()
}

// MarkFilled is Handlers.MarkFilled.
func (i *Informer) MarkFilled(r *delivery.Registration, mark func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.mu.handlers.MarkFilled(r, mark)
}

// Flush is described at dynamicinformer.Informer.Flush.
func (i *Informer) Flush(ctx context.Context) error { return i.StartFlush().Wait(ctx) }

// StartFlush is Handlers.StartFlush.
func (i *Informer) StartFlush() delivery.Flush {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.handlers.StartFlush()
}

// listNumberLocked returns the number of the last list of a partition; for nil, that of any.
func (i *Informer) listNumberLocked(p *partition) int {
	if p == nil {
		return i.mu.handlers.Lists
	}
	return p.listNumber
}

// notifyLocked queues notifications for the handlers, except of unconfirmed objects. It overwrites the slice.
// p is the partition of the objects; nil if they belong to several.
func (i *Informer) notifyLocked(p *partition, notifications ...delivery.Notification) {
	if i.mu.unconfirmed.any() {
		notifications = slices.DeleteFunc(notifications,
			func(n delivery.Notification) bool { return i.mu.unconfirmed.has(n.Item()) })
	}
	i.mu.handlers.Notify(i.listNumberLocked(p), notifications...)
}

// notifyListLocked is notifyLocked for the changes of a list. It reports whether an object has changed.
func (i *Informer) notifyListLocked(p *partition, l delivery.List) (changed bool) {
	if i.mu.unconfirmed.any() {
		l.Changes = i.mu.unconfirmed.filterChanges(l.Changes)
	}
	return i.mu.handlers.NotifyList(i.listNumberLocked(p), l)
}
