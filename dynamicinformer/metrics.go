package dynamicinformer

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/crdcache/crdcache/dynamicinformer/status"
	"github.com/crdcache/crdcache/internal/typename"
)

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

// described identifies a view by its description.
type described struct {
	gvr  schema.GroupVersionResource
	view string
}

func (e *entry) described() described { return described{e.key.gvr, e.view} }

// following holds the informers of a view, including released ones that have not ended, and the counters of
// earlier ones.
type following struct {
	described
	informers []*Informer
	past      status.Counters
}

// followed returns all views in use, in order. One critical section reads the informers and the remembered
// counters, so that no count is lost or doubled.
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
		return cmp.Or(typename.Compare(a.gvr, b.gvr), cmp.Compare(a.view, b.view))
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
