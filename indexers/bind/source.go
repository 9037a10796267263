package bind

import (
	"slices"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Source returns the content of the informer for [query.New], with the indexes of the resource under their
// names in the config.
func (t *Target) Source() query.Source { return t.view }

// MetricSources returns the metrics of the config with the caches of their types, for indexers.ReadMetrics.
// The content of the caches is immutable.
func (b *Binding) MetricSources() []indexers.MetricSource {
	for targets := b.Targets(); ; {
		var sources []indexers.MetricSource
		for _, t := range targets {
			if len(t.Resource.Metrics) > 0 {
				sources = append(sources,
					query.MetricSource(t.GVR, t.Resource.Metrics, t.Source().Snapshot()))
			}
		}
		current := b.Targets()
		// If the targets changed, one may have lost its indexes before its snapshot.
		if slices.Equal(current, targets) {
			return sources
		}
		targets = current
	}
}

// switchingSource is a source that switches from a target to its replacement.
type switchingSource struct {
	binding *Binding
	target  *Target
}

// Snapshot implements query.Source. A target can lose its indexes after its replacement took over, so that a
// snapshot is complete only if its target still serves after the snapshot was taken.
func (s *switchingSource) Snapshot() query.Snapshot {
	for t := s.serving(); ; {
		snapshot := t.Source().Snapshot()
		now := s.serving()
		if now == t {
			return snapshot
		}
		t = now
	}
}

// serving returns the current target, or the last one if there is none.
func (s *switchingSource) serving() *Target {
	s.binding.mu.Lock()
	defer s.binding.mu.Unlock()
	key := slotKey{s.target.Resource.Name, s.target.GVR.GroupResource()}
	if current := s.binding.mu.slots[key].serving; current != nil {
		return current
	}
	return s.target
}
