package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"

	"github.com/crdcache/crdcache/dynamicinformer"
)

// Cache is a cache.Cache whose informers are those of a dynamicinformer.Factory. Make it with New. It is safe
// for concurrent use.
type Cache struct {
	scheme   *runtime.Scheme
	mapper   meta.RESTMapper
	settings settings
	options  Options
	// failOnMissing says that reading does not start informers.
	failOnMissing bool
	watchErrors   toolscache.WatchErrorHandlerWithContext

	factory *dynamicinformer.Factory
	// suffix tells the indexes of caches apart that share a factory.
	suffix string
	// types is nil where the cache does not provide the source of types.
	types *typeSource
	// started is closed by Start.
	started chan struct{}
	// life ends with Close, by close.
	life  context.Context
	close context.CancelFunc

	mu struct {
		sync.RWMutex
		resources map[resourceKey]*resource
		// making are the resources that somebody makes at the moment; each is closed when that is over.
		making map[resourceKey]chan struct{}
		state  cacheState
	}
}

var _ cache.Cache = (*Cache)(nil)

// NewCache is a cache.NewCacheFunc: ctrl.Options{NewCache: controllerruntime.NewCache} is all that a manager
// needs. All of options counts as in cache.New. With options.NewInformer, whose informers bring their own
// stores, it is cache.New.
func NewCache(config *rest.Config, options cache.Options) (cache.Cache, error) {
	return NewCacheFunc(Options{})(config, options)
}

// NewCacheFunc returns NewCache with options of this package. Where those have anything set, it refuses
// cache.Options.NewInformer, which would make them void.
func NewCacheFunc(ours Options) cache.NewCacheFunc {
	return func(config *rest.Config, options cache.Options) (cache.Cache, error) {
		if options.NewInformer != nil && !ours.isSet() {
			return cache.New(config, options)
		}
		c, err := New(config, options, ours)
		if err != nil {
			return nil, err // not a nil *Cache in an interface
		}
		return c, nil
	}
}

// New returns a Cache, or an error that says what is wrong with the options. It asks the server, through the
// RESTMapper, only about the types of options.ByObject. The client-side rate limit of config counts if
// config.RateLimiter is set; QPS and Burst, which cache.New applies to each type by itself, do not.
func New(config *rest.Config, options cache.Options, ours Options) (*Cache, error) {
	if err := ours.validate(); err != nil {
		return nil, fmt.Errorf("controllerruntime: %w", err)
	}
	if options.NewInformer != nil {
		return nil, errors.New("controllerruntime: cache.Options.NewInformer takes the place of the informers of this package: use cache.New, or leave it out")
	}
	config, options, err := withDefaults(config, options)
	if err != nil {
		return nil, err
	}
	settled, err := settle(options)
	if err != nil {
		return nil, err
	}
	c := &Cache{
		scheme: options.Scheme, mapper: options.Mapper, settings: settled, options: ours,
		failOnMissing: options.ReaderFailOnMissingInformer, watchErrors: options.DefaultWatchErrorHandler,
		factory: ours.Factory, started: make(chan struct{}),
	}
	c.life, c.close = context.WithCancel(context.Background())
	c.mu.resources, c.mu.making = map[resourceKey]*resource{}, map[resourceKey]chan struct{}{}
	if c.factory != nil {
		c.suffix = fmt.Sprintf(" (cache %d)", sharing.Add(1))
	} else {
		if err := c.makeFactory(config, options); err != nil {
			return nil, fmt.Errorf("controllerruntime: %w", err)
		}
	}
	if ours.Sharding != nil {
		if err := ours.Sharding.attach(c); err != nil {
			return nil, fmt.Errorf("controllerruntime: %w", err)
		}
	}
	return c, nil
}

// sharing counts the caches of factories that others have made.
var sharing atomic.Int64

// makeFactory makes a factory of the cache's own.
func (c *Cache) makeFactory(config *rest.Config, options cache.Options) error {
	if config.RateLimiter == nil {
		config.QPS = -1
	}
	client, err := dynamicinformer.NewClient(config, options.HTTPClient)
	if err != nil {
		return err
	}
	types := c.options.Types
	if types == nil {
		if c.types, err = newTypeSource(config, options.HTTPClient, client); err != nil {
			return err
		}
		types = c.types
	}
	c.factory, err = dynamicinformer.New(dynamicinformer.Options{
		Client: client, Types: types, Linger: -1,
		Defaults: dynamicinformer.ResourceOptions{Storage: c.options.defaultStorage()},
	})
	return err
}

// Factory returns the factory that the informers are from: for its status, its statistics, its subscriptions,
// and for handles to types besides. It is the cache's to start and, unless it was in Options, to shut down.
func (c *Cache) Factory() *dynamicinformer.Factory { return c.factory }

// NeedLeaderElection says that the cache runs without leader election, for manager.LeaderElectionRunnable.
func (c *Cache) NeedLeaderElection() bool { return false }
