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

	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/requests"
)

// ShardKey names what is hashed of an object to tell in which shard it is.
type ShardKey = requests.ShardKey

const (
	// ShardByUID spreads objects evenly, each by itself.
	ShardByUID = requests.ShardByUID
	// ShardByNamespace keeps objects of one namespace together, of all types; so it does with all that are in none. Names that
	// differ in their last characters alone have hashes that are close to each other, so that few large ranges may be filled
	// unevenly.
	ShardByNamespace = requests.ShardByNamespace
)

// ShardHash returns where a UID or the name of a namespace is in the hash space: its FNV-1a hash of 64 bits, as API servers
// compute it (k8s.io/apimachinery/pkg/sharding).
func ShardHash(value string) uint64 { return requests.ShardHash(value) }

// HashRange is a range of the hash space, from Start up to, but not including, End. An End of zero is that of the hash space,
// so that the zero value is all of it. One that ends where it starts, or before, is empty.
type HashRange struct{ Start, End uint64 }

// Contains reports whether a hash is in the range.
func (r HashRange) Contains(hash uint64) bool { return requests.HashRange(r).Contains(hash) }

// String is the range in hexadecimal digits: "0x0000000000000000-0x8000000000000000".
func (r HashRange) String() string { return requests.HashRange(r).String() }

// SplitHashSpace cuts the hash space into n ranges of the same size, as far as that is possible, in order. It returns none
// for n below 1.
func SplitHashSpace(n int) []HashRange { return rangesOf(requests.SplitHashSpace(n)) }

// mergedRanges returns what is in any of some ranges.
func mergedRanges(ranges []HashRange) requests.Ranges {
	inside := make([]requests.HashRange, len(ranges))
	for i, r := range ranges {
		inside[i] = requests.HashRange(r)
	}
	return requests.NewRanges(inside...)
}

// rangesOf returns ranges as users see them.
func rangesOf(inside []requests.HashRange) []HashRange {
	ranges := make([]HashRange, len(inside))
	for i, r := range inside {
		ranges[i] = HashRange(r)
	}
	return ranges
}

// ShardFilter says who leaves out what is not in a shard, as far as the server's answers show: see ShardStatus.
type ShardFilter = requests.ShardFilter

const (
	// ShardFilterUnknown: nothing has shown it. API servers (as of 1.37) say that they filter in the lists of built-in types
	// alone: not in those of custom resources, of metadata, nor in watch-lists.
	ShardFilterUnknown = requests.ShardFilterUnknown
	// ShardFilterServer: the server has said that it has applied the selector.
	ShardFilterServer = requests.ShardFilterServer
	// ShardFilterClient: what was not asked for came all the same, and was left out here.
	ShardFilterClient = requests.ShardFilterClient
)

// ShardStatus is what is known of the shard that an informer follows.
type ShardStatus struct {
	// Key is what is hashed.
	Key ShardKey
	// Wanted are the ranges as they are set, Listed those of them that the cache holds in full. Both are in order, without
	// overlaps, and with gaps between them.
	Wanted, Listed []HashRange
	// Filter is who leaves out what is not in the shard, as far as the answers of the server show it. It is left out here in
	// any case.
	Filter ShardFilter
}

// shardStatusOf returns a status as users see it.
func shardStatusOf(s *requests.ShardStatus) *ShardStatus {
	if s == nil {
		return nil
	}
	return &ShardStatus{Key: s.Key, Wanted: rangesOf(s.Wanted), Listed: rangesOf(s.Listed), Filter: s.Filter}
}

var (
	// ErrNotSharded is returned for what only an informer with ResourceOptions.Shard can do.
	ErrNotSharded = errors.New("the informer has no shard")
	// ErrNotInShard is returned for ranges that are not wanted.
	ErrNotInShard = errors.New("the ranges are not in the shard")
)

// Shard is a part of the objects of each type that follows it: those whose hashes are in some ranges. The ranges may change at
// any time, as replicas of a program share the work anew, and all informers follow. All methods are safe for concurrent use.
//
// Each list and watch asks the server for the shard alone (shardSelector, which API servers with the feature
// ShardedListAndWatch know), and what comes from elsewhere is left out as it arrives. Which of the two it was is in
// Status.Shard, as far as answers tell. Lists ask for the most recent state, so that what another replica has written before it
// gave a range up is seen.
//
// When ranges are added, their objects are listed, and told as additions that are not of the initial list. What was there is
// not listed again. Objects of ranges that are taken away leave caches and indexes. That is no deletion: handlers that are
// Departed are told, others are not. Of what becomes of an object that has left, nobody is told.
//
// A sharded informer is not kept by Options.Persistence. A Transform must leave UID and namespace alone: it fails otherwise.
// Nothing is promised about the order of what ranges show that were added at different times.
type Shard struct {
	key ShardKey
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

// Unsharded is for ResourceOptions.Shard of types that are followed as a whole although Options.Defaults has a shard. Nothing
// can be set in it.
func Unsharded() *Shard { return unsharded }

// NewShard returns a shard of some ranges, which may overlap. Without any it is empty: informers have synced, and send no
// requests. Options refuse one with an unknown key.
func NewShard(key ShardKey, ranges ...HashRange) *Shard {
	s := &Shard{key: key}
	merged := mergedRanges(ranges)
	s.ranges.Store(&merged)
	s.mu.informers = map[*Informer]struct{}{}
	return s
}

// Key returns what is hashed.
func (s *Shard) Key() ShardKey { return s.key }

// Ranges returns the ranges: in order, without overlaps, and with gaps between them.
func (s *Shard) Ranges() []HashRange { return rangesOf(s.wanted()) }

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

// SetRanges has the shard consist of other ranges. When it returns, no informer shows an object that is in none of them, or will,
// and for each handler that is told, the departures have been queued (Informer.Flush waits for handlers). Additions take
// their time: WaitForShard waits for them. It waits for no server and calls nothing of the user; it takes time in proportion to
// what is cached.
//
// Contains knows the new ranges before caches do. Calls take effect one after the other and are never merged: objects of a range
// that leaves and comes back depart, and are added.
func (s *Shard) SetRanges(ranges ...HashRange) {
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
	if s.followed() == nil || s.mu.informers != nil && (s.key == ShardByUID || s.key == ShardByNamespace) {
		return nil
	}
	return fmt.Errorf("the shard is by %q; NewShard makes one by %q or %q", s.key, ShardByUID, ShardByNamespace)
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

// WaitForShard waits until the cache holds all objects of some ranges, or, without any, of all that are wanted. It returns
// ErrNotInShard as soon as one of the ranges is not wanted (any more), ErrStopped when the informer has stopped, ErrNotSharded
// where everything is followed, and the cause of ctx.
func (i *Informer) WaitForShard(ctx context.Context, ranges ...HashRange) error {
	shard := i.Shard()
	if shard == nil {
		return ErrNotSharded
	}
	asked := mergedRanges(ranges)
	for {
		status, changed := i.health.Snapshot()
		awaited, wanted := asked, shard.wanted() // of which the status of an informer that has not begun does not hear
		if len(ranges) == 0 {
			awaited = wanted
		}
		switch {
		case status.State == StateStopped:
			return ErrStopped
		case len(awaited.Minus(wanted)) > 0:
			return fmt.Errorf("%w: %v", ErrNotInShard, rangesOf(awaited.Minus(wanted)))
		case len(awaited.Minus(status.Shard.Listed)) == 0:
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
