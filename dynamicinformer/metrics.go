package dynamicinformer

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/health"
)

// counters returns what the informer has counted.
func (i *Informer) counters() status.Counters {
	events, counts := i.core.Events(), i.health.Counts()
	hits, misses := i.core.Decodes()
	kept := i.Persistence()
	return status.Counters{
		Adds: events.Adds, Updates: events.Updates, Deletes: events.Deletes,
		Relists: status.Relists(counts.Relists), Requests: counts.Requests,
		Failures: failuresOf(counts.Failures),
		Lists:    counts.Lists, ListTime: counts.ListTime, Hits: hits, Misses: misses,
		Saves: int64(kept.Saves), SaveFailures: int64(kept.Failures),
	}
}

func failuresOf(counted map[health.Failure]int64) map[status.RequestFailureKind]int64 {
	failures := make(map[status.RequestFailureKind]int64, len(counted))
	for kind, n := range counted {
		failures[status.RequestFailureKind(kind)] = n
	}
	return failures
}

// Metrics returns the figures of everything that the factory follows, ordered by group, resource, version and
// view. What has been released is no longer among it; its counters are remembered, those of a thousand views
// at least.
func (f *Factory) Metrics() []status.Metrics {
	followed := f.followed()
	all := make([]status.Metrics, len(followed))
	for k, some := range followed {
		m := &all[k]
		m.GVR, m.View, m.Counters = some.gvr, some.view, some.past
		for _, i := range some.informers {
			addInformer(m, i)
		}
	}
	return all
}

// addInformer adds the figures of an informer to m.
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
	if kept := i.Persistence(); kept.Kept {
		m.Persistence = append(m.Persistence, kept)
	}
	m.Counters.Add(i.counters())
}

// described is a view of a type as people are told of it.
type described struct {
	gvr  schema.GroupVersionResource
	view string
}

func (e *entry) described() described { return described{e.key.gvr, e.view} }

// following are the informers of a view, those that have not ended yet although they have been released
// included, and what those before them have counted.
type following struct {
	described
	informers []*Informer
	past      status.Counters
}

// followed returns what the factory follows, in order. It is looked at under one lock together with what is
// remembered, so that what an informer has counted is in either, and never in both.
func (f *Factory) followed() []following {
	f.mu.Lock()
	defer f.mu.Unlock()
	views := map[described]*following{}
	add := func(e *entry) {
		d := e.described()
		if views[d] == nil {
			views[d] = &following{described: d}
			views[d].past.Add(f.mu.past[d])
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
	all := make([]following, 0, len(views))
	for _, v := range views {
		all = append(all, *v)
	}
	slices.SortFunc(all, func(a, b following) int {
		return cmp.Or(health.CompareGVR(a.gvr, b.gvr), cmp.Compare(a.view, b.view))
	})
	return all
}

// rememberedViews is of how many views the counters are remembered when nothing follows them any more. A
// program that asks for other views all the time must not fill its memory with that.
const rememberedViews = 1000

// rememberLocked remembers what the informer of an entry has counted, which has ended and been dropped.
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
