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

	"github.com/crdcache/crdcache/adapters/shard"
	"github.com/crdcache/crdcache/dynamicinformer"
	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
)

// ShardingOptions configure a Sharding. Assigner and Key are required.
type ShardingOptions struct {
	// Assigner assigns the shards: a shard.Member, or the result of shard.Static. The Sharding runs it.
	Assigner shard.Assigner
	// Key is the property whose hash selects an object's shard: see docs/sharding.md.
	Key sharding.Key
	// Objects are examples of the sharded types. Each replica caches all objects of other types. Default
	// for ByNamespace: all namespaced types. ByUID has no default: name the reconciled types, and none that
	// reconcilers read in addition.
	Objects []client.Object
}

// Sharding lets each replica of a manager cache and reconcile some of the objects. Set it as
// Options.Sharding of one cache, add it to the manager with Add, and wrap reconcilers with Reconciler. It
// is safe for concurrent use.
type Sharding struct {
	options ShardingOptions
	shards  *dynamicinformer.Shard
	// ranges of all shards, in order.
	ranges        []sharding.Range
	setRangesLock sync.Mutex

	mu struct {
		sync.Mutex
		cache      *Cache
		kinds      []schema.GroupVersionKind // of ShardingOptions.Objects
		heldShards map[int]*heldShard
		// reconcilers need to know deletions.
		reconcilers map[schema.GroupVersionKind][]*recentDeletions
	}
}

var _ manager.LeaderElectionRunnable = (*Sharding)(nil)

// NewSharding returns a Sharding, or an error if the options are invalid.
func NewSharding(options ShardingOptions) (*Sharding, error) {
	switch {
	case options.Assigner == nil:
		return nil, errors.New("controllerruntime: ShardingOptions.Assigner is missing: shard.New and shard.Static return one")
	case options.Key != sharding.ByUID && options.Key != sharding.ByNamespace:
		return nil, fmt.Errorf("controllerruntime: ShardingOptions.Key is %q; it has to be %q or %q", options.Key, sharding.ByUID, sharding.ByNamespace)
	case options.Key == sharding.ByUID && len(options.Objects) == 0:
		return nil, errors.New("controllerruntime: ShardingOptions.Objects is missing: by UID, name the reconciled types only; most replicas would lack other types that reconcilers read")
	}
	s := &Sharding{
		options: options, shards: dynamicinformer.NewShard(options.Key),
		ranges: sharding.Split(options.Assigner.Shards()),
	}
	s.mu.heldShards, s.mu.reconcilers = map[int]*heldShard{}, map[schema.GroupVersionKind][]*recentDeletions{}
	return s, nil
}

func (s *Sharding) setCache(c *Cache) error {
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

// shardFor returns the shard that a resource is restricted to, or nil.
func (s *Sharding) shardFor(r *resource) *dynamicinformer.Shard {
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

// NeedLeaderElection returns true: if the manager uses leader election, only the leader owns shards.
// Usually it is off, and all replicas own shards.
func (s *Sharding) NeedLeaderElection() bool { return true }

// Start owns shards until ctx ends. It returns when all have been drained and released.
func (s *Sharding) Start(ctx context.Context) error {
	s.mu.Lock()
	attached := s.mu.cache != nil
	s.mu.Unlock()
	if !attached {
		return errors.New("controllerruntime: the Sharding has no cache: set Options.Sharding of the cache of the manager")
	}
	return s.options.Assigner.Run(ctx, shard.Handler{
		Acquired: func(ownerships []*shard.Ownership) { s.addShards(ctx, ownerships) },
		Drain:    s.drainShard,
	})
}

func (s *Sharding) shardOf(value string) int {
	hash := sharding.Hash(value)
	return sort.Search(len(s.ranges), func(k int) bool { return s.ranges[k].Start > hash }) - 1
}

// addShards adds shards to the caches. Reconcilers wait until all sharded informers have their objects.
func (s *Sharding) addShards(ctx context.Context, ownerships []*shard.Ownership) {
	heldShards := make([]*heldShard, len(ownerships))
	s.mu.Lock()
	for k, t := range ownerships {
		h := &heldShard{ownership: t, ready: make(chan struct{})}
		h.ctx, h.cancel = context.WithCancel(context.WithValue(t.Context(), ownershipKey{}, t))
		heldShards[k], s.mu.heldShards[t.Shard()] = h, h
	}
	s.mu.Unlock()
	s.setRanges()
	for _, h := range heldShards { // informers created from now on start with these ranges
		go s.awaitCaches(h) // returns when the ownership ends
	}
	klog.FromContext(ctx).V(2).Info("Shards were acquired", "shards", len(ownerships))
}

// setRanges restricts the caches to the shards that are held.
func (s *Sharding) setRanges() {
	s.setRangesLock.Lock()
	defer s.setRangesLock.Unlock()
	s.mu.Lock()
	var ranges []sharding.Range
	for k := range s.mu.heldShards {
		ranges = append(ranges, s.ranges[k])
	}
	s.mu.Unlock()
	s.shards.SetRanges(ranges...)
}

// drainShard stops the work in a shard. It rejects new work immediately, cancels running work when ctx ends,
// and removes the objects from the caches when no work is running.
func (s *Sharding) drainShard(ctx context.Context, ownership *shard.Ownership) {
	s.mu.Lock()
	h := s.mu.heldShards[ownership.Shard()]
	s.mu.Unlock()
	h.drain(ctx)
	s.mu.Lock()
	delete(s.mu.heldShards, ownership.Shard())
	s.mu.Unlock()
	s.setRanges()
}

// awaitCaches waits until all sharded informers have the objects of a shard, including informers created
// during the wait.
func (s *Sharding) awaitCaches(held *heldShard) {
	ctx, ranges := held.ownership.Context(), s.ranges[held.ownership.Shard()]
	synced := map[*dynamicinformer.Informer]bool{}
	s.mu.Lock()
	factory := s.mu.cache.factory
	s.mu.Unlock()
	for {
		// Also those of resources being created: they may have synced with fewer ranges.
		missing := slices.DeleteFunc(factory.Informers(),
			func(i *dynamicinformer.Informer) bool { return synced[i] || i.Shard() != s.shards })
		if len(missing) == 0 {
			close(held.ready)
			return
		}
		for _, informer := range missing {
			if err := awaitRange(ctx, informer, ranges); err != nil {
				return // the ownership has ended
			}
			synced[informer] = true
		}
	}
}

// awaitRange waits until an informer has the objects of a range. It returns nil also if the informer has
// stopped, or if the server does not have the type.
func awaitRange(ctx context.Context, informer *dynamicinformer.Informer, required sharding.Range) error {
	for {
		current, changed := informer.StatusChange()
		absent := current.State == status.Pending &&
			(current.Reason == status.ReasonNotInstalled || current.Reason == status.ReasonVersionNotServed)
		if absent || current.State == status.Stopped || current.Shard != nil &&
			containsRange(current.Shard.Listed, required) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// containsRange reports whether one of the ranges contains another. The ranges do not touch.
func containsRange(ranges []sharding.Range, required sharding.Range) bool {
	return slices.ContainsFunc(ranges, func(r sharding.Range) bool {
		// an End of zero is the end of the hash space
		return r.Start <= required.Start && required.End-1 <= r.End-1
	})
}
