package controllerruntime

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/dynamicinformer"
)

// Informer is the informer that GetInformer returns for a type and one form of its objects: a struct,
// unstructured or only metadata. Its handlers and its store have shared, read-only objects of that form. It
// is safe for concurrent use.
//
// It is also a toolscache.SharedIndexInformer with a read-only store (TestInformerEqualsStock). With several
// namespaces the store has the objects of all of them; the stock cache has no SharedIndexInformer then.
type Informer struct {
	foreignInformer //lint:ignore U1000 nil; it has the methods that newer releases add
	syncedChecker   *syncCheckers
	resource        *resource
	// watchErrorHandler replaces the handler of cache.Options, unless it is nil.
	watchErrorHandler atomic.Pointer[toolscache.WatchErrorHandlerWithContext]
	// registrations is guarded by resource.changeMu.
	registrations map[*registration]struct{}
	closed        atomic.Bool
}

// GetInformer returns the informer of the type and form of an object, and creates it if necessary. Once the
// cache has been started, it waits until the informer has synced, unless BlockUntilSynced(false) is given.
// If ctx ends first, it returns a timeout error that says why the informer has not synced.
func (c *Cache) GetInformer(ctx context.Context, object client.Object,
	opts ...cache.InformerGetOption) (cache.Informer, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return nil, err
	}
	return c.getInformer(ctx, gvk, object, opts...)
}

// GetInformerForKind is GetInformer for the typed objects of a kind that the scheme knows.
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
	r, started, err := c.resource(ctx, resourceKey{gvk, convert.FormOf(object)}, object)
	if err != nil {
		return nil, err
	}
	options := cache.InformerGetOptions{}
	for _, option := range opts {
		option(&options)
	}
	if started && ptr.Deref(options.BlockUntilSynced, true) {
		err := r.read(func(s *informerSet) error {
			return r.awaitInformers(ctx, s.informersByNamespace...)
		})
		if err != nil {
			return nil, err
		}
	}
	return r.informer, nil
}

// RemoveInformer removes the informer of the type and form of an object. Its handlers are not called again.
// Its watch stops, unless another form of the type or another user of the factory needs it.
func (c *Cache) RemoveInformer(_ context.Context, object client.Object) error {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return err
	}
	key := resourceKey{gvk, convert.FormOf(object)}
	c.mu.Lock()
	r := c.mu.resources[key]
	delete(c.mu.resources, key)
	c.mu.Unlock()
	if r != nil {
		r.close()
	}
	return nil
}

// IndexField adds an index over the objects of the type and form of an object, for client.MatchingFields. It
// does not wait for the informer. Fields indexed before Start do not need a second pass over the objects.
func (c *Cache) IndexField(ctx context.Context, object client.Object, field string,
	extract client.IndexerFunc) error {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if err != nil {
		return err
	}
	r, _, err := c.resource(ctx, resourceKey{gvk, convert.FormOf(object)}, object)
	if err != nil {
		return err
	}
	keys := func(object any) ([]string, error) { // List filters by namespace itself: see searchIndexes
		o, ok := object.(client.Object)
		if !ok {
			return nil, fmt.Errorf("object of type %T is not an Object", object)
		}
		return extract(o), nil
	}
	return r.addIndexers(toolscache.Indexers{fieldIndexName(field): keys}, true)
}

// AddIndexers adds index functions, which receive objects of the informer's form.
func (i *Informer) AddIndexers(added toolscache.Indexers) error {
	return i.resource.addIndexers(added, false)
}

// AddEventHandler adds a handler with the resync period of the type; see AddEventHandlerWithOptions.
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

// AddEventHandlerWithOptions adds a handler. Each namespace with its own watch has one goroutine that calls
// it. An object that does not fit the form is reported, and the handler receives only its delete, with
// metadata. The handler of a source is removed when its controller stops (TestHandlersOfStoppedControllers).
func (i *Informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler,
	options toolscache.HandlerOptions) (toolscache.ResourceEventHandlerRegistration, error) {
	if handler == nil {
		return nil, fmt.Errorf("%s: the event handler is nil", i.resource.key.gvk)
	}
	if err := i.resource.checkHandler(handler); err != nil {
		return nil, err
	}
	reg := &registration{informer: i}
	reg.syncedChecker = &syncCheckers{name: "event handler of " + i.resource.key.gvk.String(),
		conditions: reg.conditions, resource: i.resource}
	i.resource.changeMu.Lock()
	defer i.resource.changeMu.Unlock()
	if i.closed.Load() {
		return nil, fmt.Errorf("%s: the handler was not added: %w", i.resource.key.gvk, dynamicinformer.ErrStopped)
	}
	informers := i.resource.current.Load()
	var parts []toolscache.ResourceEventHandlerRegistration
	for _, informer := range informers.informers() {
		part, err := informer.AddEventHandlerWithOptions(i.resource.converter.Handler(handler,
			i.resource.recordDeletion), options)
		if err != nil {
			reg.remove()
			return nil, err
		}
		parts = append(parts, part)
		reg.setRegistrations(informers, parts)
	}
	i.registrations[reg] = struct{}{}
	if ctx := convert.ContextOf(handler); ctx != nil {
		reg.removed = context.AfterFunc(ctx, func() { _ = i.RemoveEventHandler(reg) })
	}
	return reg, nil
}

// RemoveEventHandler removes the handler of a registration that AddEventHandler returned.
func (i *Informer) RemoveEventHandler(handle toolscache.ResourceEventHandlerRegistration) error {
	r, ok := handle.(*registration)
	if !ok || r.informer != i {
		return fmt.Errorf("%s: a %T is not a registration of this informer", i.resource.key.gvk, handle)
	}
	i.resource.changeMu.Lock()
	defer i.resource.changeMu.Unlock()
	delete(i.registrations, r)
	r.remove()
	return nil
}

// close removes all handlers, and rejects new ones. The caller holds resource.changeMu.
func (i *Informer) close() {
	i.closed.Store(true)
	for r := range i.registrations {
		r.remove()
	}
	clear(i.registrations)
}

// HasSynced reports whether the informer has received its first list of every namespace.
func (i *Informer) HasSynced() bool {
	return !slices.ContainsFunc(i.resource.current.Load().informersByNamespace,
		func(v *scopedInformer) bool { return !v.informer().HasSynced() })
}

// HasSyncedChecker returns HasSynced as a channel, which stays open if the informer stops first.
func (i *Informer) HasSyncedChecker() toolscache.DoneChecker { return i.syncedChecker }

// IsStopped reports whether the informer has been removed, or has stopped with the cache.
func (i *Informer) IsStopped() bool {
	return i.closed.Load() || !slices.ContainsFunc(i.resource.current.Load().informersByNamespace,
		func(v *scopedInformer) bool { return !v.informer().IsStopped() })
}

// Releases of client-go and controller-runtime add methods to these interfaces. A type here embeds the
// interface that it implements, as nil: a program with a newer release compiles, and an added method panics.
// TestForeign verifies that no known method is missing.
type (
	foreignCache        = cache.Cache
	foreignInformer     = toolscache.SharedIndexInformer
	foreignIndexer      = toolscache.Indexer
	foreignRegistration = toolscache.ResourceEventHandlerRegistration
)
