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

// Shard is the part of a hash space that is followed of a type, and may change at any time. It is safe for
// concurrent use.
type Shard struct {
	key    sharding.Key
	wanted func() requests.Ranges
	// told is called, with no lock held, when State returns something else.
	told func()
	// news has an element when other parts may have to be followed.
	news chan struct{}
	// dropped counts what came and was not in the shard.
	dropped atomic.Int64

	mu struct {
		sync.Mutex
		// parts are those that are followed, by their selections.
		parts map[*requests.Selection]*shardPart
		// ending are the selections of parts that others take the place of, which may still run.
		ending []*requests.Selection
		// namespaces are those that are followed; none where there is none to follow, and nil while nothing
		// is followed.
		namespaces []string
	}
}

// shardPart is what is known of a part of a shard.
type shardPart struct {
	namespace string
	listed    bool
	// ordered says that its resource versions have an order, so that it can be joined with others.
	ordered bool
	// joins are the selections of the parts that it takes the place of.
	joins []*requests.Selection
}

// NewShard returns a shard of the ranges that wanted returns, of which nothing is followed yet. told is
// called, with no lock held, when State returns something else.
func NewShard(key sharding.Key, wanted func() requests.Ranges, told func()) *Shard {
	s := &Shard{key: key, wanted: wanted, told: told, news: make(chan struct{}, 1)}
	s.mu.parts = map[*requests.Selection]*shardPart{}
	return s
}

// Narrow has what is followed select no more than is wanted.
func (s *Shard) Narrow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.wanted()
	for selection := range s.mu.parts {
		selection.Narrow(wanted)
	}
	for _, selection := range s.mu.ending {
		selection.Narrow(wanted)
	}
}

// Changed says that something else is wanted, after Narrow.
func (s *Shard) Changed() {
	s.wake()
	s.told()
}

func (s *Shard) wake() {
	select {
	case s.news <- struct{}{}:
	default:
	}
}

// changes has an element when other parts may have to be followed. It never has where there is no shard.
func (s *Shard) changes() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.news
}

// Dropped counts the objects that came and were not in the shard.
func (s *Shard) Dropped() int64 { return s.dropped.Load() }

// State returns what is known.
func (s *Shard) State() status.Shard {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := s.wanted()
	state := status.Shard{Key: s.key, Wanted: wanted, Filter: sharding.FilterServer}
	missing := requests.Ranges{}
	covered := map[string]requests.Ranges{}
	for selection, p := range s.mu.parts {
		if !p.listed {
			missing = missing.Or(selection.Ranges())
		}
		covered[p.namespace] = covered[p.namespace].Or(selection.Ranges())
		state.Filter = requests.CombineFilters(state.Filter, selection.Filter())
	}
	if len(s.mu.parts) == 0 {
		state.Filter = sharding.FilterUnknown
	}
	for _, namespace := range s.mu.namespaces {
		missing = missing.Or(wanted.Minus(covered[namespace]))
	}
	if s.mu.namespaces != nil {
		state.Listed = wanted.Minus(missing)
	}
	return state
}

// listed records that a part has listed, and whether it can be joined with others since.
func (s *Shard) listed(selection *requests.Selection, ordered bool) {
	s.mu.Lock()
	p, ok := s.mu.parts[selection]
	news := ok && !p.listed
	if ok {
		p.listed, p.ordered = true, ordered
	}
	s.mu.Unlock()
	if news {
		s.wake()
		s.told()
	}
}

// forget ends all parts: nothing is followed any more.
func (s *Shard) forget() {
	s.mu.Lock()
	clear(s.mu.parts)
	s.mu.namespaces, s.mu.ending = nil, nil
	s.mu.Unlock()
	s.told()
}

// followNothing takes note that no object is wanted, so that all is there.
func (s *Shard) followNothing() {
	s.selections(nil)
	s.told()
}

// selections returns the selections of the parts of some namespaces, each with those of the parts that it
// joins: the selections that there are, as far as anything is left of them, and, for what is wanted besides,
// one more each. Of those that there are, those that have listed become one. What was returned before has
// taken effect.
func (s *Shard) selections(namespaces []string) map[string]map[*requests.Selection][]*requests.Selection {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.namespaces, s.mu.ending = append([]string{}, namespaces...), nil
	maps.DeleteFunc(s.mu.parts, func(selection *requests.Selection, p *shardPart) bool {
		return len(selection.Ranges()) == 0 || !slices.Contains(namespaces, p.namespace)
	})
	s.joinLocked()
	wanted := s.wanted()
	all := map[string]map[*requests.Selection][]*requests.Selection{}
	for _, namespace := range namespaces {
		all[namespace] = map[*requests.Selection][]*requests.Selection{}
	}
	followed := map[string]requests.Ranges{}
	for selection, p := range s.mu.parts {
		all[p.namespace][selection] = p.joins
		followed[p.namespace] = followed[p.namespace].Or(selection.Ranges())
	}
	for namespace, those := range all {
		if missing := wanted.Minus(followed[namespace]); len(missing) > 0 {
			selection := requests.NewSelection(s.key, missing, s.told, &s.dropped)
			s.mu.parts[selection] = &shardPart{namespace: namespace}
			those[selection] = nil
		}
	}
	return all
}

// joinLocked has one part of each namespace take the place of those that have listed, so that there are no
// more watches than it takes, however often ranges are added.
func (s *Shard) joinLocked() {
	joining := map[string][]*requests.Selection{}
	for selection, p := range s.mu.parts {
		if p.listed && p.ordered {
			joining[p.namespace] = append(joining[p.namespace], selection)
		}
	}
	for namespace, those := range joining {
		if len(those) < 2 {
			continue
		}
		for _, selection := range those {
			delete(s.mu.parts, selection)
		}
		s.mu.ending = append(s.mu.ending, those...)
		s.mu.parts[those[0].Join(those[1:]...)] = &shardPart{namespace: namespace, listed: true,
			ordered: true, joins: those}
	}
}
