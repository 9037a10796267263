package follow

import (
	"sync"
	"sync/atomic"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/requests"
)

// Shard tracks the partitions that read the desired ranges of hashes, which can change at any time. It is
// safe for concurrent use.
type Shard struct {
	key     sharding.Key
	desired func() requests.Ranges
	// notify is called, without locks, when the result of State changes.
	notify func()
	// changed receives an element when the desired ranges have changed.
	changed        chan struct{}
	droppedObjects atomic.Int64

	mu struct {
		sync.Mutex
		// selections are the selections of the running partitions by namespace; nil for a namespace in which
		// no ranges are desired. The map is nil while the type is not watched.
		selections map[string]*requests.Selection
	}
}

// NewShard returns a Shard, without partitions, of the ranges that desired returns. notify is called,
// without locks, when the result of State changes.
func NewShard(key sharding.Key, desired func() requests.Ranges, notify func()) *Shard {
	return &Shard{key: key, desired: desired, notify: notify, changed: make(chan struct{}, 1)}
}

// Narrow restricts the running partitions to the desired ranges.
func (s *Shard) Narrow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, selection := range s.mu.selections {
		if selection != nil {
			selection.Narrow()
		}
	}
}

// Changed must be called after Narrow, when the desired ranges have changed.
func (s *Shard) Changed() {
	wake(s.changed)
	s.notify()
}

// changes returns a channel that has an element when the set of partitions may have to change. It returns nil
// for a nil Shard.
func (s *Shard) changes() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// Dropped returns the number of received objects outside of the shard.
func (s *Shard) Dropped() int64 { return s.droppedObjects.Load() }

// State returns the state of the shard.
func (s *Shard) State() status.Shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	desired := s.desired()
	state := status.Shard{Key: s.key, Desired: desired, Filter: sharding.FilterServer}
	listed := desired
	for _, selection := range s.mu.selections {
		if selection == nil {
			listed, state.Filter = requests.Ranges{}, sharding.FilterUnknown
			continue
		}
		listed = listed.And(selection.Listed())
		state.Filter = requests.CombineFilters(state.Filter, selection.Filter())
	}
	if len(s.mu.selections) == 0 {
		state.Filter = sharding.FilterUnknown
	}
	if s.mu.selections != nil {
		state.Listed = listed
	}
	return state
}

// stop records that the type is not watched. It does nothing for a nil Shard.
func (s *Shard) stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.mu.selections = nil
	s.mu.Unlock()
	s.notify()
}

// selectionsFor returns the selections of the partitions to run, by namespace. It keeps the existing
// selections that are not empty.
func (s *Shard) selectionsFor(namespaces []string) map[string]*requests.Selection {
	s.mu.Lock()
	defer s.notify()
	defer s.mu.Unlock()
	next, running := map[string]*requests.Selection{}, map[string]*requests.Selection{}
	for _, namespace := range namespaces {
		selection := s.mu.selections[namespace]
		if selection == nil || len(selection.Ranges()) == 0 {
			selection = nil
			if len(s.desired()) > 0 {
				selection = requests.NewSelection(s.key, s.desired, s.notify, &s.droppedObjects)
			}
		}
		if next[namespace] = selection; selection != nil {
			running[namespace] = selection
		}
	}
	s.mu.selections = next
	return running
}
