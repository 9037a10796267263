package dynamicinformer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	shardselector "k8s.io/apimachinery/pkg/sharding"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/follow"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/requests"
)

var (
	// ErrNotSharded is returned by methods that require ResourceOptions.Shard.
	ErrNotSharded = errors.New("dynamicinformer: the informer has no shard")
	// ErrNotInShard is returned for ranges outside the shard's ranges.
	ErrNotInShard = errors.New("dynamicinformer: the ranges are not in the shard")
)

// Shard limits informers to the objects with hashes in some ranges. The ranges may change at any time, when
// replicas redistribute the work, and its informers adapt. All methods are safe for concurrent use.
//
// Each list and watch asks the server to filter (shardSelector, an API server feature named
// ShardedListAndWatch). If the server does not filter, the informer drops objects outside the shard.
// Status.Shard reports whether the server filters, as far as its answers show it. Lists request the
// most recent state, so that they include the writes of the replica that gave up a range.
//
// When ranges are added, the informer lists its objects again, and delivers the added ones as additions
// outside the initial list. When ranges are removed, their objects leave caches and indexes. Removal from the
// shard is not a deletion. Only handlers that implement sharding.LeftShardHandler are called, once per
// object, and get no further events for it.
//
// Options.Persistence does not store a sharded informer. A Transform must keep UID and namespace.
type Shard struct {
	key sharding.Key
	// setRangesLock serializes SetRanges, so that all informers see the same sequence of ranges.
	setRangesLock sync.Mutex
	ranges        atomic.Pointer[requests.Ranges]
	informers     runningInformers

	mu struct {
		sync.Mutex
		recorders []*removalRecorder
	}
}

// runningInformers is a set of informers. It is safe for concurrent use.
type runningInformers struct{ set sync.Map }

func (r *runningInformers) add(i *Informer) (remove func()) {
	r.set.Store(i, nil)
	return func() { r.set.Delete(i) }
}

func (r *runningInformers) all() (informers []*Informer) {
	r.set.Range(func(i, _ any) bool {
		informers = append(informers, i.(*Informer))
		return true
	})
	return informers
}

// unsharded overrides a shard of less specific options.
var unsharded = &Shard{}

// Unsharded is a value for ResourceOptions.Shard that overrides Options.Defaults. Its SetRanges does nothing.
func Unsharded() *Shard { return unsharded }

// NewShard returns a shard with the given ranges, which may overlap. Without ranges it is empty: its
// informers are synced and send no requests. An unknown key makes the options invalid.
func NewShard(key sharding.Key, ranges ...sharding.Range) *Shard {
	s := &Shard{key: key}
	merged := requests.NewRanges(ranges...)
	s.ranges.Store(&merged)
	return s
}

// Key returns the hashed field.
func (s *Shard) Key() sharding.Key { return s.key }

// Ranges returns the ranges, sorted, disjoint and merged.
func (s *Shard) Ranges() []sharding.Range { return s.currentRanges() }

func (s *Shard) currentRanges() requests.Ranges {
	if ranges := s.ranges.Load(); ranges != nil {
		return *ranges
	}
	return requests.NewRanges(sharding.Range{})
}

// Contains reports whether an object is in the current ranges. It does not look at caches.
func (s *Shard) Contains(obj metav1.Object) bool { return s.currentRanges().Contains(s.key.Hash(obj)) }

// SetRanges replaces the ranges. When it returns, no informer shows an object outside the new ranges, and
// OnLeftShard calls have been queued (Informer.Flush waits for handlers). Additions follow asynchronously:
// see WaitForShard. It sends no requests and calls no user code; its duration grows with the cache.
//
// Contains uses the new ranges before the caches do. Calls take effect in order and are never merged: if a
// range is removed and added again, its objects leave the shard and are added.
func (s *Shard) SetRanges(ranges ...sharding.Range) {
	if s == unsharded {
		return
	}
	s.setRangesLock.Lock()
	defer s.setRangesLock.Unlock()
	next := requests.NewRanges(ranges...)
	removed := s.currentRanges().Minus(next)
	s.mu.Lock()
	for _, r := range s.mu.recorders {
		r.ranges = r.ranges.Or(removed)
	}
	s.mu.Unlock()
	s.ranges.Store(&next)
	for _, i := range s.informers.all() {
		i.core.EvictOutOfShard(i.shard.Load().follow.Narrow,
			func(item any) bool { return next.Has(s.key, item) })
	}
	for _, i := range s.informers.all() {
		i.shard.Load().follow.Changed()
		if i.core.ListMissing() {
			i.retry.Send()
		}
	}
}

// removalRecorder records the ranges that SetRanges removes.
type removalRecorder struct {
	*Shard
	ranges requests.Ranges // guarded by Shard.mu
}

// recordRemovals starts a recorder, between two calls of SetRanges.
func (s *Shard) recordRemovals() *removalRecorder {
	s.setRangesLock.Lock()
	defer s.setRangesLock.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	r := &removalRecorder{Shard: s}
	s.mu.recorders = append(s.mu.recorders, r)
	return r
}

// stop ends the recorder. A nil recorder is valid.
func (r *removalRecorder) stop() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.recorders = slices.DeleteFunc(r.mu.recorders,
		func(other *removalRecorder) bool { return other == r })
}

func (r *removalRecorder) removed() requests.Ranges {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ranges
}

// orNil returns the shard, or nil for Unsharded.
func (s *Shard) orNil() *Shard {
	if s == unsharded {
		return nil
	}
	return s
}

func (s *Shard) validate() error {
	if s.orNil() == nil || s.key == sharding.ByUID || s.key == sharding.ByNamespace {
		return nil
	}
	return fmt.Errorf("Shard has key %q: use NewShard with key %q or %q", s.key, sharding.ByUID,
		sharding.ByNamespace)
}

// newFollowShard returns the shard for the informer's follower; nil without a shard.
func (s *Shard) newFollowShard(i *Informer) *follow.Shard {
	if s.orNil() == nil {
		i.health.UpdateShard(nil)
		return nil
	}
	var f *follow.Shard
	update := func() { i.health.UpdateShard(f.State) }
	f = follow.NewShard(s.key, s.currentRanges, update)
	update()
	return f
}

// register registers an informer for SetRanges until leave is called.
func (s *Shard) register(i *Informer) (leave func()) {
	if s.orNil() == nil {
		return func() {}
	}
	leave = s.informers.add(i)
	i.shard.Load().follow.Changed() // the ranges may have changed since the informer was made
	return leave
}

// Shard returns the shard of the informer; nil without one.
func (i *Informer) Shard() *Shard { return i.shard.Load().orNil() }

// informerShard is the shard of an informer, with the part of its follower; both are nil without a shard.
type informerShard struct {
	*Shard
	follow *follow.Shard
}

func (i *Informer) setShard(shard *Shard) {
	i.shard.Store(&informerShard{shard, shard.newFollowShard(i)})
}

// SetShardSelector limits the informer to the objects of the selector, like a Shard with the same ranges. It
// affects all users of the informer. It fails after the start, for a selector of an unknown field, and if the
// informer is persisted; set ResourceOptions.Shard then.
func (i *Informer) SetShardSelector(selector shardselector.Selector) error {
	shard, err := shardOf(selector)
	if err != nil {
		return fmt.Errorf("%s: set a shard selector: %w", formatGVR(i.gvr), err)
	}
	i.settings.Lock()
	defer i.settings.Unlock()
	switch {
	case i.runCalled.Load():
		return fmt.Errorf("%s: set a shard selector: %w", formatGVR(i.gvr), informer.ErrStarted)
	case i.options.Selectors != nil:
		return fmt.Errorf("%s: set a shard selector: the informer has Selectors", formatGVR(i.gvr))
	case i.persister.Status().Enabled:
		return fmt.Errorf("%s: set a shard selector: the informer is persisted; set ResourceOptions.Shard",
			formatGVR(i.gvr))
	}
	i.setShard(shard)
	i.core.SelectObjects(shard != unsharded)
	return nil
}

// shardOf returns a shard for a selector of apimachinery, which names the hashed fields as "object." and Key.
func shardOf(selector shardselector.Selector) (*Shard, error) {
	if selector == nil || selector.Empty() {
		return unsharded, nil
	}
	var key sharding.Key
	var ranges []sharding.Range
	for k, r := range selector.Requirements() {
		next := sharding.Key(strings.TrimPrefix(r.Key, "object."))
		if k > 0 && next != key {
			return nil, fmt.Errorf("%q hashes two fields; select ranges of one", selector)
		}
		start, err := parseHash(r.Start)
		end, endErr := parseHash(r.End)
		if err = errors.Join(err, endErr); err != nil {
			return nil, fmt.Errorf("%q: %w", selector, err)
		}
		key, ranges = next, append(ranges, sharding.Range{Start: start, End: end})
	}
	shard := NewShard(key, ranges...)
	return shard, shard.validate()
}

// parseHash parses a bound of a range; the end of the hash space is zero.
func parseHash(bound string) (uint64, error) {
	if bound == "0x10000000000000000" {
		return 0, nil
	}
	return strconv.ParseUint(bound, 0, 64)
}

// WaitForShard waits until the cache has all objects of the given ranges, or of all ranges of the shard if
// none are given. It returns ErrNotInShard as soon as a range is not in the shard, ErrStopped when the
// informer has stopped, ErrNotSharded without a shard, or the cause of ctx.
func (i *Informer) WaitForShard(ctx context.Context, ranges ...sharding.Range) error {
	shard := i.Shard()
	if shard == nil {
		return ErrNotSharded
	}
	requested := requests.NewRanges(ranges...)
	for {
		current, changed := i.health.Snapshot()
		// read from the shard: the status of an informer that has not started may be outdated
		awaited, desired := requested, shard.currentRanges()
		if len(ranges) == 0 {
			awaited = desired
		}
		switch {
		case current.State == status.Stopped:
			return ErrStopped
		case len(awaited.Minus(desired)) > 0:
			return fmt.Errorf("%w: %v", ErrNotInShard, awaited.Minus(desired))
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
