package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/readapi"
	"github.com/crdcache/crdcache/readapi/live"
	"github.com/crdcache/crdcache/storage/disk"
	"github.com/crdcache/crdcache/storage/s2"
)

// compression is one for all types, so that equal views share an informer.
var compression = s2.New(s2.Options{})

// cache keeps the types of a selection, which come and go with the cluster.
type cache struct {
	selection *selection
	storage   dynamicinformer.Storage
	tracker   *discovery.Tracker
	factory   *dynamicinformer.Factory
	live      *live.Server
	kept      *disk.Store // nil without persistence
	changed   chan struct{}
	part      string // of the objects that is kept; empty: all

	mu struct {
		sync.Mutex
		types    map[schema.GroupResource]*keptType
		problems map[string]error
		// reconciled is set once it was known which types there are, and settled once each of them was.
		reconciled, settled bool
	}
}

// keptType is a type that is kept.
type keptType struct {
	resource discovery.Resource
	handle   *dynamicinformer.Handle
	indexes  []*indexers.Index
}

func newCache(client *rest.Config, config *Config) (c *cache, err error) {
	c = &cache{storage: config.storage(), changed: make(chan struct{}, 1)}
	c.mu.types = map[schema.GroupResource]*keptType{}
	if c.selection, err = newSelection(config); err != nil {
		return nil, err
	}
	if c.tracker, err = discovery.NewTracker(client, discovery.TrackerOptions{}); err != nil {
		return nil, err
	}
	sharding, err := config.Sharding.live()
	if err != nil {
		return nil, err
	}
	// The defaults are for what the page and live follow besides, so that there is one informer for each type.
	options := dynamicinformer.Options{
		Config: client, Types: c.tracker.Types(), MemoryBudget: config.MemoryBudget.Value(), Defaults: dynamicinformer.ResourceOptions{Storage: c.storage},
	}
	if config.PersistenceDirectory != "" {
		c.kept = disk.New(config.PersistenceDirectory, disk.Options{})
		options.Persistence = c.kept
	}
	if sharding != nil {
		c.part = fmt.Sprintf("%d of %d, by %s", sharding.Own+1, len(sharding.Parts), sharding.Shard.Key())
		options.Defaults.Shard = sharding.Shard
	}
	if c.factory, err = dynamicinformer.New(options); err != nil {
		return nil, err
	}
	c.live, err = live.New(live.Options{
		Factory: c.factory, Types: c.tracker.Types(), Config: client, History: config.History,
		Handler: readapi.HandlerOptions{WriteTimeout: config.Watches.WriteTimeout.Duration}, ConcealPlans: true,
		Sharding: sharding,
	})
	return c, err
}

// run follows the cluster until ctx ends, and then ends everything.
func (c *cache) run(ctx context.Context) error {
	tracked := make(chan struct{})
	tracking, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(tracked); _ = c.tracker.Run(tracking) }() // ended by stop
	err := c.factory.Start(tracking)
	if err == nil {
		subscription := c.tracker.Subscribe(func(discovery.Event) { c.wake() })
		err = c.follow(ctx)
		subscription.Stop()
	}
	c.live.Close()
	err = errors.Join(err, c.factory.Shutdown(context.WithoutCancel(ctx)))
	if c.kept != nil {
		err = errors.Join(err, c.kept.Close())
	}
	stop()
	<-tracked
	return err
}

// wake asks for another look at the types.
func (c *cache) wake() {
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// follow keeps what the selection means until ctx ends.
func (c *cache) follow(ctx context.Context) error {
	if err := c.tracker.WaitForSync(ctx); err != nil {
		return nil // the end came first
	}
	for {
		c.reconcile(klog.FromContext(ctx))
		select {
		case <-c.changed:
		case <-ctx.Done():
			return nil
		}
	}
}

// reconcile keeps what is meant among the types that there are now, and nothing else.
func (c *cache) reconcile(logger klog.Logger) {
	wanted, problems := c.selection.wanted(c.tracker.Snapshot().Catalog())
	c.mu.Lock()
	defer c.mu.Unlock()
	for gr, k := range c.mu.types {
		if r, ok := wanted[gr]; !ok || r.GVR != k.resource.GVR {
			logger.Info("No longer keeping a type", "type", k.resource.String())
			if !ok {
				c.live.Drop(gr)
			}
			k.handle.Release()
			delete(c.mu.types, gr)
		}
	}
	for gr, r := range wanted {
		if c.mu.types[gr] != nil {
			continue
		}
		k, err := c.acquire(r)
		if err != nil {
			c.live.Drop(gr)
			problems[r.String()] = err
			continue
		}
		logger.Info("Keeping a type", "type", r.String())
		c.mu.types[gr] = k
	}
	for name, err := range problems {
		if before := c.mu.problems[name]; before == nil || before.Error() != err.Error() {
			logger.Info("A type cannot be kept", "name", name, "reason", err.Error())
		}
	}
	c.mu.problems, c.mu.reconciled = problems, true
}

// acquire begins to keep a type.
func (c *cache) acquire(r discovery.Resource) (*keptType, error) {
	k := &keptType{resource: r, indexes: c.selection.indexes.IndexesOf(r.GVR, r.GVK.Kind)}
	var err error
	k.handle, err = c.factory.Acquire(r.GVR, dynamicinformer.ResourceOptions{Storage: c.storage, Indexes: indexers.CompileIndexes(k.indexes...)})
	if err != nil {
		return nil, err
	}
	if err := c.live.Keep(k.handle.Informer(), k.indexes...); err != nil {
		k.handle.Release()
		return nil, err
	}
	return k, nil
}

// keeps returns the version in which a type is kept; false where it is not.
func (c *cache) keeps(gr schema.GroupResource) (discovery.Resource, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if k := c.mu.types[gr]; k != nil {
		return k.resource, true
	}
	return discovery.Resource{}, false
}

// list returns what is kept, by group and resource.
func (c *cache) list() []*keptType {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.SortedFunc(maps.Values(c.mu.types), func(a, b *keptType) int {
		x, y := a.resource.GVR, b.resource.GVR
		return cmp.Or(cmp.Compare(x.Group, y.Group), cmp.Compare(x.Resource, y.Resource))
	})
}

// condition is how a name or a type of the config is doing.
type condition struct {
	name, text string
	good       bool
}

// conditions tells of all types that are kept, and of what could not be.
func (c *cache) conditions() []condition {
	var out []condition
	for _, k := range c.list() {
		status := k.handle.Informer().Status()
		text, good := status.String(), status.State == dynamicinformer.StateSynced && !status.Stale
		if good && !c.live.Serves(k.resource.GVR.GroupResource()) {
			text, good = errNotServed.Error(), false
		}
		if kept := k.handle.Informer().Persistence(); kept.Err != nil {
			text, good = fmt.Sprintf("%s; not kept for the next start: %v", text, kept.Err), false
		}
		out = append(out, condition{k.resource.String(), text, good})
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(c.mu.problems)) {
		out = append(out, condition{name, c.mu.problems[name].Error(), false})
	}
	return out
}

// errNotServed is why a type is passed on to the API server although it has been read.
var errNotServed = errors.New("it is not known how it is served: that takes CustomResourceDefinitions, which have to be readable")

// ready returns why not every type has been settled yet: read, or known not to be readable. Once that was so it stays so: what
// fails later fails for other replicas, too, and what has been read can still be served.
func (c *cache) ready() error {
	types := c.list()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.mu.settled:
		return nil
	case !c.mu.reconciled:
		return errors.New("it is not known yet which types there are")
	}
	for _, k := range types {
		status := k.handle.Informer().Status()
		switch {
		case !status.Settled():
			return fmt.Errorf("%s: %s", k.resource, status)
		case status.State == dynamicinformer.StateSynced && !c.live.Serves(k.resource.GVR.GroupResource()):
			return fmt.Errorf("%s: %w", k.resource, errNotServed)
		}
	}
	c.mu.settled = true
	return nil
}
