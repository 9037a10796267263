package follow

import (
	"maps"
	"slices"
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
	// changed receives an element when the set of partitions may have to change.
	changed        chan struct{}
	droppedObjects atomic.Int64

	mu struct {
		sync.Mutex
		// partitions are the running partitions by selection.
		partitions map[*requests.Selection]*shardPartition
		// ending has the selections of replaced partitions that may still run.
		ending []*requests.Selection
		// namespaces are the watched namespaces. It is nil while the type is not watched.
		namespaces []string
	}
}

type shardPartition struct {
	namespace string
	listed    bool
	// ordered states that its resource versions are comparable, so that it can be joined with others.
	ordered  bool
	replaces []*requests.Selection
}

// NewShard returns a Shard, without partitions, of the ranges that desired returns. notify is called,
// without locks, when the result of State changes.
func NewShard(key sharding.Key, desired func() requests.Ranges, notify func()) *Shard {
	s := &Shard{key: key, desired: desired, notify: notify, changed: make(chan struct{}, 1)}
	s.mu.partitions = map[*requests.Selection]*shardPartition{}
	return s
}

// Narrow restricts the running partitions to the desired ranges.
func (s *Shard) Narrow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	desired := s.desired()
	for selection := range s.mu.partitions {
		selection.Narrow(desired)
	}
	for _, selection := range s.mu.ending {
		selection.Narrow(desired)
	}
}

// Changed must be called after Narrow, when the desired ranges have changed.
func (s *Shard) Changed() {
	signal(s.changed)
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
	missing := requests.Ranges{}
	covered := map[string]requests.Ranges{}
	for selection, p := range s.mu.partitions {
		if !p.listed {
			missing = missing.Or(selection.Ranges())
		}
		covered[p.namespace] = covered[p.namespace].Or(selection.Ranges())
		state.Filter = requests.CombineFilters(state.Filter, selection.Filter())
	}
	if len(s.mu.partitions) == 0 {
		state.Filter = sharding.FilterUnknown
	}
	for _, namespace := range s.mu.namespaces {
		missing = missing.Or(desired.Minus(covered[namespace]))
	}
	if s.mu.namespaces != nil {
		state.Listed = desired.Minus(missing)
	}
	return state
}

// recordListed records that a partition has been listed. ordered states that it can be joined with others.
func (s *Shard) recordListed(selection *requests.Selection, ordered bool) {
	s.mu.Lock()
	p, ok := s.mu.partitions[selection]
	stateChanged := ok && !p.listed
	if ok {
		p.listed, p.ordered = true, ordered
	}
	s.mu.Unlock()
	if stateChanged {
		signal(s.changed)
		s.notify()
	}
}

func (s *Shard) removePartitions() {
	s.mu.Lock()
	clear(s.mu.partitions)
	s.mu.namespaces, s.mu.ending = nil, nil
	s.mu.Unlock()
	s.notify()
}

// followNothing records that no object is selected, so that the shard is complete.
func (s *Shard) followNothing() {
	s.selections(nil)
	s.notify()
}

// selections returns the selections of the partitions by namespace, each with the selections that it
// replaces. It keeps existing selections that are not empty, adds one for the missing ranges of each
// namespace, and joins selections that have been listed. The caller must have applied the previous result.
func (s *Shard) selections(namespaces []string) map[string]map[*requests.Selection][]*requests.Selection {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.namespaces, s.mu.ending = append([]string{}, namespaces...), nil
	maps.DeleteFunc(s.mu.partitions, func(selection *requests.Selection, p *shardPartition) bool {
		return len(selection.Ranges()) == 0 || !slices.Contains(namespaces, p.namespace)
	})
	s.joinLocked()
	desired := s.desired()
	byNamespace := map[string]map[*requests.Selection][]*requests.Selection{}
	for _, namespace := range namespaces {
		byNamespace[namespace] = map[*requests.Selection][]*requests.Selection{}
	}
	followed := map[string]requests.Ranges{}
	for selection, p := range s.mu.partitions {
		byNamespace[p.namespace][selection] = p.replaces
		followed[p.namespace] = followed[p.namespace].Or(selection.Ranges())
	}
	for namespace, selections := range byNamespace {
		if missing := desired.Minus(followed[namespace]); len(missing) > 0 {
			selection := requests.NewSelection(s.key, missing, s.notify, &s.droppedObjects)
			s.mu.partitions[selection] = &shardPartition{namespace: namespace}
			selections[selection] = nil
		}
	}
	return byNamespace
}

// joinLocked replaces the listed partitions of each namespace with one, so that the number of watches does
// not grow with each added range.
func (s *Shard) joinLocked() {
	joining := map[string][]*requests.Selection{}
	for selection, p := range s.mu.partitions {
		if p.listed && p.ordered {
			joining[p.namespace] = append(joining[p.namespace], selection)
		}
	}
	for namespace, selections := range joining {
		if len(selections) < 2 {
			continue
		}
		for _, selection := range selections {
			delete(s.mu.partitions, selection)
		}
		s.mu.ending = append(s.mu.ending, selections...)
		s.mu.partitions[selections[0].Join(selections[1:]...)] = &shardPartition{namespace: namespace,
			listed: true, ordered: true, replaces: selections}
	}
}
