package follow

import (
	"sync"
	"sync/atomic"

	"github.com/crdcache/crdcache/dynamicinformer/sharding"
	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/informer"
	"github.com/crdcache/crdcache/internal/queue"
	"github.com/crdcache/crdcache/internal/requests"
)

// Selection is the changing selection of one partition.
type Selection interface {
	informer.Selection
	// Narrow selects no objects that are no longer desired.
	Narrow()
	// IsEmpty reports whether it selects nothing. It then stays empty.
	IsEmpty() bool
}

// Selections has the selections of the running partitions. It is safe for concurrent use.
type Selections struct {
	// create returns the selection of a new partition; nil if no objects are desired.
	create func() Selection
	// notify is called, without locks, when the result of Each may have changed.
	notify func()
	// changed receives an element when the desired objects have changed.
	changed chan struct{}

	mu struct {
		sync.Mutex
		// selections are those of the running partitions by namespace; nil for one without desired objects.
		// The map is nil while the type is not watched.
		selections map[string]Selection
	}
}

// NewSelections returns a value without partitions.
func NewSelections(create func() Selection, notify func()) *Selections {
	return &Selections{create: create, notify: notify, changed: make(chan struct{}, 1)}
}

// Each calls do for the selection of each running partition: nil if no objects are desired. It returns false
// while the type is not watched.
func (s *Selections) Each(do func(Selection)) (watched bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, selection := range s.mu.selections {
		do(selection)
	}
	return s.mu.selections != nil
}

// Shard tracks the partitions that read the desired ranges of hashes.
type Shard struct {
	*Selections
	key            sharding.Key
	desired        func() requests.Ranges
	droppedObjects atomic.Int64
}

// NewShard returns a Shard, without partitions, of the ranges that desired returns. notify is called,
// without locks, when the result of State changes.
func NewShard(key sharding.Key, desired func() requests.Ranges, notify func()) *Shard {
	s := &Shard{key: key, desired: desired}
	s.Selections = NewSelections(func() Selection {
		if len(desired()) == 0 {
			return nil
		}
		return requests.NewSelection(key, desired, notify, &s.droppedObjects)
	}, notify)
	return s
}

// Narrow restricts the running partitions to the desired objects.
func (s *Selections) Narrow() {
	s.Each(func(selection Selection) {
		if selection != nil {
			selection.Narrow()
		}
	})
}

// Changed must be called after Narrow, when the desired objects have changed.
func (s *Selections) Changed() {
	queue.Wake(s.changed)
	s.notify()
}

// changes returns a channel that has an element when the partitions may change; nil for nil Selections.
func (s *Selections) changes() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.changed
}

// Dropped returns the number of received objects outside of the shard.
func (s *Shard) Dropped() int64 { return s.droppedObjects.Load() }

// State returns the state of the shard.
func (s *Shard) State() status.Shard {
	desired, any := s.desired(), false
	state := status.Shard{Key: s.key, Desired: desired, Filter: sharding.FilterServer}
	listed := desired
	watched := s.Each(func(selection Selection) {
		any = true
		ranges, ok := selection.(*requests.Selection)
		if !ok {
			listed, state.Filter = requests.Ranges{}, sharding.FilterUnknown
			return
		}
		listed = listed.And(ranges.Listed())
		state.Filter = requests.CombineFilters(state.Filter, ranges.Filter())
	})
	if !any {
		state.Filter = sharding.FilterUnknown
	}
	if watched {
		state.Listed = listed
	}
	return state
}

// stop records that the type is not watched. It does nothing for nil Selections.
func (s *Selections) stop() {
	if s == nil {
		return
	}
	s.mu.Lock()
	s.mu.selections = nil
	s.mu.Unlock()
	s.notify()
}

// selectionsFor returns the selections of the partitions to run. It keeps existing ones that are not empty.
func (s *Selections) selectionsFor(namespaces []string) map[string]Selection {
	s.mu.Lock()
	defer s.notify()
	defer s.mu.Unlock()
	next, running := map[string]Selection{}, map[string]Selection{}
	for _, namespace := range namespaces {
		selection := s.mu.selections[namespace]
		if selection == nil || selection.IsEmpty() {
			selection = s.create()
		}
		if next[namespace] = selection; selection != nil {
			running[namespace] = selection
		}
	}
	s.mu.selections = next
	return running
}
