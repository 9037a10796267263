package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/flowcontrol"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// Cache is a cache.Cache with the informers of a dynamicinformer.Factory. Create it with New. It is
// safe for concurrent use.
type Cache struct {
	foreignCache //lint:ignore U1000 nil; it has the methods that newer releases add

	scheme   *runtime.Scheme
	mapper   meta.RESTMapper
	settings settings // mu guards byKind
	options  Options
	// failOnMissing is true if reads do not start informers.
	failOnMissing bool

	factory *dynamicinformer.Factory
	// indexSuffix distinguishes the indexes of caches that share a factory.
	indexSuffix string
	// types is nil if the factory has another source of types.
	types *typeSource
	// reportFailures adds the listener of the factory that calls watch error handlers, once.
	reportFailures func() error
	// started is closed by Start.
	started chan struct{}
	// ctx is cancelled by Close.
	ctx   context.Context
	close context.CancelFunc

	mu struct {
		sync.RWMutex
		resources map[resourceKey]*resource
		// kindLocks has the locks of lockKind. A locked one contains an element.
		kindLocks map[schema.GroupVersionKind]chan struct{}
		state     cacheState
	}
	// settingsSemaphore contains an element while SetTypeSettings runs.
	settingsSemaphore chan struct{}
}

// NewCache is a cache.NewCacheFunc: pass it as ctrl.Options.NewCache. All options work as in cache.New.
// With options.NewInformer it calls cache.New, because such informers have their own stores.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	return NewCacheFunc(Options{})(config, options)
}

// NewCacheFunc returns a NewCache with options of this package. If any of them is set, it rejects
// cache.Options.NewInformer, which would bypass them.
func NewCacheFunc(cacheOptions Options) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		if options.NewInformer != nil && !cacheOptions.isSet() {
			return cache.New(config, options)
		}
		c, err := New(config, options, cacheOptions)
		if err != nil {
			return nil, err // not a nil *Cache in an interface
		}
		return c, nil
	}
}

// New returns a Cache, or an error if the options are invalid. It queries the server, through the RESTMapper,
// only about the types of options.ByObject. Only config.RateLimiter limits requests on the client side; QPS
// and Burst limit only reads of reduced objects, whereas cache.New applies them to each type.
func New(config *rest.Config, options cache.Options, cacheOptions Options) (*Cache, error) {
	if err := cacheOptions.validate(); err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	if options.NewInformer != nil {
		return nil, errors.New("controllerruntime: cache.Options.NewInformer replaces the informers of this package: use cache.New, or leave it unset")
	}
	config, options, err := withDefaults(config, options)
	if err != nil {
		return nil, err
	}
	settled, err := resolveSettings(options)
	if err != nil {
		return nil, err
	}
	c := &Cache{
		scheme: options.Scheme, mapper: options.Mapper, settings: settled, options: cacheOptions,
		failOnMissing: options.ReaderFailOnMissingInformer, factory: cacheOptions.Factory,
		started: make(chan struct{}), settingsSemaphore: make(chan struct{}, 1),
	}
	c.ctx, c.close = context.WithCancel(context.Background())
	c.reportFailures = sync.OnceValue(func() error {
		handle, err := c.factory.AddListener(status.Listener{RequestFailed: c.reportFailure})
		if err == nil {
			context.AfterFunc(c.ctx, handle.Close)
		}
		return err
	})
	c.mu.resources, c.mu.kindLocks = map[resourceKey]*resource{}, map[schema.GroupVersionKind]chan struct{}{}
	if c.factory != nil {
		c.indexSuffix = fmt.Sprintf(" (cache %d)", sharedCaches.Add(1))
	} else if err := c.makeFactory(config, options); err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	if c.types != nil {
		_, err = c.factory.AddListener(status.Listener{ // it ends with the factory
			StateChanged: c.types.stateChanged,
			Relisted: func(g status.Incarnation, _ status.RelistReason) {
				if !isBuiltin(g.GVR) { // its CRD may have been created again, without the former objects
					c.types.need()
				}
			}})
	}
	if err == nil && options.DefaultWatchErrorHandler != nil {
		err = c.reportFailures()
	}
	if err == nil && cacheOptions.Sharding != nil {
		err = cacheOptions.Sharding.setCache(c)
	}
	if err != nil {
		c.close() // removes the listener from a shared factory
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	return c, nil
}

// reportFailure calls the watch error handlers of the informers that share a failed request, with a reflector
// that has only a name and a type.
func (c *Cache) reportFailure(f status.RequestFailure) {
	var reflector *toolscache.Reflector
	isDefaultCalled := false
	for _, r := range c.ownersOf(f.GVR, f.Options) {
		handler := c.settings.options.DefaultWatchErrorHandler
		if own := r.informer.watchErrorHandler.Load(); own != nil {
			handler = *own
		} else if isDefaultCalled || handler == nil {
			continue
		} else {
			isDefaultCalled = true
		}
		if reflector == nil {
			reflector = toolscache.NewReflectorWithOptions(&toolscache.ListWatch{}, nil, nil,
				toolscache.ReflectorOptions{Name: "crdcache", TypeDescription: f.GVR.String()})
		}
		handler(c.ctx, reflector, f.Err)
	}
}

// ownersOf returns the resources that use an informer of the factory. It waits for resources that are being
// created, because the creation of their informers may fail.
func (c *Cache) ownersOf(gvr schema.GroupVersionResource, options string) (owners []*resource) {
	c.mu.RLock()
	locks := slices.Collect(maps.Values(c.mu.kindLocks))
	c.mu.RUnlock()
	for _, lock := range locks {
		lock <- struct{}{}
		<-lock
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, r := range c.mu.resources {
		if slices.ContainsFunc(r.allInformers(), func(v *scopedInformer) bool {
			s := v.informer().Status()
			return s.GVR == gvr && s.Options == options
		}) {
			owners = append(owners, r)
		}
	}
	return owners
}

// sharedCaches counts the caches that use the factory of a caller.
var sharedCaches atomic.Int64

func (c *Cache) makeFactory(config *rest.Config, options cache.Options) error {
	var liveReads flowcontrol.RateLimiter
	if config.RateLimiter == nil {
		if config.QPS > 0 {
			liveReads = flowcontrol.NewTokenBucketRateLimiter(config.QPS, max(config.Burst, 1))
		}
		config.QPS = -1
	}
	httpClient, group := options.HTTPClient, c.options.Group
	if group != nil {
		var err error
		if config, err = dynamicinformer.Reconnectable(config, httpClient); err != nil {
			return err
		}
		if httpClient, err = rest.HTTPClientFor(config); err != nil {
			return err
		}
	}
	client, err := dynamicinformer.NewClient(config, httpClient)
	if err != nil {
		return err
	}
	if u, _, err := rest.DefaultServerUrlFor(config); err == nil && c.options.Name == "" {
		c.options.Name = u.Host
	}
	types := c.options.Types
	if types == nil {
		if c.types, err = newTypeSource(config, httpClient, client); err != nil {
			return err
		}
		types = c.types
	}
	settings := dynamicinformer.Options{
		Client: client, Types: types, Linger: -1, LiveReadLimiter: liveReads,
		MemoryBudget: c.options.MemoryBudget, Persistence: c.options.Persistence,
		Defaults: dynamicinformer.ResourceOptions{Storage: dynamicinformer.Storage{CompressLists: true,
			Mode: dynamicinformer.StorageAdaptive, Compression: c.options.compression()}},
	}
	if group == nil {
		c.factory, err = dynamicinformer.New(settings)
		return err
	}
	settings.Client, settings.Config = nil, config
	for name := range numberedNames(c.options.Name) {
		if c.factory, err = group.Add(name, settings); !errors.Is(err, dynamicinformer.ErrClusterExists) {
			return err
		}
	}
	return err
}

// Factory returns the factory of the cache's informers: for its status, statistics, subscriptions and
// further handles to types. The cache starts it and, unless it was set in Options, shuts it down.
func (c *Cache) Factory() *dynamicinformer.Factory { return c.factory }

// NeedLeaderElection returns false: the cache runs without leader election. It implements
// manager.LeaderElectionRunnable.
func (c *Cache) NeedLeaderElection() bool { return false }
