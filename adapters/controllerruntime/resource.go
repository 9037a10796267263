package controllerruntime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
	"github.com/crdcache/crdcache/internal/queue"
)

type resourceKey struct {
	gvk  schema.GroupVersionKind
	form convert.Form
}

// resource is a type in one of the forms in which its objects are read. The forms of a type share informers
// with equal options.
type resource struct {
	cache      *Cache
	key        resourceKey
	gvr        schema.GroupVersionResource
	namespaced bool
	converter  *convert.Converter
	// current has the informers that are read. incoming has the informers that will replace them, or is nil.
	current, incoming atomic.Pointer[informerSet]
	// changeMu is held while handlers, indexes or informers change.
	changeMu sync.Mutex
	informer *Informer
	indexes  indexes
	// syncAwaited is set after a caller has successfully waited for the informers.
	syncAwaited atomic.Bool
	sharded     bool
	// recordDeletion is called before handlers receive a delete; nil if not needed.
	recordDeletion func(deleted any)
}

// informerSet has the informers of a resource. It is immutable.
type informerSet struct {
	settings *typeSettings
	// informersByNamespace has the informers, sorted by namespace. The informer of cache.AllNamespaces
	// serves the namespaces without an informer of their own.
	informersByNamespace []*scopedInformer
	// replaced is closed when another set has replaced this one.
	replaced chan struct{}
}

type scopedInformer struct {
	informerSet   *informerSet
	namespace     string
	factoryHandle *dynamicinformer.Handle
	// mayShareObjects: readers get shared objects, not copies. mayReduce: objects may lack fields that
	// readers need. transforms: a transform changes objects.
	mayShareObjects, mayReduce, transforms bool
	// droppedFields has a field that an index of the config reads and the cache drops, by the index's name in
	// the informers.
	droppedFields map[string]string
}

func (s *scopedInformer) informer() *dynamicinformer.Informer { return s.factoryHandle.Informer() }

// lookup returns a resource, or nil if it was not requested before, and the state of the cache.
func (c *Cache) lookup(key resourceKey) (*resource, cacheState) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.mu.resources[key], c.mu.state
}

// resourcesOf returns the resources of a kind, in the order of their forms.
func (c *Cache) resourcesOf(gvk schema.GroupVersionKind) (resources []*resource) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, form := range []convert.Form{convert.Typed, convert.Unstructured, convert.Metadata} {
		if r := c.mu.resources[resourceKey{gvk, form}]; r != nil {
			resources = append(resources, r)
		}
	}
	return resources
}

// resource returns a resource, which it creates if necessary, and whether the cache has been started.
func (c *Cache) resource(ctx context.Context, key resourceKey,
	object runtime.Object) (r *resource, started bool, err error) {
	r, state := c.lookup(key)
	started = state != cacheNew
	switch {
	case state == cacheFactoryStopped:
		return nil, started, lostInformerError(key.gvk)
	case r != nil:
		return r, started, nil
	case state == cacheEnded:
		return nil, started, endedError(key.gvk)
	}
	mapping, err := c.mapper.RESTMapping(key.gvk.GroupKind(), key.gvk.Version)
	if err != nil {
		return nil, started, err
	}
	converter, err := convert.New(c.scheme, key.gvk, key.form)
	if err != nil {
		return nil, started, err
	}
	if c.types != nil {
		c.types.add(mapping)
	}
	r, err = c.createResource(ctx, key, mapping, converter)
	return r, c.hasStarted(), err
}

// lockKind excludes other callers that create resources of a kind or change its settings.
func (c *Cache) lockKind(ctx context.Context, gvk schema.GroupVersionKind) (unlock func(), err error) {
	c.mu.Lock()
	lock := c.mu.kindLocks[gvk]
	if lock == nil {
		lock = make(chan struct{}, 1)
		c.mu.kindLocks[gvk] = lock
	}
	c.mu.Unlock()
	select {
	case lock <- struct{}{}: // also if ctx has ended
	default:
		select {
		case lock <- struct{}{}:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	return func() { <-lock }, nil
}

// createResource creates a resource, unless another caller has created it in the meantime.
func (c *Cache) createResource(ctx context.Context, key resourceKey, mapping *meta.RESTMapping,
	converter *convert.Converter) (*resource, error) {
	unlock, err := c.lockKind(ctx, key.gvk)
	if err != nil {
		return nil, err
	}
	defer unlock()
	if r, _ := c.lookup(key); r != nil {
		return r, nil
	}
	r, err := c.newResource(key, mapping, converter)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.state >= cacheEnded { // nothing would release the informers
		r.close()
		return nil, endedError(key.gvk)
	}
	c.mu.resources[key] = r
	return r, nil
}

func endedError(gvk schema.GroupVersionKind) error {
	return fmt.Errorf("the cache has ended, and creates no informer of %s: %w", gvk, dynamicinformer.ErrStopped)
}

// newResource acquires the informers of a resource. It holds no lock, because shared informers may have to
// build indexes first.
func (c *Cache) newResource(key resourceKey, mapping *meta.RESTMapping,
	converter *convert.Converter) (*resource, error) {
	r := &resource{
		cache: c, key: key, gvr: mapping.Resource,
		namespaced: mapping.Scope.Name() == meta.RESTScopeNameNamespace,
		converter:  converter,
	}
	r.sharded = c.options.Sharding.shardFor(r) != nil
	r.recordDeletion = c.options.Sharding.deletionHandler(r)
	r.informer = &Informer{resource: r, registrations: map[*registration]struct{}{}}
	r.indexes.suffix = indexSuffixes[key.form] + c.indexSuffix
	r.informer.syncedChecker = &syncCheckers{resource: r, name: "informer of " + key.gvk.String(),
		conditions: func() (conditions []waitCondition) {
			set := r.current.Load()
			for _, informer := range set.informers() {
				conditions = append(conditions,
					waitCondition{informer.Synced(), informer.Stopped(), set.replaced})
			}
			return conditions
		}}
	var err error
	r.indexes.configured, err = configurationOf(c.options.Indexes, r, c.options.compression())
	if err != nil {
		return nil, err
	}
	c.mu.RLock()
	settings := cmp.Or(c.settings.byKind[key.gvk], c.settings.defaults)
	c.mu.RUnlock()
	set, err := c.acquireInformers(r, settings)
	if err != nil {
		return nil, err
	}
	r.current.Store(set)
	return r, nil
}

// acquireInformers acquires the informers of a resource for settings.
func (c *Cache) acquireInformers(r *resource, settings *typeSettings) (*informerSet, error) {
	informers := &informerSet{settings: settings, replaced: make(chan struct{})}
	byNamespace := settings.byNamespace(r.namespaced)
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		handle, err := c.factory.Acquire(r.gvr, c.informerOptions(r, settings, namespace))
		if err == nil {
			config := byNamespace[namespace]
			v := &scopedInformer{informerSet: informers, namespace: namespace, factoryHandle: handle,
				mayShareObjects: ptr.Deref(config.UnsafeDisableDeepCopy, false),
				transforms:      config.Transform != nil && !convert.StripsManagedFields(config.Transform)}
			v.setReduction(r.key.form, r.indexes.configured.indexes)
			informers.informersByNamespace = append(informers.informersByNamespace, v)
			err = r.checkComplete(handle.Informer())
		}
		if err != nil {
			informers.release(nil)
			return nil, err
		}
	}
	return informers, nil
}

// checkComplete returns an error if the options of a shared factory store only metadata.
func (r *resource) checkComplete(informer *dynamicinformer.Informer) error {
	if informer.Snapshot().Err() != nil {
		return fmt.Errorf("the options of Options.Factory store no %s: set Options.Storage: %w", r.key.gvk, errStorageNone)
	}
	if !informer.StoresOnlyMetadata() || r.key.form == convert.Metadata {
		return nil
	}
	return fmt.Errorf("the options of Options.Factory keep only .metadata of %s, but readers of a cache get "+"objects: set Options.Storage", r.key.gvk)
}

// release releases the informers that are not also in retained, which can be nil.
func (s *informerSet) release(retained *informerSet) {
	for _, v := range s.informersByNamespace {
		if retained == nil || !slices.ContainsFunc(retained.informersByNamespace,
			func(other *scopedInformer) bool { return other.factoryHandle == v.factoryHandle }) {
			v.factoryHandle.Release()
		}
	}
}

func (s *informerSet) informers() []*dynamicinformer.Informer {
	return naming.Map(s.informersByNamespace, (*scopedInformer).informer)
}

func (c *Cache) informerOptions(r *resource, settings *typeSettings,
	namespace string) dynamicinformer.ResourceOptions {
	config := settings.byNamespace(r.namespaced)[namespace]
	options := c.storage(r, settings)
	options.Shard = c.options.Sharding.shardFor(r)
	options.AnyOf, options.Selectors, options.Versions = settings.AnyOf, settings.Selectors, settings.Versions
	options.LabelSelector = cmp.Or(config.LabelSelector, labels.Everything())
	options.FieldSelector = cmp.Or(config.FieldSelector, fields.Everything())
	options.Namespaces = dynamicinformer.AllNamespaces()
	if r.namespaced && namespace == cache.AllNamespaces {
		namespace, _ = options.FieldSelector.RequiresExactMatch("metadata.namespace")
	}
	if namespace != "" {
		options.Namespaces = dynamicinformer.InNamespaces(namespace)
	}
	options.Resync = new(ptr.Deref(config.SyncPeriod, defaultSyncPeriod)) // the informer adds jitter
	options.WatchBookmarks = config.EnableWatchBookmarks
	switch {
	case config.Transform == nil:
	case convert.StripsManagedFields(config.Transform):
		options.Prune.Presets = append(slices.Clip(options.Prune.Presets), dynamicinformer.PruneManagedFields)
	default:
		options.Transform = r.converter.Transform(config.Transform)
	}
	return options
}

// storage returns the storage options of a resource. They are StorageMetadata if only metadata of the type
// is read and nothing else is configured.
func (c *Cache) storage(r *resource, settings *typeSettings) dynamicinformer.ResourceOptions {
	options := dynamicinformer.ResourceOptions{Storage: c.options.Storage, Prune: c.options.Prune,
		Keep: c.options.Keep}
	if settings.Storage.Mode != 0 {
		options.Storage = settings.Storage
	}
	if selectsFields(settings.Prune, settings.Keep) {
		options.Prune, options.Keep = settings.Prune, settings.Keep
	}
	configured := r.indexes.configured
	if configured.functions != nil {
		options.Indexes = configured.functions
	}
	if options.Storage.Mode == 0 {
		options.Storage = configured.storage
	}
	if !selectsFields(options.Prune, options.Keep) {
		options.Prune, options.Keep = configured.prune, configured.keep
	}
	isWhole := func(r *resource) bool { return r.key.form != convert.Metadata }
	// An index and readers of whole objects may need more than metadata.
	if !isWhole(r) && configured.functions == nil && !slices.ContainsFunc(c.resourcesOf(r.key.gvk), isWhole) {
		options.Storage = dynamicinformer.Storage{Mode: dynamicinformer.StorageMetadata}
		if options.Keep = (dynamicinformer.Keep{}); !selectsFields(options.Prune, options.Keep) {
			options.Prune.Paths = []string{} // replaces Keep of the factory
		}
	}
	return options
}

func (r *resource) close() {
	r.changeMu.Lock()
	defer r.changeMu.Unlock()
	r.informer.close()
	r.current.Load().release(nil)
}

func errUnknownNamespace(verb string, object any) error {
	return fmt.Errorf("unable to %s: %v because of unknown namespace for the cache", verb, object)
}

// forNamespace returns the informer for a namespace, or else the informer for all namespaces; nil if there is
// neither.
func (s *informerSet) forNamespace(namespace string) *scopedInformer {
	k, found := slices.BinarySearchFunc(s.informersByNamespace, namespace,
		func(v *scopedInformer, namespace string) int { return cmp.Compare(v.namespace, namespace) })
	if found {
		return s.informersByNamespace[k]
	}
	if len(s.informersByNamespace) > 0 &&
		s.informersByNamespace[0].namespace == cache.AllNamespaces { // it sorts first
		return s.informersByNamespace[0]
	}
	return nil
}

// serves reports whether the informer can have the objects of a namespace.
func (s *scopedInformer) serves(namespace string) bool {
	return s.informerSet.forNamespace(namespace) == s
}

// read calls f with the current informers. It calls f again if f fails after the informers were replaced.
func (r *resource) read(f func(*informerSet) error) error {
	for {
		set := r.current.Load()
		err := f(set)
		if err == nil || r.current.Load() == set {
			return err
		}
	}
}

// allInformers returns the current and the incoming informers.
func (r *resource) allInformers() []*scopedInformer {
	informers := slices.Clone(r.current.Load().informersByNamespace)
	if incoming := r.incoming.Load(); incoming != nil {
		informers = append(informers, incoming.informersByNamespace...)
	}
	return informers
}

// awaitInformers waits until informers can be read. As in controller-runtime, the error is a timeout. It has
// the status of the informer. The first caller gets an error if its context has ended, even if the informer
// has synced: controller-runtime would not have synced yet.
func (r *resource) awaitInformers(ctx context.Context, informers ...*scopedInformer) error {
	timedOut := !r.syncAwaited.Load() && ctx.Err() != nil
	for _, scoped := range informers {
		// Does the cache need it, while the owner of the factory has shut it down or ended its context?
		if queue.IsClosed(scoped.informer().Stopped()) && !r.cache.ended() && !r.informer.closed.Load() {
			return lostInformerError(r.key.gvk)
		}
		if scoped.informer().HasSynced() && !timedOut {
			continue
		}
		err := context.Cause(ctx)
		if !timedOut {
			err = awaitReadable(ctx, scoped.informer(), r.isMissing)
		}
		switch {
		case err == nil:
		case errors.Is(err, errMissingType):
			return &meta.NoKindMatchError{GroupKind: r.key.gvk.GroupKind(),
				SearchedVersions: []string{r.key.gvk.Version}}
		case errors.Is(err, dynamicinformer.ErrStopped):
			return fmt.Errorf("the informer of %s was stopped: %w", r.key.gvk, err)
		default:
			return apierrors.NewTimeoutError(fmt.Sprintf("failed waiting for %s Informer to sync: %s", r.converter.Pointer,
				scoped.informer().Status()), 0)
		}
	}
	r.syncAwaited.Store(true)
	return nil
}

// isMissing reports whether reads fail because the server does not serve the type: with RejectMissingTypes,
// or if its objects may exist in spite of that.
func (r *resource) isMissing(current status.Status) bool {
	return current.Suspended && current.State == status.Pending || r.cache.options.RejectMissingTypes &&
		current.Reason.Absent()
}

// lostInformerError returns the error for an informer that a user of a shared factory has stopped.
func lostInformerError(gvk schema.GroupVersionKind) error {
	return fmt.Errorf("the informer of %s was stopped by another user of the factory, so its objects are out of date: %w", gvk, dynamicinformer.ErrStopped)
}
