package controllerruntime

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/shard"
)

// ShardingOptions say what replicas share, and how. Assigner and Key have no defaults.
type ShardingOptions struct {
	// Assigner hands out the shards: a shard.Member, or what shard.Static returns. The Sharding runs it.
	Assigner shard.Assigner
	// Key is what is hashed to tell in which shard an object is. By namespace, a replica has all sharded
	// objects of its namespaces, whatever their type; by UID, objects spread more evenly, and those that
	// belong together are in different replicas.
	Key sharding.Key
	// Objects are of the types that are sharded; others are cached as a whole by each replica. Default by
	// namespace: all types that have namespaces. By UID there is none: name those that are reconciled, and no
	// others that reconcilers read.
	Objects []client.Object
}

// Sharding has each replica of a manager cache, and reconcile, a part of the objects. Give it to one cache
// with Options.Sharding, to the manager with its Add, and wrap reconcilers with Reconciler. All methods are
// safe for concurrent use.
type Sharding struct {
	options ShardingOptions
	shards  *dynamicinformer.Shard
	// ranges are those of all shards, in order.
	ranges []sharding.Range
	// setting is held while the ranges are changed.
	setting sync.Mutex

	mu struct {
		sync.Mutex
		cache *Cache
		kinds []schema.GroupVersionKind // of ShardingOptions.Objects
		holds map[int]*heldShard
		// reconcilers want to know what is deleted.
		reconcilers map[schema.GroupVersionKind][]*deletions
	}
}

var (
	_ manager.Runnable               = (*Sharding)(nil)
	_ manager.LeaderElectionRunnable = (*Sharding)(nil)
)

// NewSharding returns a Sharding, or what is wrong with the options.
func NewSharding(options ShardingOptions) (*Sharding, error) {
	switch {
	case options.Assigner == nil:
		return nil, errors.New("controllerruntime: ShardingOptions.Assigner is missing: shard.New and shard.Static return one")
	case options.Key != sharding.ByUID && options.Key != sharding.ByNamespace:
		return nil, fmt.Errorf("controllerruntime: ShardingOptions.Key is %q; it has to be %q or %q",
			options.Key, sharding.ByUID, sharding.ByNamespace)
	case options.Key == sharding.ByUID && len(options.Objects) == 0:
		return nil, errors.New("controllerruntime: ShardingOptions.Objects is missing: by UID, name the types that are reconciled; what else reconcilers read would be missing in most replicas")
	}
	s := &Sharding{
		options: options, shards: dynamicinformer.NewShard(options.Key),
		ranges: sharding.Split(options.Assigner.Shards()),
	}
	s.mu.holds, s.mu.reconcilers = map[int]*heldShard{}, map[schema.GroupVersionKind][]*deletions{}
	return s, nil
}

// attach gives the sharding its cache.
func (s *Sharding) attach(c *Cache) error {
	var kinds []schema.GroupVersionKind
	for _, object := range s.options.Objects {
		gvk, err := apiutil.GVKForObject(object, c.scheme)
		if err != nil {
			return fmt.Errorf("ShardingOptions.Objects: %w", err)
		}
		kinds = append(kinds, gvk)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mu.cache != nil {
		return errors.New("Options.Sharding: it belongs to another cache already")
	}
	s.mu.cache, s.mu.kinds = c, kinds
	return nil
}

// of returns what a resource follows; nil: everything.
func (s *Sharding) of(r *resource) *dynamicinformer.Shard {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.mu.kinds) == 0 && r.namespaced || slices.Contains(s.mu.kinds, r.key.gvk) {
		return s.shards
	}
	return nil
}

// NeedLeaderElection makes the replica that leads the only one that holds shards where the manager elects a
// leader. Without leader election, which is the usual thing, all replicas do.
func (s *Sharding) NeedLeaderElection() bool { return true }

// Start holds shards until ctx ends, and returns when all have been drained and released.
func (s *Sharding) Start(ctx context.Context) error {
	s.mu.Lock()
	attached := s.mu.cache != nil
	s.mu.Unlock()
	if !attached {
		return errors.New("controllerruntime: the Sharding has no cache: set Options.Sharding of the cache of the manager")
	}
	return s.options.Assigner.Run(ctx, shard.Handler{
		Acquired: func(tenures []*shard.Tenure) { s.acquired(ctx, tenures) },
		Drain:    s.drain,
	})
}

// shardOf returns the number of the shard of a UID or a namespace.
func (s *Sharding) shardOf(value string) int {
	hash := sharding.Hash(value)
	return sort.Search(len(s.ranges), func(k int) bool { return s.ranges[k].Start > hash }) - 1
}

// acquired has the caches follow more shards. Reconcilers wait until all that they may read is there.
func (s *Sharding) acquired(ctx context.Context, tenures []*shard.Tenure) {
	held := make([]*heldShard, len(tenures))
	s.mu.Lock()
	for k, t := range tenures {
		held[k] = newHeldShard(t)
		s.mu.holds[t.Shard()] = held[k]
	}
	s.mu.Unlock()
	s.setRanges()
	for _, h := range held { // informers that are made from now on begin with these ranges
		go s.awaitCaches(h) // ended with the tenure
	}
	klog.FromContext(ctx).V(2).Info("Shards were acquired", "shards", len(tenures))
}

// setRanges has the caches follow the shards that are held.
func (s *Sharding) setRanges() {
	s.setting.Lock()
	defer s.setting.Unlock()
	s.mu.Lock()
	var ranges []sharding.Range
	for k := range s.mu.holds {
		ranges = append(ranges, s.ranges[k])
	}
	s.mu.Unlock()
	s.shards.SetRanges(ranges...)
}

// drain ends the work in a shard: nothing new is begun at once, what is under way is cancelled when ctx ends,
// and the objects leave the caches when nothing is under way any more.
func (s *Sharding) drain(ctx context.Context, tenure *shard.Tenure) {
	s.mu.Lock()
	h := s.mu.holds[tenure.Shard()]
	s.mu.Unlock()
	idle := h.leave()
	select {
	case <-idle:
	case <-ctx.Done():
		h.cancel()
		<-idle
	}
	h.cancel()
	s.mu.Lock()
	delete(s.mu.holds, tenure.Shard())
	s.mu.Unlock()
	s.setRanges()
}

// awaitCaches waits until all sharded informers have the objects of a shard, those that are made meanwhile
// too.
func (s *Sharding) awaitCaches(h *heldShard) {
	ctx, ranges := h.tenure.Context(), s.ranges[h.tenure.Shard()]
	done := map[*dynamicinformer.Informer]bool{}
	for {
		missing := slices.DeleteFunc(s.informers(), func(i *dynamicinformer.Informer) bool { return done[i] })
		if len(missing) == 0 {
			h.ready()
			return
		}
		for _, informer := range missing {
			if err := awaitRange(ctx, informer, ranges); err != nil {
				return // the tenure is over
			}
			done[informer] = true
		}
	}
}

// informers returns the sharded informers of the cache, those included of what is being made: they may have
// synced with fewer ranges.
func (s *Sharding) informers() []*dynamicinformer.Informer {
	s.mu.Lock()
	c := s.mu.cache
	s.mu.Unlock()
	return slices.DeleteFunc(c.factory.Informers(),
		func(i *dynamicinformer.Informer) bool { return i.Shard() != s.shards })
}

// awaitRange waits until an informer has the objects of a range, has stopped, or follows a type that is not
// there: then it has none.
func awaitRange(ctx context.Context, informer *dynamicinformer.Informer, wanted sharding.Range) error {
	for {
		current, changed := informer.StatusChange()
		absent := current.State == status.Pending &&
			(current.Reason == status.ReasonNotInstalled || current.Reason == status.ReasonVersionNotServed)
		if absent || current.State == status.Stopped || current.Shard != nil &&
			covers(current.Shard.Listed, wanted) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// covers reports whether a range lies within one of some that do not touch.
func covers(ranges []sharding.Range, wanted sharding.Range) bool {
	return slices.ContainsFunc(ranges, func(r sharding.Range) bool {
		return r.Start <= wanted.Start && wanted.End-1 <= r.End-1 // an End of zero is that of the hash space
	})
}
