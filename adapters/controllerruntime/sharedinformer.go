package controllerruntime

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/sharding"
	"k8s.io/apimachinery/pkg/util/wait"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/crdcache/crdcache/adapters/controllerruntime/internal/convert"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
)

// GetStore returns the objects of the informer: see GetIndexer.
func (i *Informer) GetStore() toolscache.Store { return i.GetIndexer() }

// GetIndexer returns the objects of the informer with its indexes, which have the names and the values of
// controller-runtime's cache. It always reads the current content, also after SetTypeSettings. Reduced
// objects are marked and never read from the API server: see IsReduced. Its methods fail for an object that
// does not fit the form; List and ListKeys cannot fail, and List leaves it out and reports it.
func (i *Informer) GetIndexer() toolscache.Indexer { return &indexer{resource: i.resource} }

// GetController returns i.
func (i *Informer) GetController() toolscache.Controller { return i }

// Run does nothing, because the cache runs its informers.
func (i *Informer) Run(stop <-chan struct{}) { i.RunWithContext(wait.ContextForChannel(stop)) }

// RunWithContext does nothing, because the cache runs its informers.
func (i *Informer) RunWithContext(ctx context.Context) {
	klog.FromContext(ctx).Info("The cache runs its informers, ignoring a call of Run", "type", i.resource.key.gvk)
}

// LastSyncResourceVersion returns the resource version up to which the store is complete: with several
// namespaces the least one, or "" if a namespace has none.
func (i *Informer) LastSyncResourceVersion() (least string) {
	for k, informer := range i.resource.current.Load().informers() {
		version := informer.LastSyncResourceVersion()
		if version == "" {
			return ""
		}
		if k == 0 || naming.IsOlder(version, least) {
			least = version
		}
	}
	return least
}

// Status returns the status of the informer: one for each namespace of cache.Options, or for all of them.
func (i *Informer) Status() []status.Status {
	return naming.Map(i.resource.current.Load().informers(), (*dynamicinformer.Informer).Status)
}

// Status returns the status of the informer of the type and form of an object; nil if there is no informer.
// It neither creates an informer nor waits for one.
func (c *Cache) Status(object client.Object) ([]status.Status, error) {
	gvk, err := apiutil.GVKForObject(object, c.scheme)
	if r, _ := c.lookup(resourceKey{gvk, convert.FormOf(object)}); r != nil {
		return r.informer.Status(), nil
	}
	return nil, err
}

// SetWatchErrorHandler is SetWatchErrorHandlerWithContext with a handler that takes no context.
func (i *Informer) SetWatchErrorHandler(handler toolscache.WatchErrorHandler) error {
	return i.SetWatchErrorHandlerWithContext(
		func(_ context.Context, r *toolscache.Reflector, err error) { handler(r, err) })
}

// SetWatchErrorHandlerWithContext sets the handler for failed lists and watches of this informer in place of
// cache.Options.DefaultWatchErrorHandler. It fails after the start of the cache.
func (i *Informer) SetWatchErrorHandlerWithContext(handler toolscache.WatchErrorHandlerWithContext) error {
	if i.resource.cache.hasStarted() {
		return errInformerStarted
	}
	i.watchErrorHandler.Store(&handler)
	return i.resource.cache.reportFailures()
}

// SetTransform sets the transform of this informer in place of the one of cache.Options. It fails after the
// start of the cache; SetTypeSettings does not.
func (i *Informer) SetTransform(transform toolscache.TransformFunc) error {
	r, c := i.resource, i.resource.cache
	if c.hasStarted() {
		return errInformerStarted
	}
	c.settingsSemaphore <- struct{}{}
	defer func() { <-c.settingsSemaphore }()
	defer r.discardIncoming()
	changed := *r.current.Load().settings
	namespaces := changed.namespaces
	changed.allNamespaces.Transform, changed.namespaces = transform, map[string]cache.Config{}
	for namespace, config := range namespaces {
		config.Transform = transform
		changed.namespaces[namespace] = config
	}
	if err := c.prepareIncoming(r, &changed); err != nil {
		return err
	}
	return c.commitIncoming(context.Background(), []*resource{r}, func() {})
}

// SetShardSelector fails: all informers of the cache have the shard of Options.Sharding.
func (i *Informer) SetShardSelector(sharding.Selector) error {
	return errors.New("set a shard selector: an informer of the cache has none; set Options.Sharding")
}

// errInformerStarted has the same text as the error of client-go.
var errInformerStarted = errors.New("informer has already started")
