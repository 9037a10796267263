package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/requests"
)

// mergedRanges returns the union of ranges.
func mergedRanges(ranges []sharding.Range) requests.Ranges {
	inside := make([]requests.HashRange, len(ranges))
	for i, r := range ranges {
		inside[i] = requests.HashRange(r)
	}
	return requests.NewRanges(inside...)
}

// rangesOf converts ranges to their public type.
func rangesOf(inside []requests.HashRange) []sharding.Range {
	ranges := make([]sharding.Range, len(inside))
	for i, r := range inside {
		ranges[i] = sharding.Range(r)
	}
	return ranges
}

// shardStatusOf converts a status to its public type.
func shardStatusOf(s *requests.ShardStatus) *status.Shard {
	if s == nil {
		return nil
	}
	return &status.Shard{Key: s.Key, Wanted: rangesOf(s.Wanted), Listed: rangesOf(s.Listed), Filter: s.Filter}
}

var (
	// ErrNotSharded is returned for what only an informer with ResourceOptions.Shard can do.
	ErrNotSharded = errors.New("the informer has no shard")
	// ErrNotInShard is returned for ranges that are not wanted.
	ErrNotInShard = errors.New("the ranges are not in the shard")
)

// Shard is a part of the objects of each type that follows it: those whose hashes are in some ranges. The
// ranges may change at any time, as replicas of a program share the work anew, and all informers follow. All
// methods are safe for concurrent use.
//
// Each list and watch asks the server for the shard alone (shardSelector, which API servers with the feature
// ShardedListAndWatch know), and what comes from elsewhere is left out as it arrives. Which of the two it was
// is in Status.Shard, as far as answers tell. Lists ask for the most recent state, so that what another
// replica has written before it gave a range up is seen.
//
// When ranges are added, the informer lists their objects and delivers them as additions outside the
// initial list. When ranges are removed, their objects leave caches and indexes. That is no deletion:
// only handlers that implement Departed are called, once, and get no further events for these objects.
//
// Options.Persistence does not store a sharded informer. A Transform must keep UID and namespace, or it
// fails. The order of events from ranges that were added at different times is undefined.
type Shard struct {
	key sharding.Key
	// setting is held while informers are brought in line, so that all see the same history of ranges.
	setting sync.Mutex
	ranges  atomic.Pointer[requests.Ranges]

	mu struct {
		sync.Mutex
		// informers are those that run.
		informers map[*Informer]struct{}
	}
}

// unsharded stands for everything where a Shard would be taken from defaults.
var unsharded = &Shard{}

// Unsharded is for ResourceOptions.Shard of types that are followed as a whole although Options.Defaults has
// a shard. Nothing can be set in it.
func Unsharded() *Shard { return unsharded }

// NewShard returns a shard of some ranges, which may overlap. Without any it is empty: informers have synced,
// and send no requests. Options refuse one with an unknown key.
func NewShard(key sharding.Key, ranges ...sharding.Range) *Shard {
	s := &Shard{key: key}
	merged := mergedRanges(ranges)
	s.ranges.Store(&merged)
	s.mu.informers = map[*Informer]struct{}{}
	return s
}

// Key returns what is hashed.
func (s *Shard) Key() sharding.Key { return s.key }

// Ranges returns the ranges: in order, without overlaps, and with gaps between them.
func (s *Shard) Ranges() []sharding.Range { return rangesOf(s.wanted()) }

// wanted returns the ranges as they are now.
func (s *Shard) wanted() requests.Ranges {
	if ranges := s.ranges.Load(); ranges != nil {
		return *ranges
	}
	return requests.NewRanges(requests.HashRange{})
}

// Contains reports whether an object is in the shard as it is set now, whether or not a cache has it.
func (s *Shard) Contains(obj metav1.Object) bool { return s.ContainsHash(s.key.Hash(obj)) }

// ContainsHash is Contains for what has this hash.
func (s *Shard) ContainsHash(hash uint64) bool { return s.wanted().Contains(hash) }

// SetRanges has the shard consist of other ranges. When it returns, no informer shows an object that is in
// none of them, or will, and for each handler that is told, the departures have been queued (Informer.Flush
// waits for handlers). Additions take their time: WaitForShard waits for them. It waits for no server and
// calls nothing of the user; it takes time in proportion to what is cached.
//
// Contains knows the new ranges before caches do. Calls take effect one after the other and are never merged:
// objects of a range that leaves and comes back depart, and are added.
func (s *Shard) SetRanges(ranges ...sharding.Range) {
	if s.mu.informers == nil { // it is Unsharded
		return
	}
	s.setting.Lock()
	defer s.setting.Unlock()
	next := mergedRanges(ranges)
	s.ranges.Store(&next)
	for _, i := range s.running() {
		i.core.Depart(i.shard.Narrow, func(item any) bool { return next.Has(s.key, item) })
	}
	for _, i := range s.running() {
		i.shard.Changed()
	}
}

// running returns the informers that run.
func (s *Shard) running() []*Informer {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.mu.informers))
}

// followed returns the shard, or nil where everything is followed.
func (s *Shard) followed() *Shard {
	if s == unsharded {
		return nil
	}
	return s
}

// validate returns what is wrong with the shard.
func (s *Shard) validate() error {
	if s.followed() == nil || s.mu.informers != nil &&
		(s.key == sharding.ByUID || s.key == sharding.ByNamespace) {
		return nil
	}
	return fmt.Errorf("the shard is by %q; NewShard makes one by %q or %q", s.key, sharding.ByUID,
		sharding.ByNamespace)
}

// newFollowed returns what an informer follows of the shard; nil where that is everything.
func (s *Shard) newFollowed(i *Informer) *follow.Shard {
	if s.followed() == nil {
		return nil
	}
	var f *follow.Shard
	tell := func() { i.health.Sharded(f.State) }
	f = follow.NewShard(s.key, s.wanted, tell)
	tell()
	return f
}

// join has SetRanges bring an informer in line until leave is called.
func (s *Shard) join(i *Informer) (leave func()) {
	if s.followed() == nil {
		return func() {}
	}
	s.mu.Lock()
	s.mu.informers[i] = struct{}{}
	s.mu.Unlock()
	i.shard.Changed() // other ranges may have been set since it was made
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.mu.informers, i)
	}
}

// Shard returns the shard that the informer follows; nil: it follows everything.
func (i *Informer) Shard() *Shard { return i.options.Shard.followed() }

// WaitForShard waits until the cache holds all objects of some ranges, or, without any, of all that are
// wanted. It returns ErrNotInShard as soon as one of the ranges is not wanted (any more), ErrStopped when the
// informer has stopped, ErrNotSharded where everything is followed, and the cause of ctx.
func (i *Informer) WaitForShard(ctx context.Context, ranges ...sharding.Range) error {
	shard := i.Shard()
	if shard == nil {
		return ErrNotSharded
	}
	asked := mergedRanges(ranges)
	for {
		current, changed := i.health.Snapshot()
		// of which the status of an informer that has not begun does not hear
		awaited, wanted := asked, shard.wanted()
		if len(ranges) == 0 {
			awaited = wanted
		}
		switch {
		case current.State == status.Stopped:
			return ErrStopped
		case len(awaited.Minus(wanted)) > 0:
			return fmt.Errorf("%w: %v", ErrNotInShard, rangesOf(awaited.Minus(wanted)))
		case len(awaited.Minus(current.Shard.Listed)) == 0:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
