package bind

import (
	"slices"

	"k8s.io/client-go/tools/cache"

	"github.com/crdcache/crdcache/indexers"
	"github.com/crdcache/crdcache/indexers/query"
)

// Source returns the content of the informer for [query.New], with the indexes of the resource under their
// names in the config.
func (t *Target) Source() query.Source { return targetSource{t} }

type targetSource struct{ *Target }

// Snapshot implements query.Source.
func (t targetSource) Snapshot() query.Snapshot {
	return targetSnapshot{query.ForInformer(t.Informer).Snapshot(), t.Target}
}

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
		now := b.Targets()
		if slices.Equal(now, targets) { // otherwise a target may have lost its indexes before the snapshot
			return sources
		}
		targets = now
	}
}

// switchingSource is a source that switches from a target to its replacement.
type switchingSource struct {
	binding *Binding
	target  *Target
}

// Snapshot implements query.Source. A target can lose its indexes after its replacement took over, so that a
// snapshot is complete only if its target still serves after the snapshot was taken.
func (f *switchingSource) Snapshot() query.Snapshot {
	for t := f.serving(); ; {
		snapshot := t.Source().Snapshot()
		now := f.serving()
		if now == t {
			return snapshot
		}
		t = now
	}
}

// serving returns the current target, or the last one if there is none.
func (f *switchingSource) serving() *Target {
	f.binding.mu.Lock()
	defer f.binding.mu.Unlock()
	at := slotKey{f.target.Resource.Name, f.target.GVR.GroupResource()}
	if now := f.binding.mu.slots[at].serving; now != nil {
		return now
	}
	return f.target
}

// targetSnapshot is a snapshot of an informer with the indexes of one target, under their names in the
// config.
type targetSnapshot struct {
	query.Snapshot
	target *Target
}

// Declared returns the declarations of the indexes. Queriers of a switching source use those of the snapshot.
func (s targetSnapshot) Declared() []*indexers.Index { return s.target.Resource.Indexes }

// informerName returns the name of an index in the informer; "" if the resource has no such index.
func (s targetSnapshot) informerName(name string) string {
	if name == cache.NamespaceIndex {
		return name
	}
	return s.target.indexes[name].name
}

// Index implements query.Snapshot.
func (s targetSnapshot) Index(name string) (query.Index, bool) {
	inner := s.informerName(name)
	if inner == "" {
		return nil, false
	}
	return s.Snapshot.Index(inner)
}

// IndexNames implements query.Snapshot.
func (s targetSnapshot) IndexNames() []string {
	existing := s.Snapshot.IndexNames()
	var names []string
	add := func(name string) {
		if slices.Contains(existing, s.informerName(name)) {
			names = append(names, name)
		}
	}
	add(cache.NamespaceIndex)
	for _, index := range s.target.Resource.Indexes {
		add(index.Name)
	}
	slices.Sort(names)
	return names
}

// Err returns the error for queries of an informer that stores no objects.
func (s targetSnapshot) Err() error {
	if readable, ok := s.Snapshot.(interface{ Err() error }); ok {
		return readable.Err()
	}
	return nil
}

// Skipped returns the number of values that an index has left out.
func (s targetSnapshot) Skipped(name string) uint64 {
	if counting, ok := s.Snapshot.(interface{ Skipped(index string) uint64 }); ok {
		return counting.Skipped(s.informerName(name))
	}
	return 0
}

// Dropped returns the number of values that an index has left out because of a limit.
func (s targetSnapshot) Dropped(name string) uint64 {
	if counting, ok := s.Snapshot.(interface{ Dropped(index string) uint64 }); ok {
		return counting.Dropped(s.informerName(name))
	}
	return 0
}
