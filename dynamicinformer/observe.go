package dynamicinformer

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/naming"
)

// Conditions returns the conditions of the factory, ordered by type.
func (f *Factory) Conditions() []status.Condition { return f.aggregator.Conditions() }

// Condition returns one condition. Its Status is empty if there is no condition of the type.
func (f *Factory) Condition(t status.ConditionType) status.Condition {
	return f.aggregator.Condition(t)
}

// AddListener adds a listener. After Shutdown it returns ErrShutdown.
func (f *Factory) AddListener(listener status.Listener) (status.ListenerHandle, error) {
	handle, err := f.aggregator.Add(listener)
	if err != nil {
		return nil, err // not the nil handle in a non-nil interface
	}
	return handle, nil
}

// Stats returns the memory of the cache and counts of its events. Counts and the sizes of packed objects are
// exact; the other sizes are extrapolated from samples. The cost does not depend on the number of objects.
func (i *Informer) Stats() status.Stats {
	stats := i.core.Store().Stats().Stats
	stats.GVR, stats.Options = i.gvr, i.options.describe()
	stats.Storage = cmp.Or(i.options.Storage.Mode, StoragePacked).String()
	stats.Hits, stats.Misses = i.core.Store().Decodes()
	stats.Events, stats.ListDuration = i.core.Events(), i.Status().ListDuration
	if shard := i.shard.Load().follow; shard != nil {
		stats.ShardDropped = shard.Dropped()
	}
	return stats
}

// Stats returns Informer.Stats of each informer, ordered by group, resource, version and options.
func (f *Factory) Stats() []status.Stats { return naming.Map(f.Informers(), (*Informer).Stats) }

// MemoryStats returns the current memory of the caches. Its cost grows with the number of types, not of
// objects, and it blocks neither readers nor writers. The Budget of a Group is in Group.MemoryStats.
func (f *Factory) MemoryStats() status.MemoryStats {
	stats := status.MemoryStats{Budget: f.options.MemoryBudget}
	for _, group := range f.informerGroups() {
		for _, i := range group.informers {
			memory := i.core.Store().Stats()
			stats.Used += memory.Bytes()
			stats.Compressed += memory.CompressedBytes
			if i.core.Store().Adaptive() != nil {
				stats.Compressible += memory.Compressible()
			}
		}
	}
	return withOverBudget(stats)
}

func withOverBudget(stats status.MemoryStats) status.MemoryStats {
	if stats.Budget > 0 {
		stats.OverBudget = max(0, stats.Used-stats.Budget)
	}
	return stats
}

// Compress compresses all objects with StorageAdaptive that are not in frequent use, and returns when that is
// done or with the cause of ctx. It is for programs that
// expect no reads soon, and for measurements. Readers and the informer continue meanwhile. It does nothing in
// other storage modes, for an informer that does not run, or for too few objects to train the compressor.
func (i *Informer) Compress(ctx context.Context) error {
	return i.deps.sweeper.Compress(ctx, i.core.Store())
}

func (i *Informer) counters() status.Counters {
	c, events, persistence := i.health.Counters(), i.core.Events(), i.Persistence()
	c.Adds, c.Updates, c.Deletes = events.Adds, events.Updates, events.Deletes
	c.Hits, c.Misses = i.core.Store().Decodes()
	c.Saves, c.SaveFailures = int64(persistence.Saves), int64(persistence.Failures)
	return c
}

// Metrics returns the figures of every type and its options in use, ordered by group, resource, version and
// options. It omits released informers, but their counters continue if the type is acquired again. The
// factory remembers the counters of at least 1,000 released pairs of a type and options.
func (f *Factory) Metrics() []status.Metrics {
	groups := f.informerGroups()
	metrics := make([]status.Metrics, len(groups))
	for k, group := range groups {
		m := &metrics[k]
		m.GVR, m.Options, m.Counters = group.gvr, group.options, group.earlierCounters
		for _, i := range group.informers {
			addInformer(m, i)
		}
	}
	return metrics
}

func addInformer(m *status.Metrics, i *Informer) {
	memory := i.core.Store().Stats()
	m.Status = append(m.Status, i.Status())
	m.Objects += memory.Objects
	m.Compressed += memory.Compressed
	m.ObjectBytes += memory.ObjectBytes
	m.CompressedBytes += memory.CompressedBytes
	m.TableBytes += memory.TableBytes
	for _, index := range memory.Indexes {
		at := slices.IndexFunc(m.Indexes,
			func(existing status.IndexMetrics) bool { return existing.Name == index.Name })
		if at < 0 {
			at, m.Indexes = len(m.Indexes), append(m.Indexes, status.IndexMetrics{Name: index.Name})
		}
		m.Indexes[at].Values += index.Values
		m.Indexes[at].Entries += index.Entries
		m.IndexBytes += index.Bytes
	}
	if !i.IsStopped() {
		m.Handlers = append(m.Handlers, i.Handlers()...)
	}
	if persistence := i.Persistence(); persistence.Enabled {
		m.Persistence = append(m.Persistence, persistence)
	}
	m.Counters.Add(i.counters())
}

// typeOptions is a type with the description of its options.
type typeOptions struct {
	gvr     schema.GroupVersionResource
	options string
}

func (e *entry) typeOptions() typeOptions { return typeOptions{e.key.gvr, e.options} }

// informerGroup holds the informers of a type with equal options, including released ones that have not
// ended, and the counters of earlier ones.
type informerGroup struct {
	typeOptions
	informers       []*Informer
	earlierCounters status.Counters
}

// informerGroups returns all groups in use, in order. One critical section reads the informers and the
// remembered counters, so that no count is lost or doubled.
func (f *Factory) informerGroups() []*informerGroup {
	f.mu.Lock()
	defer f.mu.Unlock()
	groups := map[typeOptions]*informerGroup{}
	add := func(e *entry) {
		if e.key.isDefinition() {
			return
		}
		d := e.typeOptions()
		if groups[d] == nil {
			groups[d] = &informerGroup{typeOptions: d}
			groups[d].earlierCounters.Add(f.mu.endedCounters[d])
		}
		groups[d].informers = append(groups[d].informers, e.informer)
	}
	for _, e := range f.mu.entries {
		add(e)
	}
	for e := range f.mu.runningEntries {
		if f.mu.entries[e.key] != e {
			add(e)
		}
	}
	return slices.SortedFunc(maps.Values(groups), func(a, b *informerGroup) int {
		return cmp.Or(naming.CompareTypes(a.gvr, b.gvr), cmp.Compare(a.options, b.options))
	})
}

// maxEndedCounters is the number of released groups that keep their counters. It bounds the memory of
// programs that always request new options.
const maxEndedCounters = 1000

// rememberLocked adds the counters of an ended entry to the remembered counters.
func (f *Factory) rememberLocked(e *entry) {
	d := e.typeOptions()
	counters, exists := f.mu.endedCounters[d]
	if !exists && len(f.mu.endedCounters) >= maxEndedCounters {
		for other := range f.mu.endedCounters {
			delete(f.mu.endedCounters, other)
			break
		}
	}
	counters.Add(e.informer.counters())
	f.mu.endedCounters[d] = counters
}
