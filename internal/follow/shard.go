package follow

import (
	"slices"
	"sync"
	"sync/atomic"

	"github.com/crdcache/crdcache/internal/requests"
)

// Shard is the part of a hash space that is followed of a type, and may change at any time. It is safe for concurrent use.
type Shard struct {
	key    requests.ShardKey
	wanted func() requests.Ranges
	// told is called, with no lock held, when State returns something else.
	told func()
	// news has an element when more may be wanted than is followed.
	news chan struct{}
	// dropped counts what came and was not in the shard.
	dropped atomic.Int64

	mu struct {
		sync.Mutex
		// parts are those that are followed, by their selections.
		parts map[*requests.Selection]*shardPart
		// namespaces are those that are followed; none where there is none to follow, and nil while nothing is followed.
		namespaces []string
	}
}

// shardPart is what is known of a part of a shard.
type shardPart struct {
	namespace string
	listed    bool
}

// NewShard returns a shard of the ranges that wanted returns, of which nothing is followed yet. told is called, with no lock
// held, when State returns something else.
func NewShard(key requests.ShardKey, wanted func() requests.Ranges, told func()) *Shard {
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
}

// Changed says that something else is wanted, after Narrow.
func (s *Shard) Changed() {
	select {
	case s.news <- struct{}{}:
	default:
	}
	s.told()
}

// changes has an element when more may be wanted than is followed. It never has where there is no shard.
func (s *Shard) changes() <-chan struct{} {
	if s == nil {
		return nil
	}
	return s.news
}

// Dropped counts the objects that came and were not in the shard.
func (s *Shard) Dropped() int64 { return s.dropped.Load() }

// State returns what is known.
func (s *Shard) State() requests.ShardStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	state := requests.ShardStatus{Key: s.key, Wanted: s.wanted(), Listed: requests.Ranges{}, Filter: requests.ShardFilterServer}
	missing := requests.Ranges{}
	covered := map[string]requests.Ranges{}
	for selection, p := range s.mu.parts {
		if !p.listed {
			missing = missing.Or(selection.Ranges())
		}
		covered[p.namespace] = covered[p.namespace].Or(selection.Ranges())
		state.Filter = weaker(state.Filter, selection.Filter())
	}
	if len(s.mu.parts) == 0 {
		state.Filter = requests.ShardFilterUnknown
	}
	for _, namespace := range s.mu.namespaces {
		missing = missing.Or(state.Wanted.Minus(covered[namespace]))
	}
	if s.mu.namespaces != nil {
		state.Listed = state.Wanted.Minus(missing)
	}
	return state
}

// weaker returns what is known of two parts together.
func weaker(a, b requests.ShardFilter) requests.ShardFilter {
	switch {
	case a == requests.ShardFilterClient || b == requests.ShardFilterClient:
		return requests.ShardFilterClient
	case a == b:
		return a
	}
	return requests.ShardFilterUnknown
}

// listed takes note that a part has listed.
func (s *Shard) listed(selection *requests.Selection) {
	s.mu.Lock()
	p, ok := s.mu.parts[selection]
	news := ok && !p.listed
	if news {
		p.listed = true
	}
	s.mu.Unlock()
	if news {
		s.told()
	}
}

// forget ends all parts: nothing is followed any more.
func (s *Shard) forget() {
	s.mu.Lock()
	clear(s.mu.parts)
	s.mu.namespaces = nil
	s.mu.Unlock()
	s.told()
}

// followNothing takes note that no object is wanted, so that all is there.
func (s *Shard) followNothing() {
	s.selections(nil)
	s.told()
}

// selections returns the selections of some namespaces: those that there are, as far as anything is left of them, and, for what is
// wanted besides, one more each.
func (s *Shard) selections(namespaces []string) map[string][]*requests.Selection {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.namespaces = append([]string{}, namespaces...)
	wanted := s.wanted()
	all := map[string][]*requests.Selection{}
	followed := map[string]requests.Ranges{}
	for selection, p := range s.mu.parts {
		if len(selection.Ranges()) == 0 || !slices.Contains(namespaces, p.namespace) {
			delete(s.mu.parts, selection)
			continue
		}
		all[p.namespace] = append(all[p.namespace], selection)
		followed[p.namespace] = followed[p.namespace].Or(selection.Ranges())
	}
	for _, namespace := range namespaces {
		if missing := wanted.Minus(followed[namespace]); len(missing) > 0 {
			selection := requests.NewSelection(s.key, missing, s.told, &s.dropped)
			s.mu.parts[selection] = &shardPart{namespace: namespace}
			all[namespace] = append(all[namespace], selection)
		}
	}
	return all
}
