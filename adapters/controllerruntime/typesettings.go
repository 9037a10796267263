package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// TypeSettings are the settings of one type for SetTypeSettings.
type TypeSettings struct {
	// ByObject has the selectors, namespaces and transforms. As in cache.Options.ByObject, the defaults of
	// cache.Options apply to unset fields. A change of only SyncPeriod or EnableWatchBookmarks has no effect
	// on a running informer.
	cache.ByObject
	// AnyOf limits the objects further, to objects that at least one alternative selects: see
	// dynamicinformer.ResourceOptions.AnyOf.
	AnyOf []dynamicinformer.Selector
	// Selectors is like AnyOf, and can change at any time: an added selector lists only its objects. See
	// dynamicinformer.Selectors, and WaitForSelectors of the informers of Cache.Factory.
	Selectors *dynamicinformer.Selectors
	// Storage, Prune, Keep and ReducedGet override the fields of Options with these names. Prune replaces
	// Keep, and Keep replaces Prune.
	Storage    dynamicinformer.Storage
	Prune      dynamicinformer.Prune
	Keep       dynamicinformer.Keep
	ReducedGet ReducedGet
	// Versions selects the API version to watch when the server stops serving the version of the Go type. Use
	// it with versions of equal objects, because readers and handlers get objects of another version in the
	// same Go type. Default: dynamicinformer.PinnedVersion.
	Versions dynamicinformer.VersionPolicy
}

// SetTypeSettings changes the settings of the type of an object, in all of its forms, before or after Start.
// They replace the settings of cache.Options.ByObject and of earlier calls; unset fields have their defaults.
//
// A running cache lists and watches the type with the new settings next to the old ones, and then switches
// (TestSetTypeSettings): each handler receives, after its queued events, an addition, update or deletion for
// each object that differs in its resource version. No event is missed, repeated or reordered; registrations,
// informers and indexes stay valid. If the old settings have not synced, the new ones apply immediately.
//
// SetTypeSettings returns when reads use the new settings. If it fails, the old ones stay in effect
// (TestSetTypeSettingsFails): if ctx ends, the server rejects the requests, the type does not exist, or the
// cache stops (dynamicinformer.ErrStopped). Concurrent calls take effect one after the other. Event handlers
// can call it. Meanwhile the type is in memory twice.
func (c *Cache) SetTypeSettings(ctx context.Context, object client.Object, settings TypeSettings) error {
	gvk, newSettings, err := c.settings.resolveObject(object, settings)
	if err != nil {
		return fmt.Errorf("controllerruntime: set the settings of %T: %w", object, err)
	}
	select {
	case c.settingsSemaphore <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-c.settingsSemaphore }()
	for err = errFormsChanged; errors.Is(err, errFormsChanged); {
		err = c.takeOver(ctx, gvk, newSettings, c.resourcesOf(gvk))
	}
	if err != nil {
		return fmt.Errorf("controllerruntime: set the settings of %s, the old ones stay in effect: %w", gvk, err)
	}
	return nil
}

// errFormsChanged is returned if a form of the type was first used, or removed, during the change.
var errFormsChanged = errors.New("the forms of the type have changed")

// takeOver replaces the informers of all forms of a type.
func (c *Cache) takeOver(ctx context.Context, gvk schema.GroupVersionKind, settings *typeSettings,
	resources []*resource) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(c.ctx, func() { cancel(dynamicinformer.ErrStopped) })()
	defer func() {
		for _, r := range resources {
			r.discardIncoming()
		}
	}()
	for _, r := range resources {
		if err := c.prepareIncoming(r, settings); err != nil {
			return err
		}
	}
	for _, r := range resources {
		if !slices.ContainsFunc(r.current.Load().informers(), (*dynamicinformer.Informer).HasSynced) {
			continue
		}
		for _, informer := range r.incoming.Load().informers() {
			if err := awaitAccepted(ctx, informer); err != nil {
				return err
			}
		}
	}
	unlock, err := c.lockKind(ctx, gvk)
	if err != nil {
		return err
	}
	defer unlock()
	if !slices.Equal(c.resourcesOf(gvk), resources) {
		return errFormsChanged
	}
	return c.commitIncoming(ctx, resources, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.settings.byKind[gvk] = settings
	})
}

// prepareIncoming acquires the informers that will replace the informers of a resource with other options.
func (c *Cache) prepareIncoming(r *resource, settings *typeSettings) error {
	informers, err := c.acquireInformers(r, settings)
	if err != nil {
		return err
	}
	r.changeMu.Lock()
	defer r.changeMu.Unlock()
	defer r.incoming.Store(informers)
	current := r.current.Load().informersByNamespace
	for _, v := range informers.informersByNamespace {
		k := slices.IndexFunc(current, func(c *scopedInformer) bool { return c.informer() == v.informer() })
		if k >= 0 {
			v.factoryHandle.Release()
			v.factoryHandle = current[k].factoryHandle
		} else if r.indexes.currentFunctions != nil {
			if err := v.factoryHandle.AddIndexes(r.indexes.currentFunctions); err != nil {
				return err
			}
		}
	}
	return nil
}

// discardIncoming releases the incoming informers, if there are any.
func (r *resource) discardIncoming() {
	r.changeMu.Lock()
	defer r.changeMu.Unlock()
	if incoming := r.incoming.Swap(nil); incoming != nil {
		current := r.current.Load()
		if r.informer.closed.Load() {
			current = nil
		}
		incoming.release(current)
	}
}

// awaitAccepted waits until an informer has synced. It returns an error as soon as the server rejects its
// requests.
func awaitAccepted(ctx context.Context, informer *dynamicinformer.Informer) error {
	for !informer.HasSynced() {
		current, changed := informer.StatusChange()
		failure := &dynamicinformer.NotSyncedError{NotSynced: []status.Status{current}}
		if current.Settled() && !informer.HasSynced() || apierrors.IsBadRequest(current.LastError) {
			return failure
		}
		select {
		case <-informer.Synced():
		case <-changed:
		case <-ctx.Done():
			failure.Cause = context.Cause(ctx)
			return failure
		}
	}
	return nil
}

// commitIncoming moves all handlers to the incoming informers. It calls committed when it no longer fails.
func (c *Cache) commitIncoming(ctx context.Context, resources []*resource, committed func()) error {
	moves := make([]*dynamicinformer.HandlerMove, len(resources))
	handlers := make([][]*registration, len(resources))
	for k, r := range resources {
		r.changeMu.Lock() // only calls that hold Cache.settingsSemaphore lock several
		defer r.changeMu.Unlock()
		if r.informer.closed.Load() {
			return errFormsChanged
		}
		incoming := r.incoming.Load()
		handlers[k] = slices.DeleteFunc(slices.Collect(maps.Keys(r.informer.registrations)),
			func(r *registration) bool { return len(r.parts()) == 0 }) // an earlier failure has ended them
		moves[k] = &dynamicinformer.HandlerMove{From: r.current.Load().informers(), To: incoming.informers(),
			Owner: func(namespace string) int {
				return max(slices.Index(incoming.informersByNamespace, incoming.forNamespace(namespace)), 0)
			}}
		for _, h := range handlers[k] {
			moves[k].Handlers = append(moves[k].Handlers, h.registrations())
		}
	}
	replaced := make([]*informerSet, len(resources))
	err := dynamicinformer.MoveHandlers(ctx, func() {
		committed()
		for k, r := range resources {
			replaced[k] = r.current.Swap(r.incoming.Swap(nil))
			close(replaced[k].replaced)
		}
	}, moves...)
	for k, r := range resources {
		set := r.current.Load()
		for n, h := range handlers[k] {
			h.setRegistrations(set, moves[k].Handlers[n])
		}
		if replaced[k] != nil {
			replaced[k].release(set)
		}
	}
	return err
}
