package controllerruntime

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Informer is a type in one form: what GetInformer returns. Its handlers get objects of that form, shared and
// read-only. It is safe for concurrent use.
type Informer struct {
	resource *resource

	mu struct {
		sync.Mutex
		registrations map[*registration]struct{}
		closed        bool
	}
}

var _ cache.Informer = (*Informer)(nil)

// GetInformer returns the informer of the type of an object, in the form that the object is of, and makes it
// where there is none. Once the cache has been started it waits until the informer has synced, unless
// BlockUntilSynced(false) is given; the error is a timeout when ctx ends before, which says what keeps it
// from syncing.
func (c *Cache) GetInformer(ctx context.Context, object client.Object,
	opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err
	}
	return c.getInformer(ctx, gvk, object, opts...)
}

// GetInformerForKind is GetInformer for the typed objects of a kind, which the scheme has to know.
func (c *Cache) GetInformerForKind(ctx context.Context, gvk schema.GroupVersionKind,
	opts ...cache.InformerGetOption) (cache.Informer, error) {
	object, err := c.scheme.New(gvk)
	if err != nil {
		return nil, err
	}
	return c.getInformer(ctx, gvk, object, opts...)
}

func (c *Cache) getInformer(ctx context.Context, gvk schema.GroupVersionKind, object runtime.Object,
	opts ...cache.InformerGetOption) (cache.Informer, error) {
	r, started, err := c.resource(ctx, resourceKey{gvk, kindOfForm(object)}, object)
	if err != nil {
		return nil, err
	}
	options := cache.InformerGetOptions{}
	for _, option := range opts {
		option(&options)
	}
	if started && ptr.Deref(options.BlockUntilSynced, true) {
		if err := r.awaitViews(ctx, object, r.all()...); err != nil {
			return nil, err
		}
	}
	return r.informer, nil
}

// RemoveInformer removes the informer of the type of an object, in the form that the object is of: its
// handlers are not called again, and it stops at once unless another form of the type, or somebody who shares
// the factory, needs what it has.
func (c *Cache) RemoveInformer(_ context.Context, object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return err
	}
	key := resourceKey{gvk, kindOfForm(object)}
	c.mu.Lock()
	r := c.mu.resources[key]
	delete(c.mu.resources, key)
	c.mu.Unlock()
	if r != nil {
		r.close()
	}
	return nil
}

// IndexField adds an index over the objects of a type, in the form that the object is of, for
// client.MatchingFields to look things up in. It does not wait for the informer. Fields that are indexed
// before Start cost no second look at objects.
func (c *Cache) IndexField(ctx context.Context, object client.Object, field string,
	extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return err
	}
	r, _, err := c.resource(ctx, resourceKey{gvk, kindOfForm(object)}, object)
	if err != nil {
		return err
	}
	return r.addIndexers(toolscache.Indexers{fieldIndexName(field): indexField(extract)})
}

// AddIndexers adds index functions, which get objects of the informer's form.
func (i *Informer) AddIndexers(added toolscache.Indexers) error { return i.resource.addIndexers(added) }

// AddEventHandler adds a handler with the sync period of the type; see AddEventHandlerWithOptions.
func (i *Informer) AddEventHandler(
	handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{})
}

// AddEventHandlerWithResyncPeriod adds a handler with a resync period of its own; see
// AddEventHandlerWithOptions.
func (i *Informer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler,
	period time.Duration) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandlerWithOptions(handler, toolscache.HandlerOptions{ResyncPeriod: &period})
}

// AddEventHandlerWithOptions adds a handler. It is called by one goroutine for each namespace that is
// followed by itself. An object that does not fit the form is reported, and the handler is not told of it; it
// gets its deletion with what metadata there is. For handlers of sources that only put the key of an object
// into a queue, nothing is decoded.
func (i *Informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler,
	options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, fmt.Errorf("%s: the event handler is nil", i.resource.key.gvk)
	}
	r := &registration{informer: i}
	for _, v := range i.resource.all() {
		part, err := v.informer().AddEventHandlerWithOptions(i.resource.form.handler(handler,
			i.resource.note), options)
		if err != nil {
			r.remove()
			return nil, err
		}
		r.parts = append(r.parts, registered{v.informer(), part})
	}
	if !i.keep(r) {
		r.remove()
		return nil, fmt.Errorf("%s: the handler was not added: %w", i.resource.key.gvk,
			dynamicinformer.ErrStopped)
	}
	return r, nil
}

// keep remembers a registration, unless the informer has been removed.
func (i *Informer) keep(r *registration) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.mu.closed {
		return false
	}
	if i.mu.registrations == nil {
		i.mu.registrations = map[*registration]struct{}{}
	}
	i.mu.registrations[r] = struct{}{}
	return true
}

// RemoveEventHandler removes a handler by what AddEventHandler returned.
func (i *Informer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.informer != i {
		return fmt.Errorf("%s: a %T is not a registration of this informer", i.resource.key.gvk, handle)
	}
	i.mu.Lock()
	delete(i.mu.registrations, r)
	i.mu.Unlock()
	r.remove()
	return nil
}

// close removes all handlers for good.
func (i *Informer) close() {
	i.mu.Lock()
	registrations := i.mu.registrations
	i.mu.registrations, i.mu.closed = nil, true
	i.mu.Unlock()
	for r := range registrations {
		r.remove()
	}
}

// HasSynced reports whether the informer has its first list, of every namespace.
func (i *Informer) HasSynced() bool {
	for _, v := range i.resource.views {
		if !v.informer().HasSynced() {
			return false
		}
	}
	return true
}

// HasSyncedChecker is HasSynced as a channel, which stays open when the informer stops before.
func (i *Informer) HasSyncedChecker() toolscache.DoneChecker {
	all := &checkers{name: "informer of " + i.resource.key.gvk.String()}
	for _, v := range i.resource.all() {
		all.parts = append(all.parts, part{v.informer().HasSyncedChecker().Done(), v.informer().Stopped()})
	}
	return all
}

// IsStopped reports whether the informer has been removed, or has stopped with the cache.
func (i *Informer) IsStopped() bool {
	if i.isClosed() {
		return true
	}
	for _, v := range i.resource.views {
		if !v.informer().IsStopped() {
			return false
		}
	}
	return true
}

// isClosed reports whether the cache has given the informer up.
func (i *Informer) isClosed() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.mu.closed
}
