package dynamicinformer

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/dynamicinformer/typesource"
	"github.com/crdcache/crdcache/internal/health"
	"github.com/crdcache/crdcache/internal/naming"
)

// Conditions returns the conditions of the factory, ordered by type.
func (f *Factory) Conditions() []status.Condition {
	var all []status.Condition
	for _, c := range f.aggregator.Conditions() {
		all = append(all, f.withTypeError(status.Condition(c)))
	}
	return all
}

// Condition returns one condition. Its Status is empty if there is no condition of the type.
func (f *Factory) Condition(t status.ConditionType) status.Condition {
	return f.withTypeError(status.Condition(f.aggregator.Condition(t)))
}

// withTypeError adds the error of the type source to a condition with ReasonTypesUnknown.
func (f *Factory) withTypeError(c status.Condition) status.Condition {
	source, ok := f.options.Types.(typesource.SourceError)
	if !ok || c.Reason != status.ReasonTypesUnknown {
		return c
	}
	if err := source.Err(); err != nil {
		c.Message += ": " + health.OneLine(err.Error())
	}
	return c
}

// ListenerHandle is the registration of a listener. It is safe for concurrent use.
type ListenerHandle struct{ inner *health.ListenerHandle }

// Close removes the listener and drops its queued calls. It does not wait for a running call (Done does), so
// the listener itself may call it. Further calls do nothing.
func (l *ListenerHandle) Close() { l.inner.Close() }

// Done returns a channel that is closed when the listener is no longer called, after Close or Shutdown.
func (l *ListenerHandle) Done() <-chan struct{} { return l.inner.Done() }

// Depth returns the number of queued calls, including the running one.
func (l *ListenerHandle) Depth() int { return l.inner.Depth() }

// AddListener adds a listener. After Shutdown it returns ErrShutdown.
func (f *Factory) AddListener(listener status.Listener) (*ListenerHandle, error) {
	inner, err := f.aggregator.Add(listener)
	if err != nil {
		return nil, err
	}
	return &ListenerHandle{inner}, nil
}

// Stats returns the memory of the cache and counts of its events. It visits every object, about 10 ms for
// 100,000, and blocks neither readers nor the informer.
func (i *Informer) Stats() status.Stats {
	inside := i.core.Stats()
	stats := status.Stats{
		GVR: i.gvr, Storage: i.options.Storage.modeOrDefault().String(), Objects: inside.Objects,
		Compressed:  inside.Compressed,
		ObjectBytes: inside.ObjectBytes, CompressedBytes: inside.CompressedBytes,
		TableBytes: inside.TableBytes, Hits: inside.Hits, Misses: inside.Misses,
		Options: i.options.describe(), Events: status.EventStats(i.core.Events()),
		ListDuration: i.Status().ListDuration,
	}
	if i.shard != nil {
		stats.ShardDropped = i.shard.Dropped()
	}
	for _, x := range inside.Indexes {
		stats.Indexes = append(stats.Indexes, status.IndexStats{Name: x.Name, Values: x.Values,
			Entries: x.Entries, Bytes: x.Bytes})
	}
	return stats
}

// Stats returns Informer.Stats of each informer, ordered by group, resource, version and view.
func (f *Factory) Stats() []status.Stats {
	all := make([]status.Stats, 0)
	for _, e := range f.entries() {
		all = append(all, e.informer.Stats())
	}
	return all
}

// MemoryStats returns the current memory of the caches. Its cost grows with the number of types, not of
// objects, and it blocks neither readers nor writers.
func (f *Factory) MemoryStats() status.MemoryStats {
	stats := status.MemoryStats{Budget: f.options.MemoryBudget}
	for _, some := range f.viewsInUse() {
		for _, i := range some.informers {
			measured := i.core.Measure()
			stats.Used += measured.Bytes()
			stats.Compressed += measured.CompressedBytes
			if i.core.Store().Adaptive() != nil {
				stats.Compressible += measured.Compressible()
			}
		}
	}
	if stats.Budget > 0 {
		stats.OverBudget = max(0, stats.Used-stats.Budget)
	}
	return stats
}

// Compress compresses all objects with StorageAdaptive that are not in frequent use, and returns when that is
// done or with the cause of ctx. It is for programs that expect no reads soon, and for measurements. Readers
// and the informer continue meanwhile. It does nothing in other storage modes, for an informer that does not
// run, or for too few objects to train the compressor.
func (i *Informer) Compress(ctx context.Context) error {
	return i.source.sweeper.Compress(ctx, i.core.Store())
}

func (i *Informer) counters() status.Counters {
	events, counts := i.core.Events(), i.health.Counts()
	hits, misses := i.core.Decodes()
	kept := i.Persistence()
	return status.Counters{
		Adds: events.Adds, Updates: events.Updates, Deletes: events.Deletes,
		Relists: counts.Relists, Requests: counts.Requests, Failures: counts.Failures,
		Lists: counts.Lists, ListTime: counts.ListTime, Hits: hits, Misses: misses,
		Saves: int64(kept.Saves), SaveFailures: int64(kept.Failures),
	}
}

// Metrics returns the figures of every type and view in use, ordered by group, resource, version and view. It
// omits released informers, but their counters continue if the type is acquired again. The factory remembers
// the counters of at least 1,000 released views.
func (f *Factory) Metrics() []status.Metrics {
	followed := f.viewsInUse()
	all := make([]status.Metrics, len(followed))
	for k, some := range followed {
		m := &all[k]
		m.GVR, m.Options, m.Counters = some.gvr, some.view, some.earlierCounters
		for _, i := range some.informers {
			addInformer(m, i)
		}
	}
	return all
}

func addInformer(m *status.Metrics, i *Informer) {
	measured := i.core.Measure()
	m.Status = append(m.Status, i.Status())
	m.Objects += measured.Objects
	m.Compressed += measured.Compressed
	m.ObjectBytes += measured.ObjectBytes
	m.CompressedBytes += measured.CompressedBytes
	m.TableBytes += measured.TableBytes
	m.IndexBytes += measured.IndexBytes
	for _, x := range measured.Indexes {
		at := slices.IndexFunc(m.Indexes, func(have status.IndexMetrics) bool { return have.Name == x.Name })
		if at < 0 {
			at, m.Indexes = len(m.Indexes), append(m.Indexes, status.IndexMetrics{Name: x.Name})
		}
		m.Indexes[at].Values += x.Values
		m.Indexes[at].Entries += x.Entries
	}
	if !i.IsStopped() {
		m.Handlers = append(m.Handlers, i.Handlers()...)
	}
	if kept := i.Persistence(); kept.Enabled {
		m.Persistence = append(m.Persistence, kept)
	}
	m.Counters.Add(i.counters())
}

// described identifies a view by its description.
type described struct {
	gvr  schema.GroupVersionResource
	view string
}

func (e *entry) described() described { return described{e.key.gvr, e.options} }

// viewInformers holds the informers of a view, including released ones that have not ended, and the counters
// of earlier ones.
type viewInformers struct {
	described
	informers       []*Informer
	earlierCounters status.Counters
}

// viewsInUse returns all views in use, in order. One critical section reads the informers and the remembered
// counters, so that no count is lost or doubled.
func (f *Factory) viewsInUse() []viewInformers {
	f.mu.Lock()
	defer f.mu.Unlock()
	views := map[described]*viewInformers{}
	add := func(e *entry) {
		d := e.described()
		if views[d] == nil {
			views[d] = &viewInformers{described: d}
			views[d].earlierCounters.Add(f.mu.past[d])
		}
		views[d].informers = append(views[d].informers, e.informer)
	}
	for _, e := range f.mu.entries {
		add(e)
	}
	for e := range f.mu.alive {
		if f.mu.entries[e.key] != e {
			add(e)
		}
	}
	all := make([]viewInformers, 0, len(views))
	for _, v := range views {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b viewInformers) int {
		return cmp.Or(naming.CompareTypes(a.gvr, b.gvr), cmp.Compare(a.view, b.view))
	})
	return all
}

// rememberedViews is the number of released views whose counters are remembered. It bounds the memory of
// programs that always request new views.
const rememberedViews = 1000

// rememberLocked adds the counters of an ended entry to the remembered counters.
func (f *Factory) rememberLocked(e *entry) {
	d := e.described()
	past, known := f.mu.past[d]
	if !known && len(f.mu.past) >= rememberedViews {
		for other := range f.mu.past {
			delete(f.mu.past, other)
			break
		}
	}
	past.Add(e.informer.counters())
	f.mu.past[d] = past
}
