package server

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/crdcache/crdcache/discovery"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/status"
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
	keeper    *live.Keeper
	turns     *turns
	// keeps returns the version in which a type is kept; false where it is not.
	keeps func(schema.GroupResource) (discovery.Resource, bool)
	// settled is set once each type was.
	settled atomic.Bool
}

// newCache returns the cache of a config. Its watches end with serving.
func newCache(serving context.Context, client *rest.Config, config *Config) (c *cache, err error) {
	c = &cache{storage: config.storage(), turns: newTurns()}
	if c.selection, err = newSelection(config); err != nil {
		return nil, err
	}
	if c.tracker, err = discovery.NewTracker(client, discovery.TrackerOptions{}); err != nil {
		return nil, err
	}
	// The defaults are for what the page and live follow besides, so that there is one informer for each
	// type.
	options := dynamicinformer.Options{
		Config: client, Types: c.tracker.Types(), MemoryBudget: config.MemoryBudget.Value(),
		Defaults: dynamicinformer.ResourceOptions{Storage: c.storage},
	}
	if config.PersistenceDirectory != "" {
		c.kept = disk.New(config.PersistenceDirectory, disk.Options{})
		options.Persistence = c.kept
	}
	if c.factory, err = dynamicinformer.New(options); err != nil {
		return nil, err
	}
	c.live, err = live.New(live.Options{
		Factory: c.factory, Types: c.tracker.Types(), Config: client, History: config.History,
		ConcealPlans: true,
		Handler: readapi.HandlerOptions{
			WriteTimeout: config.Watches.WriteTimeout.Duration, Ending: serving.Done(), Turns: c.turns,
		},
	})
	if err != nil {
		return nil, err
	}
	return c, c.follow()
}

// follow makes what keeps the types of the selection.
func (c *cache) follow() error {
	selected, err := discovery.NewSelection(c.selection.names...)
	if err != nil {
		return err
	}
	c.keeper, err = live.NewKeeper(live.KeeperOptions{
		Server: c.live, Tracker: c.tracker, Selection: selected, View: c.view, Exclude: c.selection.excludes,
		Kept:    func(r discovery.Resource) { klog.InfoS("Keeping a type", "type", r.String()) },
		Dropped: func(r discovery.Resource) { klog.InfoS("No longer keeping a type", "type", r.String()) },
		Refused: func(name string, why error) {
			klog.InfoS("A type cannot be kept", "name", name, "reason", why.Error())
		},
	})
	c.keeps = func(gr schema.GroupResource) (discovery.Resource, bool) {
		k, ok := c.keeper.Type(gr)
		return k.Resource, ok
	}
	return err
}

// run follows the cluster until ctx ends, and then ends everything.
func (c *cache) run(ctx context.Context) error {
	tracked := make(chan struct{})
	tracking, stop := context.WithCancel(context.WithoutCancel(ctx))
	go func() { defer close(tracked); _ = c.tracker.Run(tracking) }() // ended by stop
	err := c.factory.Start(tracking)
	if err == nil {
		c.keeper.Run(ctx)
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

// view says how a type is kept.
func (c *cache) view(r discovery.Resource) (dynamicinformer.ResourceOptions, []*indexers.Index) {
	return dynamicinformer.ResourceOptions{Storage: c.storage},
		c.selection.indexes.IndexesOf(r.GVR, r.GVK.Kind)
}

// condition is how a name or a type of the config is doing.
type condition struct {
	name, text string
	good       bool
}

// conditions tells of all types that are kept, and of what could not be.
func (c *cache) conditions() []condition {
	var out []condition
	for _, k := range c.keeper.Types() {
		current := k.Informer.Status()
		text, good := current.String(), current.State == status.Synced && !current.Stale
		if good && !c.live.Serves(k.GVR.GroupResource()) {
			text, good = errNotServed.Error(), false
		}
		if kept := k.Informer.Persistence(); kept.Err != nil {
			text, good = fmt.Sprintf("%s; not kept for the next start: %v", text, kept.Err), false
		}
		out = append(out, condition{k.Resource.String(), text, good})
	}
	problems := c.keeper.Problems()
	for _, name := range slices.Sorted(maps.Keys(problems)) {
		out = append(out, condition{name, problems[name].Error(), false})
	}
	return out
}

// errNotServed is why a type is passed on to the API server although it has been read.
var errNotServed = errors.New("it is not known how it is served: that takes CustomResourceDefinitions, which have to be readable")

// ready returns why not every type has been settled yet: read, or known not to be readable. Once that was so
// it stays so: what fails later fails for other replicas, too, and what has been read can still be served.
func (c *cache) ready() error {
	switch {
	case c.settled.Load():
		return nil
	case !c.keeper.Reconciled():
		return errors.New("it is not known yet which types there are")
	}
	for _, k := range c.keeper.Types() {
		current := k.Informer.Status()
		switch {
		case !current.Settled():
			return fmt.Errorf("%s: %s", k.Resource, current)
		case current.State == status.Synced && !c.live.Serves(k.GVR.GroupResource()):
			return fmt.Errorf("%s: %w", k.Resource, errNotServed)
		}
	}
	c.settled.Store(true)
	return nil
}
