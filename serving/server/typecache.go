package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	_ "github.com/crdcache/crdcache/adapters/cel" // registers CEL for index configs; k8s.io/apiserver imports cel-go anyway
	"github.com/crdcache/crdcache/adapters/storage/disk"
	"github.com/crdcache/crdcache/adapters/storage/s2"
	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/indexers/bind"
	"github.com/crdcache/crdcache/indexers/reload"
	"github.com/crdcache/crdcache/serving/readapi"
	"github.com/crdcache/crdcache/serving/readapi/live"
)

// compression is shared by all types, because informers are shared only if their options are equal.
var compression = s2.New()

// typeCache caches the objects of the selected types while the cluster serves the types.
type typeCache struct {
	logger             klog.Logger
	selection          atomic.Pointer[selection]
	indexConfigWatcher *reload.Watcher // of the index configs; nil without files
	tracker            *discovery.Tracker
	factory            *dynamicinformer.Factory
	live               *live.Server
	persistence        *disk.Store // nil without persistence
	binding            *bind.Binding
	scheduler          *fairScheduler
	// stopTimeout bounds the wait for informers and their handlers when the cache stops.
	stopTimeout time.Duration
	// cachedVersion returns the version in which a type is cached, or false.
	cachedVersion func(schema.GroupResource) (discovery.Resource, bool)
	// initialSyncDone is set when every type has synced or is known to be unreadable.
	initialSyncDone atomic.Bool
}

// newTypeCache returns the cache of a config. servingCtx has the logger, and ends the watches of clients.
func newTypeCache(servingCtx context.Context, client *rest.Config, config *Config) (c *typeCache, err error) {
	c = &typeCache{logger: klog.FromContext(servingCtx), scheduler: newFairScheduler(),
		stopTimeout: 10 * time.Second}
	if err := c.loadSelection(config); err != nil {
		return nil, err
	}
	settings, err := c.selection.Load().settings()
	if err != nil {
		return nil, err
	}
	if c.tracker, err = discovery.NewTracker(client, discovery.TrackerOptions{}); err != nil {
		return nil, err
	}
	// The defaults apply to informers of the page and of package live, so that each type has only one
	// informer.
	options := dynamicinformer.Options{
		Config: client, Types: c.tracker.Types(), MemoryBudget: config.MemoryBudget.Value(),
		Defaults: dynamicinformer.ResourceOptions{Storage: config.storage()},
	}
	if config.PersistenceDirectory != "" {
		c.persistence = disk.New(config.PersistenceDirectory, disk.Options{})
		options.Persistence = c.persistence
	}
	if c.factory, err = dynamicinformer.New(options); err != nil {
		return nil, err
	}
	c.live, err = live.New(live.Options{
		Factory: c.factory, Types: c.tracker.Types(), Config: client, History: config.History,
		ConcealPlans: true,
		Handler: readapi.HandlerOptions{
			WriteTimeout: config.Watches.WriteTimeout.Duration, StopWatches: servingCtx.Done(),
			Scheduler: c.scheduler,
		},
	})
	if err != nil {
		return nil, err
	}
	return c, c.initBinding(settings)
}

func (c *typeCache) initBinding(settings bind.Settings) (err error) {
	c.binding, err = c.live.Bind(settings, bind.Options{
		Compression: compression,
		OnChange: func(old, changed *bind.Target) {
			switch {
			case changed == nil:
				c.logger.Info("Stopped caching a type", "type", old.Type.String())
			case old == nil || old.GVR != changed.GVR:
				c.logger.Info("Caching a type", "type", changed.Type.String())
			}
		},
		OnProblem: func(name string, reason error) {
			c.logger.Info("Cannot cache a type, or an index of it", "name", name, "reason", reason.Error())
		},
	})
	c.cachedVersion = func(gr schema.GroupResource) (discovery.Resource, bool) {
		if t := c.binding.Type(gr); t != nil {
			return t.Type, true
		}
		return discovery.Resource{}, false
	}
	return err
}

// target returns a cached type, or nil if it is not cached in that version.
func (c *typeCache) target(gvr schema.GroupVersionResource) *bind.Target {
	if t := c.binding.Type(gvr.GroupResource()); t != nil && t.GVR == gvr {
		return t
	}
	return nil
}

// run caches the selected types until ctx ends. It returns an error if a handler does not return within
// stopTimeout.
func (c *typeCache) run(ctx context.Context) error {
	trackerEnded := make(chan struct{})
	trackerCtx, stopTracker := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(trackerEnded); _ = c.tracker.Run(trackerCtx) }() // ended by stop
	err := c.factory.Start(trackerCtx)
	if err == nil {
		var followers sync.WaitGroup
		followers.Go(func() { c.runConfigWatcher(ctx) })
		c.live.Run(ctx, c.binding, c.tracker)
		followers.Wait()
	}
	c.live.Close()
	shutdownCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.stopTimeout)
	defer cancel()
	err = errors.Join(err, c.factory.Shutdown(shutdownCtx))
	if c.persistence != nil {
		err = errors.Join(err, c.persistence.Close(shutdownCtx))
	}
	stopTracker()
	<-trackerEnded
	return err
}

type statusCondition struct {
	name, text string
	isMet      bool
}

// conditions returns the status of the configs, of all cached types, and of all names that could not be
// resolved.
func (c *typeCache) conditions() []statusCondition {
	var conditions []statusCondition
	if c.indexConfigWatcher != nil {
		files := c.indexConfigWatcher.Status()
		conditions = append(conditions, statusCondition{"index configs", files.String(), files.Err == nil})
	}
	for _, cached := range c.binding.Targets() {
		current := cached.Informer.Status()
		text, ok := current.String(), current.State == status.Synced && !current.Stale
		if ok && !c.live.Serves(cached.GVR.GroupResource()) {
			text, ok = errCRDUnreadable.Error(), false
		}
		if persistence := cached.Informer.Persistence(); persistence.Err != nil {
			text, ok = fmt.Sprintf("%s; cannot persist its objects: %v", text, persistence.Err), false
		}
		sizes, withinLimits := c.selection.Load().describeIndexes(cached)
		conditions = append(conditions, statusCondition{cached.Type.String(), text + sizes, ok &&
			withinLimits})
	}
	problems := c.binding.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		conditions = append(conditions, statusCondition{name, problems[name].Error(), false})
	}
	return conditions
}

// errCRDUnreadable is the error of a cached type while its requests are still forwarded to the API server.
var errCRDUnreadable = errors.New("cannot serve the type: its CustomResourceDefinition cannot be read: allow crdcached to get, list and watch customresourcedefinitions.apiextensions.k8s.io")

// readyError returns an error until every type has synced or is known to be unreadable. Then it always
// returns nil, because later failures affect all replicas alike, and cached objects can still be served.
func (c *typeCache) readyError() error {
	switch {
	case c.initialSyncDone.Load():
		return nil
	case !c.binding.Reconciled():
		return errors.New("the types of the cluster have not been discovered yet")
	}
	for _, cached := range c.binding.Targets() {
		current := cached.Informer.Status()
		switch {
		case !current.Settled():
			return fmt.Errorf("%s: %s", cached.Type, current)
		case current.State == status.Synced && !c.live.Serves(cached.GVR.GroupResource()):
			return fmt.Errorf("%s: %w", cached.Type, errCRDUnreadable)
		}
	}
	c.initialSyncDone.Store(true)
	return nil
}
